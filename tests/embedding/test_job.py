"""Fits that are killed go on where they were, to the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atpgraph import ATP, InputError, _work, gnm

GRAPH = gnm(400, 1200, random_state=1)
CASES = [
    {"purpose": "reachability", "closure": "sketch", "max_iter": 4},
    {"purpose": "reachability", "closure": "exact", "max_iter": 4},
    {"purpose": "links", "closure": "sketch", "max_iter": 3},
    {"purpose": "links", "closure": "exact", "max_iter": 3},
]
# Kills itself at the n-th stage or state: before it is written, in the middle, or after.
CHILD = """
import json, os, signal, sys
from atpgraph import ATP, _work, gnm
_work.SECONDS = 0.0
folder, model, params, fatal, moment = sys.argv[1:]
put, count = _work.WorkFolder.put, 0
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
def doomed(self, name, parts, facts):
    global count
    count += 1
    if count == int(fatal) and moment == "before": die()
    if count == int(fatal) and moment == "within": _work.np.save = die
    put(self, name, parts, facts)
    if count == int(fatal): die()
_work.WorkFolder.put = doomed
ATP(8, **json.loads(params)).fit(gnm(400, 1200, random_state=1), work=folder).save(model)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['purpose']}-{case['closure']}")
def test_a_killed_fit_goes_on_to_the_same_bytes(case: dict[str, object], tmp_path: Path) -> None:
    ATP(8, **case).fit(GRAPH).save(tmp_path / "whole.npz")
    arguments = [str(tmp_path / "work"), str(tmp_path / "model.npz"), json.dumps(case)]
    killed = 0
    for fatal, moment in ((1, "after"), (1, "within"), (2, "before"), (3, "within"), (99, "-")):
        run = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments, str(fatal), moment],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        killed += run.returncode == -signal.SIGKILL
        assert run.returncode in (0, -signal.SIGKILL), run.stderr
    assert killed >= 3
    assert (tmp_path / "model.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not [path for path in (tmp_path / "work").iterdir() if ".atp-" in path.name]


def test_a_finished_job_does_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ATP(8, max_iter=2, memory="1GB").fit(GRAPH, work=tmp_path / "w")
    monkeypatch.setattr(_work.WorkFolder, "put", None)
    again = ATP(8, max_iter=2, memory="2GB", n_jobs=1).fit(GRAPH, work=tmp_path / "w")
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
