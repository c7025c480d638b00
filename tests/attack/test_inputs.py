"""Damaged files of every kind: one sentence, exit code 2, nothing written; or a sound result."""

from __future__ import annotations

import pytest

from .campaign import damage_many
from .world import READERS

CASES = 10 * len(READERS)


@pytest.mark.parametrize(
    "start", range(len(READERS)), ids=lambda i: " ".join(READERS[i].arguments[:2])
)
def test_damaged_inputs(world, tmp_path, start) -> None:
    cases = range(start, CASES, len(READERS))
    complaints = [f"{what}: {wrong}" for what, wrong in damage_many(world, tmp_path, cases)]
    assert not complaints, "\n".join(complaints)
