"""``make attack``: the long form of the attack, with its counts.

python -m tests.attack [--inputs 100000] [--kills 500] [--jobs 2] [--seed 0] [--minutes 60]
                       [--state build/attack.json]

What was done is kept in the state file; the same command goes on from there. `--minutes` ends it
early with the counts so far.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .campaign import attack_writer, damage_many
from .test_options import COMMANDS, odd_options
from .test_options import complaints as odd_values
from .world import WRITERS, build

KINDS = {
    "traceback": "tracebacks",
    "bug": '"a bug in atpgraph"',
    "crash": "crashes",
    "hang": "hangs over 20 s",
    "memory": "memory over budget + 1 GB",
    "half-written": "half-written or mixed outputs",
    "litter": "litter after the next successful run",
    "garbage": "garbage accepted",
    "terminal": "control characters on the terminal",
    "sentence": "errors that are not one sentence",
    "option": "odd values of options that trip a command",
}
PART = 100  # cases between two notes in the state file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--state", type=Path, default=Path("build/attack.json"))
    options = parser.parse_args()
    options.until = time.monotonic() + 60 * options.minutes
    state = State(options)
    memory = Path("/dev/shm")  # a disk would wait for every file of the attack
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        root = Path(folder) / "world"
        root.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            build(root)
        _kills(root, Path(folder), options, state)
        _odd_options(root, Path(folder), options, state)
        _inputs(root, Path(folder), options, state)
    print(state)
    return bool(state.complaints)


class State:
    """What was tried so far, in a file from which the next run goes on."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path, self.seed = options.state, options.seed
        self.inputs = self.kills = self.turns = self.options = 0
        self.seconds = 0.0
        self.complaints: Counter[str] = Counter()
        if self.path.exists():
            known = json.loads(self.path.read_text())
            if known["seed"] == self.seed:
                self.inputs, self.kills, self.turns, self.options = (
                    known[name] for name in ("inputs", "kills", "turns", "options")
                )
                self.seconds, self.complaints = known["seconds"], Counter(known["complaints"])
        self._started = time.monotonic() - self.seconds

    def write(self) -> None:
        self.seconds = time.monotonic() - self._started
        names = ("seed", "inputs", "kills", "turns", "options", "seconds", "complaints")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({name: getattr(self, name) for name in names}, indent=1))
        new.replace(self.path)

    def __str__(self) -> str:
        counts: Counter[str] = Counter()
        for what, count in self.complaints.items():
            counts[what.partition(":")[0]] += count
        lines = [
            f"{self.inputs:,} damaged inputs, {self.kills:,} kills, {self.options:,} odd options, "
            f"{self.seconds:,.0f} s"
        ]
        lines += [f"{counts[kind]:6} {name}" for kind, name in KINDS.items()]
        lines += [f"  {count} × {what}" for what, count in self.complaints.most_common(50)]
        return "\n".join(lines)


def _inputs(world: Path, scratch: Path, options: argparse.Namespace, state: State) -> None:
    first = options.seed * 10**9

    def parts() -> Iterator[tuple[Path, Path, range]]:
        for start in range(state.inputs, options.inputs, PART):
            if time.monotonic() > options.until:
                return
            stop = min(start + PART, options.inputs)
            yield world, scratch / f"part-{start}", range(first + start, first + stop)

    spoken = time.monotonic()
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        # A few at a time: imap would take all parts at once, and never look at the clock again.
        todo = parts()
        while some := [part for _, part in zip(range(options.jobs), todo, strict=False)]:
            for done, complaints in pool.starmap(_part, some):
                state.inputs += done
                state.complaints += complaints
            state.write()
            if time.monotonic() - spoken > 60:
                spoken = time.monotonic()
                print(f"{state.inputs:,} of {options.inputs:,} inputs, "
                      f"{sum(state.complaints.values())} complaints",
                      file=sys.stderr, flush=True)  # fmt: skip


def _odd_options(world: Path, scratch: Path, options: argparse.Namespace, state: State) -> None:
    """Every option with every odd value, once."""
    cases = [case for case in odd_options() if case[0] in COMMANDS]
    while state.options < len(cases) and time.monotonic() < options.until:
        some = cases[state.options : state.options + PART]
        inside = scratch / f"options-{state.options}"
        inside.mkdir()
        for wrong in odd_values(world, inside, some):
            state.complaints[f"option: {wrong[:300]}"] += 1
        shutil.rmtree(inside)
        state.options += len(some)
        state.write()


def _part(world: Path, scratch: Path, cases: range) -> tuple[int, Counter[str]]:
    scratch.mkdir()
    complaints: Counter[str] = Counter()
    for what, complaint in damage_many(world, scratch, cases):
        kind, _, text = complaint.partition(": ")
        complaints[f"{kind}: {text[:300]} ({what})"] += 1
    shutil.rmtree(scratch)
    return len(cases), complaints


def _kills(world: Path, scratch: Path, options: argparse.Namespace, state: State) -> None:
    """Kill every command at every point, as often as it takes to reach the number."""
    names = sorted(WRITERS)
    while state.kills < options.kills and time.monotonic() < options.until:
        name = names[state.turns % len(names)]
        inside = scratch / f"kills-{state.turns}"
        inside.mkdir()
        try:
            state.kills += attack_writer(
                world, name, inside, lambda count: iter(range(1, count + 1))
            )
        except AssertionError as error:
            state.complaints[f"half-written: {name}: {str(error)[:300]}"] += 1
        shutil.rmtree(inside)
        state.turns += 1
        state.write()


if __name__ == "__main__":
    sys.exit(main())
