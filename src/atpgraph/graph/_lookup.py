"""Find the indices of integer labels with a hash table in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph.util.jit import NEAR, kernel, prefetch

# The multiplier of Fibonacci hashing, 2**64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


_DENSE = 4  # labels from a range up to so many times their number are looked up in an array


class IntegerLookup:
    """Map distinct integers to their positions in an array.

    Examples
    --------
    >>> IntegerLookup(np.array([7, 5])).find(np.array([5, 6, 7])).tolist()
    [1, -1, 0]
    >>> IntegerLookup(np.array([7, 10**9])).find(np.array([7, 10**9, 0])).tolist()
    [0, 1, -1]
    """

    def __init__(self, labels: Int64Array) -> None:
        n, self._low = len(labels), int(labels.min(initial=0))
        width = int(labels.max(initial=0)) - self._low + 1
        # Consecutive ascending labels need no table: a label is its place, but for where it starts.
        self._end = n if width == n and bool((labels[1:] > labels[:-1]).all()) else 0
        self._dense = width <= _DENSE * n
        if self._end:
            return
        if self._dense:
            self._places = np.full(width, -1, dtype=np.int32)
            self._places[labels - self._low] = np.arange(n, dtype=np.int32)
            return
        bits = max((2 * n).bit_length(), 1)  # at most half full
        self._shift = np.uint64(64 - bits)
        self._slots = np.full((1 << bits, 2), -1, dtype=np.int64)  # a label and its place
        entries = np.stack([labels, np.arange(n)], axis=1)
        insert(entries, self._slots, _GOLDEN, self._shift)

    def find(self, labels: Int64Array) -> Int64Array:
        """Return the position of each label, −1 where it is unknown."""
        if self._end:
            places = labels - self._low
            if places.min(initial=0) >= 0 and places.max(initial=-1) < self._end:
                return places
            return np.where((places >= 0) & (places < self._end), places, -1)
        found = np.empty(len(labels), dtype=np.int64)
        if self._dense:
            _find_dense(labels, self._low, self._places, found)
        else:
            _find(labels, self._shift, self._slots, found)
        return found


@kernel
def _find_dense(labels: Any, low: int, places: Any, found: Any) -> None:
    for i in range(len(labels)):
        at = labels[i] - low
        found[i] = places[at] if 0 <= at < len(places) else -1


@kernel
def insert(entries: Any, slots: Any, multiplier: Any, shift: Any) -> None:
    """Put entries into a hash table; an entry is a key and a value, a free slot has the value −1.

    The highest bits of the product of a key and an odd multiplier give its first slot.
    """
    last = len(slots) - 1
    for i in range(len(entries)):
        if entries[i, 1] >= 0:
            at = np.int64((np.uint64(entries[i, 0]) * multiplier) >> shift)
            while slots[at, 1] >= 0:
                at = (at + 1) & last
            slots[at, 0], slots[at, 1] = entries[i, 0], entries[i, 1]


@kernel
def _find(labels: Any, shift: Any, slots: Any, found: Any) -> None:
    flat = slots.reshape(-1)
    for i in range(len(labels)):
        # A large table is not in the cache: ask for a slot well before it is read.
        ahead = min(i + NEAR, len(labels) - 1)
        prefetch(flat, 2 * np.int64((np.uint64(labels[ahead]) * _GOLDEN) >> shift))
        at = np.int64((np.uint64(labels[i]) * _GOLDEN) >> shift)
        while slots[at, 1] >= 0 and slots[at, 0] != labels[i]:
            at = (at + 1) & (len(slots) - 1)
        found[i] = slots[at, 1]
