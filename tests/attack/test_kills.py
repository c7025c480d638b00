"""kill −9 before the file operations of every command that writes: old or new, never a mixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .campaign import attack_writer
from .world import WRITERS

POINTS = 3  # of a command in the fast run: the first, the last, and some between
SLOW = {"train", "plot", "compare", "links"}  # these: make attack


def spread_out(count: int) -> Iterator[int]:
    """A few of the numbers from 1 to `count`, both ends among them."""
    yield from sorted({round(1 + (count - 1) * i / (POINTS - 1)) for i in range(POINTS)})


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - SLOW))
def test_killed_before_a_file_operation(world, tmp_path, name) -> None:
    assert attack_writer(world, name, tmp_path, spread_out) > 0
