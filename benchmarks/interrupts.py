"""How long Ctrl-C waits, in every stage of the long commands.

Run: python benchmarks/interrupts.py [--nodes 150000] [--presses 6] [--seed 0] [--output FILE]
     [--names path,cycle,random,sketch,purpose,links,ingest,train]

listening: the command runs once with a timer that ticks every 20 ms. Python hears a signal only
between two of its own steps, so the longest time between two ticks that it heard is the longest
that Ctrl-C could have to wait, at whatever moment it is pressed. presses: Ctrl-C is pressed on a
terminal at random moments of that run, and the time to the end of the process is taken; exit code,
cursor and litter are looked at too.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, Report, arguments, markdown

from atpgraph import DiGraph, write_edgelist
from atpgraph.cli import main as atp
from atpgraph.graph import generators

TICK = 0.02
SHOWN = 3  # longest waits of a command that the table shows


@dataclass(frozen=True)
class Long:
    """A command that takes long: how its input is made, and what is typed."""

    prepare: Callable[[Path, int], object]
    typed: str


def _path(folder: Path, _: int) -> None:
    nodes = np.arange(10**6)
    write_edgelist(DiGraph.from_codes(nodes[:-1], nodes[1:], len(nodes)), folder / "g.txt")


def _cycle(folder: Path, _: int) -> None:
    nodes = np.arange(10**6)
    write_edgelist(DiGraph.from_codes(nodes, np.roll(nodes, -1), len(nodes)), folder / "g.txt")


def _random(folder: Path, n: int) -> None:
    graph = generators.noisy_hierarchy(n, 4 * n, n // 4, random_state=0).graph
    write_edgelist(graph, folder / "g.txt")


def _dump(folder: Path, n: int) -> None:
    people = str(n // 15)
    words = f"generate community -o {folder}/dump --users {people} --questions {n // 5} --quiet"
    subprocess.run([sys.executable, "-m", "atpgraph", *words.split()], check=True)


def _site(folder: Path, n: int) -> None:
    _dump(folder, n)
    words = f"cqa ingest {folder}/dump -o {folder}/site --quiet"
    subprocess.run([sys.executable, "-m", "atpgraph", *words.split()], check=True)


COMMANDS = {
    "path": Long(_path, "embed {d}/g.txt -o {d}/out.npz"),
    "cycle": Long(_cycle, "embed {d}/g.txt -o {d}/out.npz"),
    "random": Long(_random, "embed {d}/g.txt -o {d}/out.npz"),
    "sketch": Long(_random, "embed {d}/g.txt -o {d}/out.npz --closure sketch"),
    "purpose": Long(_random, "embed {d}/g.txt -o {d}/out.npz --purpose links --closure sketch"),
    "links": Long(_random, "links fit {d}/g.txt -o {d}/out.npz"),
    "ingest": Long(_dump, "cqa ingest {d}/dump -o {d}/out"),
    "train": Long(_site, "cqa train {d}/site -o {d}/out"),
}


def listen(heard: Path, typed: list[str]) -> None:
    """Run a command here; write how long it was deaf, and where it was when it heard again."""
    ticks: list[tuple[float, float, str]] = []
    before = time.perf_counter(), time.process_time()

    def tick(_: int, frame: Any) -> None:
        nonlocal before
        now = time.perf_counter(), time.process_time()
        if now[0] - before[0] > 0.2:
            ticks.append((now[0] - before[0], now[1] - before[1], _place(frame)))
        before = now

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    sys.argv = ["atp", *typed]
    try:
        atp()
    except SystemExit as stop:
        if stop.code:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        heard.write_text(json.dumps(sorted(ticks, reverse=True)))


def _place(frame: Any) -> str:
    """The innermost two places of ours on the stack."""
    names = []
    while frame is not None and len(names) < 2:
        file = Path(frame.f_code.co_filename)
        if "atpgraph" in file.parts and file.stem != "threads":
            names.append(f"{file.stem}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names)


def listening(names: list[str], folders: dict[str, Path]) -> Iterator[list[object]]:
    """The longest waits of each command."""
    for name in names:
        folder, heard = folders[name], folders[name] / "heard.json"
        typed = COMMANDS[name].typed.format(d=folder).split()
        command = [sys.executable, __file__, "--listen", str(heard), *typed]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        spent = time.perf_counter() - start
        waits = json.loads(heard.read_text())
        for wall, cpu, place in waits[:SHOWN] or [(TICK, TICK, "everywhere")]:
            yield [name, round(spent, 1), round(wall, 2), round(cpu, 2), place]
        _clear(folder)


def _clear(folder: Path) -> None:
    for path in folder.glob("out*"):
        subprocess.run(["rm", "-r", str(path)], check=True)


@dataclass(frozen=True)
class Pressed:
    """How a command ended after Ctrl-C."""

    stage: str
    seconds: float
    code: int
    cursor: bool
    left: list[str]


def press(typed: list[str], folder: Path, after: float) -> Pressed | None:
    """Press Ctrl-C so many seconds after the start; None if the command ended before."""
    names = sorted(path.name for path in folder.iterdir())
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "atpgraph", *typed], stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, env={**os.environ, "TERM": "xterm-256color"}, cwd=ROOT,
    )  # fmt: skip
    os.close(theirs)
    begin, pressed, shown = time.monotonic(), 0.0, b""
    while True:
        if not pressed and time.monotonic() - begin > after:
            pressed = time.monotonic()
            stage = _stage(shown)
            started.send_signal(signal.SIGINT)
        if select.select([ours], [], [], 0.02)[0]:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
    code = started.wait()
    ended = time.monotonic()
    os.close(ours)
    left = sorted(path.name for path in folder.iterdir())
    if not pressed or code == 0:
        _clear(folder)
        return None
    cursor = shown.rfind(b"\x1b[?25h") >= shown.rfind(b"\x1b[?25l")
    return Pressed(
        stage, ended - pressed, code, cursor, [name for name in left if name not in names]
    )


def _stage(shown: bytes) -> str:
    """The last bar on the screen."""
    text = re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", shown).decode("utf-8", "replace")
    bars = re.findall(r"[⠀-⣿] ([\w ]+?) +[━╸╺]", text)
    return bars[-1].strip() if bars else "start"


def presses(
    names: list[str], folders: dict[str, Path], spent: dict[str, float], count: int, seed: int
) -> Iterator[list[object]]:
    """Ctrl-C at random moments of each command."""
    rng = np.random.default_rng(seed)
    for name in names:
        typed = COMMANDS[name].typed.format(d=folders[name]).split()
        moments = (np.arange(count) + rng.random(count)) / count * spent[name]
        ends = [end for at in moments if (end := press(typed, folders[name], at)) is not None]
        if not ends:
            yield [name, 0, *[None] * 6]
            continue
        worst = max(ends, key=lambda end: end.seconds)
        yield [
            name, len(ends), float(np.median([end.seconds for end in ends])), worst.seconds,
            worst.stage, sum(end.code != 130 for end in ends),
            sum(not end.cursor for end in ends), sum(bool(end.left) for end in ends),
        ]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(COMMANDS))
    parser.add_argument("--presses", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = options.names.split(",")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    report = Report("How long Ctrl-C waits", " ".join(["python", *sys.argv]), options.output)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {}
        for name in names:
            folders[name] = Path(scratch) / name
            folders[name].mkdir()
            COMMANDS[name].prepare(folders[name], options.nodes)
        rows = list(listening(names, folders))
        columns = ["command", "run s", "deaf for s", "CPU s meanwhile", "heard again at"]
        report.add(markdown(columns, rows))
        if options.presses:
            spent = {str(row[0]): float(str(row[1])) for row in rows}
            columns = ["command", "presses", "median s", "longest s", "its stage",
                       "exit code not 130", "cursor hidden", "litter"]  # fmt: skip
            found = presses(names, folders, spent, options.presses, options.seed)
            report.add(markdown(columns, found))
    report.save()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--listen"]:
        listen(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
