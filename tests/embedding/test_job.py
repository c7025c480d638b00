"""Fits with a work folder. For runs that are killed, see tests/cli/test_resume.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atpgraph import ATP, InputError, gnm
from atpgraph.util import checkpoints

GRAPH = gnm(400, 1200, random_state=1)


def test_a_finished_job_does_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ATP(8, max_iter=2).fit(GRAPH, work=tmp_path / "w")
    monkeypatch.setattr(checkpoints.WorkFolder, "put", None)
    again = ATP(8, max_iter=2, n_jobs=1).fit(GRAPH, work=tmp_path / "w")
    assert again.source_.tobytes() == first.source_.tobytes()
    assert again.n_iter_ == 2


def test_the_folder_of_another_job_is_refused(tmp_path: Path) -> None:
    ATP(8, max_iter=1).fit(GRAPH, work=tmp_path / "w")
    with pytest.raises(InputError, match=r"another job \(n_components differ\)"):
        ATP(9, max_iter=1).fit(GRAPH, work=tmp_path / "w")
    with pytest.raises(InputError, match=r"another job \(graph differ\)"):
        ATP(8, max_iter=1).fit(gnm(400, 1200, random_state=2), work=tmp_path / "w")


@pytest.mark.parametrize(
    ("params", "words"),
    [({"kernel": lambda d: d}, "kernel by its name"), ({"random_state": None}, "whole number")],
)
def test_what_cannot_be_done_again_is_refused(
    params: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        ATP(8, **params).fit(GRAPH, work=tmp_path / "w")
    assert not os.path.exists(tmp_path / "w")
