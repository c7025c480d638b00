"""``make attack``: the long form of the attack, with its counts.

python -m tests.attack [--inputs 100000] [--kills 500] [--jobs 2] [--seed 0]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .campaign import damage_one
from .test_kills import COMMANDS, attack
from .world import READERS, build


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "world"
        root.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            build(root)
        complaints = _inputs(root, Path(folder), arguments)
        killed, wrong = _kills(root, Path(folder), arguments.kills)
    print(f"{arguments.inputs:,} damaged inputs, {sum(complaints.values())} complaints")
    for what, count in complaints.most_common(50):
        print(f"  {count} × {what}")
    print(f"{killed:,} kills, {len(wrong)} of the commands left something wrong")
    for line in wrong:
        print(f"  {line}")
    return bool(complaints or wrong)


def _inputs(world: Path, scratch: Path, arguments: argparse.Namespace) -> Counter[str]:
    first = arguments.seed * arguments.inputs
    shares = [range(first + i, first + arguments.inputs, arguments.jobs)
              for i in range(arguments.jobs)]  # fmt: skip
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        parts = pool.starmap(_share, [(world, scratch / f"job-{i}", share)
                                      for i, share in enumerate(shares)])  # fmt: skip
    return sum(parts, Counter())


def _share(world: Path, scratch: Path, cases: range) -> Counter[str]:
    scratch.mkdir()
    complaints: Counter[str] = Counter()
    spoken = time.monotonic()
    for done, case in enumerate(cases):
        what, complaint = damage_one(world, scratch, case)
        if complaint:
            command = " ".join(READERS[case % len(READERS)].arguments[:2])
            complaints[f"{command}: {complaint[:200]} (first: {what})"] += 1
        if time.monotonic() - spoken > 60:
            spoken = time.monotonic()
            print(f"{done:,} of {len(cases):,} inputs, {sum(complaints.values())} complaints",
                  file=sys.stderr, flush=True)  # fmt: skip
    return complaints


def _kills(world: Path, scratch: Path, wanted: int) -> tuple[int, list[str]]:
    """Kill every command at every point, as often as it takes to reach the number."""
    killed, wrong, turn = 0, [], 0
    while killed < wanted and not wrong:
        for name in COMMANDS:
            inside = scratch / f"kills-{turn}-{name}"
            inside.mkdir()
            try:
                killed += attack(world, name, inside, lambda count: iter(range(1, count + 1)))
            except AssertionError as error:
                wrong.append(f"{name}: {error}")
        turn += 1
    return killed, wrong


if __name__ == "__main__":
    sys.exit(main())
