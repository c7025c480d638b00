"""The attack itself: damaged inputs and kills, each returning what a user could complain about."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .forked import Outcome, run
from .mutations import damaged, damaged_archive
from .world import READERS, clone


def damage_one(world: Path, scratch: Path, case: int) -> tuple[str, str]:
    """Damage one file by the number of the case and read it; what was done, and the complaint."""
    rng = np.random.default_rng(case)
    chosen = READERS[case % len(READERS)]
    folder = clone(world, scratch / f"case-{case}")
    try:
        files = sorted(path for path in folder.glob(chosen.file) if path.is_file())
        victim = files[int(rng.integers(0, len(files)))]
        raw = victim.read_bytes()
        victim.unlink()
        victim.write_bytes(raw)
        if victim.suffix == ".npz" and rng.random() < 0.7:
            damaged_archive(victim, rng)
        else:
            victim.write_bytes(damaged(raw, rng))
        outcome = run(*(part.format(d=folder) for part in chosen.arguments))
        complaint = outcome.complaint() or _half_written(folder, outcome)
        return f"case {case}: {victim.relative_to(folder)} by {chosen.arguments}", complaint
    finally:
        shutil.rmtree(folder)


def _half_written(folder: Path, outcome: Outcome) -> str:
    litter = [path.name for path in folder.rglob(".*")]
    if litter:
        return f"litter: {litter}"
    left = [path.name for path in folder.iterdir() if path.name.startswith("out")]
    return f"exit {outcome.code} and yet {left} was written" if outcome.code and left else ""


def kill_everywhere(
    prepare: Callable[[Path], list[str]],
    check: Callable[[Path], None],
    scratch: Path,
    points: Callable[[int], Iterator[int]],
) -> int:
    """Kill a command before its file operations; the number of kills.

    `prepare` fills a folder and gives the command; `check` raises if what is there is neither the
    old nor the new state. After each kill the same command must succeed and leave no litter.
    """
    counting = scratch / "counting"
    counting.mkdir()
    done = run(*prepare(counting), within=counting)
    assert done.code == 0, done.stderr
    clean = _names(counting)
    kills = 0
    for point in points(done.operations):
        folder = scratch / f"point-{point}"
        folder.mkdir()
        command = prepare(folder)
        killed = run(*command, within=folder, kill_at=point)
        assert killed.code == -signal.SIGKILL, (point, killed)
        kills += 1
        check(folder)
        again = run(*command, within=folder)
        assert again.code == 0, (point, again.stderr)
        assert _names(folder) == clean, point
        shutil.rmtree(folder)
    return kills


def _names(folder: Path) -> list[str]:
    """Files below a folder; names that are drawn at random count by what they begin with."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(re.sub(r"tables-\w+", "tables", name) for name in found)
