"""Find the indices of integer labels with a hash table in compiled code."""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Int32Array, Int64Array
from atpgraph.util.jit import kernel

# The multiplier of Fibonacci hashing, 2**64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class IntegerLookup:
    """Map distinct integers to their positions in an array.

    Examples
    --------
    >>> IntegerLookup(np.array([7, 5])).find(np.array([5, 6, 7])).tolist()
    [1, -1, 0]
    """

    def __init__(self, labels: Int64Array) -> None:
        bits = max(int(2 * len(labels)).bit_length(), 1)  # at most half full
        self._shift = np.uint64(64 - bits)
        self._keys = np.zeros(1 << bits, dtype=np.int64)
        self._places = np.full(1 << bits, -1, dtype=np.int32)
        _fill(labels, self._shift, self._keys, self._places)

    def find(self, labels: Int64Array) -> Int64Array:
        """Return the position of each label, −1 where it is unknown."""
        found = np.empty(len(labels), dtype=np.int64)
        _find(np.ascontiguousarray(labels), self._shift, self._keys, self._places, found)
        return found


@kernel
def _fill(labels: Int64Array, shift: np.uint64, keys: Int64Array, places: Int32Array) -> None:
    mask = len(keys) - 1
    for i in range(len(labels)):
        at = np.int64((np.uint64(labels[i]) * _GOLDEN) >> shift)
        while places[at] >= 0:
            at = (at + 1) & mask
        keys[at] = labels[i]
        places[at] = i


@kernel
def _find(
    labels: Int64Array,
    shift: np.uint64,
    keys: Int64Array,
    places: Int32Array,
    found: Int64Array,
) -> None:
    mask = len(keys) - 1
    for i in range(len(labels)):
        at = np.int64((np.uint64(labels[i]) * _GOLDEN) >> shift)
        while places[at] >= 0 and keys[at] != labels[i]:
            at = (at + 1) & mask
        found[i] = places[at]
