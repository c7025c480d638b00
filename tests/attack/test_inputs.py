"""Damaged files of every kind: one sentence, exit code 2, nothing written; or a sound result."""

from __future__ import annotations

import pytest

from .campaign import damage_one
from .world import READERS

CASES = 10 * len(READERS)


@pytest.mark.parametrize(
    "start", range(len(READERS)), ids=lambda i: " ".join(READERS[i].arguments[:2])
)
def test_damaged_inputs(world, tmp_path, start) -> None:
    complaints = []
    for case in range(start, CASES, len(READERS)):
        what, complaint = damage_one(world, tmp_path, case)
        if complaint:
            complaints.append(f"{what}: {complaint}")
    assert not complaints, "\n".join(complaints)
