"""kill −9 before the file operations of every command that writes: old or new, never a mixture."""

from __future__ import annotations

import filecmp
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .campaign import kill_everywhere
from .forked import run

POINTS = 3  # of a command in the fast run: the first, the last, and some between


def spread_out(count: int) -> Iterator[int]:
    """A few of the numbers from 1 to `count`, both ends among them."""
    yield from sorted({round(1 + (count - 1) * i / (POINTS - 1)) for i in range(POINTS)})


def same(first: Path, second: Path) -> bool:
    """Whether two files or folders hold the same; the names of tables are drawn at random."""
    if first.is_dir() != second.is_dir():
        return False
    if not first.is_dir():
        return filecmp.cmp(first, second, shallow=False)

    def names(folder: Path) -> dict[str, Path]:
        return {re.sub(r"tables-\w+", "tables", path.name): path for path in folder.iterdir()}

    mine, others = names(first), names(second)
    return mine.keys() == others.keys() and all(
        path.suffix == ".json" or same(path, others[name]) for name, path in mine.items()
    )


COMMANDS = {
    "embed": ("embed {w}/{graph} --dim 4 -o {d}/out.npz", ["out.npz"]),
    "break-cycles": ("break-cycles {w}/{graph} -o {d}/out.txt", ["out.txt"]),
    "hierarchy": ("hierarchy {w}/{graph} -o {d}/out.csv", ["out.csv"]),
    "export": ("export {w}/{model} --format word2vec -o {d}/out", ["out"]),
    "community": (
        "generate community --questions {n} --users 9 --topics 2 -o {d}/out", ["out"],
    ),
    "ingest": ("cqa ingest {w}/{dump} -o {d}/out", ["out"]),
    "train": ("cqa train {w}/site -o {d}/out", ["out"]),
}  # fmt: skip
# What a command reads, and what it read when it made the old result.
INPUT = {"graph": "graph.txt", "model": "model.npz", "dump": "dump", "n": 20}
OTHER = {"graph": "words.csv", "model": "words.npz", "dump": "dump2", "n": 30}


def attack(world: Path, name: str, scratch: Path, points: Callable[[int], Iterator[int]]) -> int:
    """Kill one command over nothing and over an old result; the number of kills."""
    typed, outputs = COMMANDS[name]
    old = scratch / "old"
    old.mkdir()
    made = run(*typed.format(w=world, d=old, **OTHER).split())
    assert made.code == 0, made.stderr
    new = scratch / "new"
    new.mkdir()
    assert run(*typed.format(w=world, d=new, **INPUT).split()).code == 0

    def over_old(folder: Path) -> list[str]:
        for output in outputs:
            _copy(old / output, folder / output)
        return over_nothing(folder)

    def over_nothing(folder: Path) -> list[str]:
        return typed.format(w=world, d=folder, **INPUT).split()

    def old_or_new(folder: Path) -> None:
        for output in outputs:
            path = folder / output
            assert same(path, old / output) or same(path, new / output), output

    def nothing_or_new(folder: Path) -> None:
        for output in outputs:
            path = folder / output
            assert not path.exists() or same(path, new / output), output

    kills = 0
    for label, prepare, check in (
        ("fresh", over_nothing, nothing_or_new),
        ("again", over_old, old_or_new),
    ):
        inside = scratch / label
        inside.mkdir()
        kills += kill_everywhere(prepare, check, inside, points)
    return kills


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"train"}))  # train: make attack
def test_killed_before_a_file_operation(world, tmp_path, name) -> None:
    assert attack(world, name, tmp_path, spread_out) > 0
