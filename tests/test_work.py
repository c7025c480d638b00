from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.util import checkpoints
from atpgraph.util.checkpoints import Loop, WorkFolder, digest


def folder(path: Path, **job: object) -> WorkFolder:
    return WorkFolder(path / "work", {"graph": "g", **job})


def test_a_stage_is_done_once(tmp_path: Path) -> None:
    calls = []

    def work():
        calls.append(1)
        return {"numbers": np.arange(5), "name": np.zeros((2, 3), np.float32)}, {"note": "é"}

    first, facts = folder(tmp_path).stage("count", work)
    again, _ = folder(tmp_path).stage("count", work)
    assert len(calls) == 1
    assert facts == {"note": "é"}
    assert {name: part.tolist() for name, part in first.items()} == {
        name: part.tolist() for name, part in again.items()
    }
    again["numbers"][0] = 99  # a copy on write: the file stays
    assert folder(tmp_path).get("count")[0]["numbers"][0] == 0


def test_a_stage_that_failed_leaves_nothing(tmp_path: Path) -> None:
    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        folder(tmp_path).stage("count", fail)
    with pytest.raises(ValueError, match="pickle"):
        folder(tmp_path).put("count", {"objects": np.array([{}], dtype=object)}, {})
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["job.json"]


def test_a_loop_keeps_its_last_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    loop = Loop(folder(tmp_path), "vectors")
    assert loop.state() is None
    for number in range(12):
        loop.save(lambda at=number: {"x": np.full(3, at)}, {"done": number})
    parts, facts = Loop(folder(tmp_path), "vectors").state()
    assert (parts["x"].tolist(), facts) == ([11, 11, 11], {"done": 11})
    assert len(list((tmp_path / "work").glob("vectors*"))) == 1
    monkeypatch.setattr(checkpoints, "SECONDS", 1000.0)
    loop = Loop(folder(tmp_path), "vectors")
    loop.save(lambda: {"x": np.zeros(3)}, {"done": 12})
    assert loop.state()[1] == {"done": 11}  # a moment ago
    loop.save(lambda: {"x": np.zeros(3)}, {"done": 13}, at_once=True)
    assert loop.state()[1] == {"done": 13}


def test_other_folders_are_refused(tmp_path: Path) -> None:
    folder(tmp_path, dim=3)
    with pytest.raises(InputError, match=r"work of another job \(dim differ\)"):
        folder(tmp_path, dim=4)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        WorkFolder(tmp_path / "full", {})
    with pytest.raises(InputError, match="is not a folder"):
        WorkFolder(tmp_path / "full" / "diary.txt", {})
    (tmp_path / "work" / "job.json").write_text("{")
    with pytest.raises(InputError, match="delete the folder and start over"):
        folder(tmp_path, dim=3)
    (tmp_path / "work" / "job.json").write_text(json.dumps([1]))
    with pytest.raises(InputError, match="delete the folder and start over"):
        folder(tmp_path, dim=3)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    code = (
        "import sys; from pathlib import Path; from atpgraph.util.checkpoints import WorkFolder\n"
        "with WorkFolder(Path(sys.argv[1]), {'graph': 'g'}).held(): pass"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "work")]
    with folder(tmp_path).held():
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Another run is using" in refused.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_digests_tell_arrays_apart() -> None:
    one = digest({"a": np.arange(4)})
    assert one == digest({"a": np.arange(8)[::2] // 2})
    assert one != digest({"a": np.arange(4, dtype=np.int32)})
    assert one != digest({"b": np.arange(4)})
    assert one != digest({"a": np.arange(4).reshape(2, 2)})
    assert digest({"a": np.empty(0)}) != digest({})


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("numbers.npy", None),
        ("numbers.npy", b""),
        ("numbers.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((("),
        ("numbers.npy", b"PK\x05\x06" + bytes(18)),
        ("facts.json", b'{"facts": "{}", "seal": "0"}'),
        ("facts.json", b'{"facts": 3}'),
        ("facts.json", b"[" * 100_000),
    ],
)
def test_a_damaged_stage_is_refused(tmp_path: Path, file: str, content: bytes | None) -> None:
    """One changed number is enough: it would reach compiled code as an index."""
    folder(tmp_path).put("count", {"numbers": np.arange(5)}, {})
    damaged = tmp_path / "work" / "count" / file
    if content is None:
        raw = bytearray(damaged.read_bytes())
        raw[-8] ^= 1
        content = bytes(raw)
    damaged.write_bytes(content)
    with pytest.raises(InputError, match=r"delete .* and start over"):
        folder(tmp_path).get("count")
