"""The attack itself: damaged inputs and kills, each returning what a user could complain about."""

from __future__ import annotations

import filecmp
import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from .forked import Outcome, here, run, suspects
from .mutations import damaged, damaged_archive
from .world import READERS, WRITERS, clone


def damage_many(world: Path, scratch: Path, cases: Sequence[int]) -> Iterator[tuple[str, str]]:
    """What was done and the complaint, for the cases that have one."""
    for case in suspects(cases, lambda case: damage_one(world, scratch, case, here)[1]):
        shutil.rmtree(scratch / f"case-{case}", ignore_errors=True)  # of a child that died
        what, complaint = damage_one(world, scratch, case)
        if complaint:
            yield what, complaint


def damage_one(
    world: Path, scratch: Path, case: int, run: Callable[..., Outcome] = run
) -> tuple[str, str]:
    """Damage one file by the number of the case and read it; what was done, and the complaint."""
    rng = np.random.default_rng(case)
    chosen = READERS[case % len(READERS)]
    folder = clone(world, scratch / f"case-{case}", chosen.needs)
    try:
        files = sorted(path for path in folder.glob(chosen.file) if path.is_file())
        victim = files[int(rng.integers(0, len(files)))]
        raw = victim.read_bytes()
        victim.unlink()
        victim.write_bytes(raw)
        garbage = False
        if victim.suffix == ".npz" and rng.random() < 0.7:
            garbage = damaged_archive(victim, rng)
        else:
            victim.write_bytes(damaged(raw, rng))
        outcome = run(*(part.format(d=folder) for part in chosen.arguments))
        complaint = outcome.complaint() or _half_written(folder, outcome)
        if not complaint and outcome.code == 0:
            complaint = "garbage: accepted" if garbage else _unsound(folder)
        return f"case {case}: {victim.relative_to(folder)} by {chosen.arguments}", complaint
    finally:
        shutil.rmtree(folder)


def _half_written(folder: Path, outcome: Outcome) -> str:
    litter = [path.name for path in folder.rglob(".*")]
    if litter:
        return f"litter: {litter}"
    left = [path.name for path in folder.iterdir() if path.name.startswith("out")]
    return f"half-written: exit {outcome.code} and yet {left}" if outcome.code and left else ""


def _unsound(folder: Path) -> str:
    """What is wrong with the file that was made of a damaged one, if anything."""
    from atpgraph import ATP, Reachability

    model, vectors = folder / "out.npz", folder / "out" / "source.npy"
    try:
        if vectors.exists() and not np.isfinite(np.load(vectors)).all():
            return "garbage: vectors that are not finite were exported"
        if model.exists():
            with np.load(model) as archive:
                kind = ATP if "source" in archive.files else Reachability
            kind.load(model)
    except Exception as error:
        return f"garbage: what was written cannot be read: {error}"
    return ""


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
        assert _names(folder) == clean, (point, _names(folder), clean)
        shutil.rmtree(folder)
    return kills


def _names(folder: Path) -> list[str]:
    """Files below a folder; names that are drawn at random count by what they begin with."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(re.sub(r"tables-\w+", "tables", name) for name in found)


def same(first: Path, second: Path) -> bool:
    """Whether two files or folders hold the same.

    The names of tables are drawn at random, and pages and logs hold times: those only have to be
    whole.
    """
    if first.is_dir() != second.is_dir():
        return False
    if first.is_dir():
        mine, others = (
            {
                re.sub(r"tables-\w+", "tables", path.name): path
                for path in folder.iterdir()
                if ".atp-" not in path.name  # of the killed run; the next one sweeps it away
            }
            for folder in (first, second)
        )
        return mine.keys() == others.keys() and all(
            same(path, others[name]) for name, path in mine.items()
        )
    if first.suffix == ".json":
        return isinstance(json.loads(first.read_text()), (dict, list))
    if first.suffix == ".html":
        return first.read_text().rstrip().endswith("</html>")
    return filecmp.cmp(first, second, shallow=False)


def attack_writer(
    world: Path, name: str, scratch: Path, points: Callable[[int], Iterator[int]]
) -> int:
    """Kill one command over nothing and over an old result; the number of kills."""
    writer = WRITERS[name]
    old, new = scratch / "old", scratch / "new"
    for folder, other in ((old, True), (new, False)):
        folder.mkdir()
        made = run(*writer.typed(world, folder, other=other))
        assert made.code == 0, made.stderr

    def over_old(folder: Path) -> list[str]:
        for output in writer.outputs:
            _copy(old / output, folder / output)
        return over_nothing(folder)

    def over_nothing(folder: Path) -> list[str]:
        return writer.typed(world, folder)

    def old_or_new(folder: Path) -> None:
        for output in writer.outputs:
            path = folder / output
            assert same(path, old / output) or same(path, new / output), output

    def nothing_or_new(folder: Path) -> None:
        for output in writer.outputs:
            path = folder / output
            assert not path.exists() or same(path, new / output) or _empty(path), output

    kills = 0
    for label, prepare, check in (
        ("fresh", over_nothing, nothing_or_new),
        ("again", over_old, old_or_new),
    ):
        inside = scratch / label
        inside.mkdir()
        kills += kill_everywhere(prepare, check, inside, points)
    return kills


def _empty(path: Path) -> bool:
    return path.is_dir() and all(entry.name.startswith(".") for entry in path.iterdir())


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
