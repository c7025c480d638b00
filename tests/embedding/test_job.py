"""Fits that are killed go on where they were, to the same bytes."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from atpgraph import ATP, InputError, gnm
from atpgraph.util import checkpoints
from tests.attack.forked import forked

GRAPH = gnm(400, 1200, random_state=1)
CASES = [{"purpose": "reachability", "max_iter": 9}, {"purpose": "paper", "max_iter": 3}]


def fit(folder: Path, model: Path, case: dict[str, Any], fatal: int, moment: str) -> int:
    """Fit in this process, which kills itself at a stage or state: before, within or after it."""
    put, count = checkpoints.WorkFolder.put, 0
    checkpoints.SECONDS = 0.0

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def doomed(self: Any, name: str, parts: Any, facts: Any) -> None:
        nonlocal count
        count += 1
        if count == fatal and moment == "before":
            die()
        if count == fatal and moment == "within":
            checkpoints.np.save = die
        put(self, name, parts, facts)
        if count == fatal:
            die()

    checkpoints.WorkFolder.put = doomed  # type: ignore[method-assign]
    ATP(8, **case).fit(GRAPH, work=folder).save(model)
    return 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["purpose"])
def test_a_killed_fit_goes_on_to_the_same_bytes(case: dict[str, object], tmp_path: Path) -> None:
    ATP(8, **case).fit(GRAPH).save(tmp_path / "whole.npz")
    killed = 0
    for fatal, moment in ((1, "after"), (1, "within"), (2, "before"), (3, "within"), (99, "-")):
        work = functools.partial(
            fit, tmp_path / "work", tmp_path / "model.npz", case, fatal, moment
        )
        done = forked(work)
        killed += done.code == -signal.SIGKILL
        assert done.code in (0, -signal.SIGKILL), done.stderr
    assert killed >= 3
    assert (tmp_path / "model.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not [path for path in (tmp_path / "work").iterdir() if ".atp-" in path.name]


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
