"""Jobs that survive and clusters: kills at random moments, Dask against threads.

python benchmarks/cluster.py --sections kills,workers --output benchmarks/results/cluster.md
python benchmarks/cluster.py --sections dask --nodes 1000000 --edges 5000000 --output …

The cluster is a scheduler and workers as processes of their own, started as by hand; the bytes that
are compared are those of the model files. Results of a section replace those of the same section in
the file.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _common import markdown
from _scale import STAGES, embed, options_of, run, show, staged, uniform

Told = Iterator[tuple[str, str]]
CASES = (("reachability", "6"),)


class Cluster:
    """A scheduler and workers of one thread each, without nannies."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.file = folder / "scheduler.json"
        self._folder = folder
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        while not self.file.exists():
            time.sleep(0.1)
        self.workers = [self.worker() for _ in range(workers)]

    def _start(self, kind: str, *more: str) -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{kind}"
        given = [sys.executable, "-m", module, "--scheduler-file", str(self.file), *more]
        with (self._folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(given, stdout=log, stderr=log, cwd=self._folder)

    def worker(self) -> subprocess.Popen[bytes]:
        """One more worker."""
        more = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--no-dashboard")
        return self._start("worker", *more)

    def kill_one(self, which: int) -> None:
        """``kill -9`` of a worker; another takes its place."""
        os.kill(self.workers[which].pid, signal.SIGKILL)
        self.workers[which].wait()
        self.workers[which] = self.worker()

    def cpu(self) -> float:
        """CPU seconds of the workers so far."""
        tick = os.sysconf("SC_CLK_TCK")
        stats = (Path(f"/proc/{worker.pid}/stat").read_text() for worker in self.workers)
        return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats) / tick

    def end(self) -> None:
        """End all of it; a worker may wait for ever for a scheduler that went first."""
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A cluster for a block."""
    place = Path(tempfile.mkdtemp(dir=folder))
    found = Cluster(place, workers)
    try:
        yield found
    finally:
        found.end()


@contextlib.contextmanager
def killing(held: Cluster, most: int, rng: random.Random) -> Iterator[list[int]]:
    """Kill workers while a block runs; the list holds those that were."""
    ended = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while len(killed) < most and not ended.wait(rng.uniform(0.5, 4.0)):
            killed.append(rng.randrange(len(held.workers)))
            held.kill_one(killed[-1])

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        ended.set()
        killer.join()


def kills(options: Any) -> Told:
    """Whole jobs killed at random moments, then resumed."""
    rng = random.Random(0)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        for purpose, rounds in CASES:
            more = ["--purpose", purpose, "--max-iter", rounds]
            _, spent = run(embed(graph, folder / "whole.npz", *more))
            work = folder / f"work-{purpose}"
            command = embed(graph, folder / "model.npz", *more, "--work", str(work))
            killed = 0
            ended: list[bool] = []
            while killed < options.kills or work.exists():
                child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                moment = rng.uniform(0.1, 1.0) * spent["wall"]
                try:
                    child.wait(moment if killed < options.kills else None)
                except subprocess.TimeoutExpired:
                    os.kill(child.pid, signal.SIGKILL)
                    child.wait()
                    killed += 1
                    continue
                model, whole = (folder / "model.npz", folder / "whole.npz")
                ended.append(model.read_bytes() == whole.read_bytes())
                shutil.rmtree(work)
            rows.append([purpose, killed, len(ended), "yes" if all(ended) else "NO"])
    text = f"{options.nodes:,} nodes, {options.edges:,} edges; `kill -9` at a random moment of a "
    text += "run, then the same command again, until it ends; from the start with a new folder, as "
    text += "long as there were fewer kills than asked for:"
    columns = ["purpose", "kills", "ended", "same bytes"]
    yield "the whole job killed", f"{text}\n\n" + markdown(columns, rows)


def workers(options: Any) -> Told:
    """Workers killed at random moments of one job."""
    rng = random.Random(0)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        for purpose, rounds in CASES:
            more = ["--purpose", purpose, "--max-iter", rounds]
            run(embed(graph, folder / "whole.npz", *more))
            work = folder / f"work-{purpose}"
            with cluster(folder, 2) as held:
                spread = [*more, "--work", str(work), "--scheduler", str(held.file)]
                with killing(held, options.kills, rng) as killed:
                    run(embed(graph, folder / "model.npz", *spread))
            same = (folder / "model.npz").read_bytes() == (folder / "whole.npz").read_bytes()
            rows.append([purpose, len(killed), "yes" if same else "NO"])
    text = f"{options.nodes:,} nodes, {options.edges:,} edges, a scheduler and two workers; up to "
    text += f"{options.kills} times in one job, half a second to four apart, `kill -9` of one of "
    text += "them, another takes its place:"
    columns = ["purpose", "kills", "same bytes"]
    yield "workers killed", f"{text}\n\n" + markdown(columns, rows)


def dask(options: Any) -> Told:
    """A cluster on this machine against threads."""
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        more = ["--purpose", options.purpose, "--method", options.method]
        more += ["--max-iter", str(options.rounds)]
        first = None
        for way in options.ways.split(","):
            kind, _, number = way.partition(":")
            if kind == "threads":
                told, spent = run(embed(graph, folder / "model.npz", *more, "--threads", number))
                cpu = spent["cpu"]
            else:
                with cluster(folder, int(number)) as held:
                    work = ["--work", str(folder / f"work-{number}")]
                    spread = [*more, *work, "--scheduler", str(held.file)]
                    told, spent = run(embed(graph, folder / "model.npz", *spread))
                    cpu = spent["cpu"] + held.cpu()
            model = (folder / "model.npz").read_bytes()
            first = first or model
            same = "yes" if model == first else "NO"
            rows.append([way, *staged(told), f"{spent['wall']:.0f}", f"{cpu:.0f}", same])
            print(rows[-1], file=sys.stderr, flush=True)
    text = f"Uniform random graph, {options.nodes:,} nodes, {options.edges:,} edges, "
    text += f"{options.purpose}, {options.rounds} iterations, sketches, `--method {options.method}`"
    text += "; wall seconds by stage, workers of one thread:"
    name = f"{options.purpose}: {options.nodes:,} nodes, {options.edges:,} edges"
    columns = ["way", *STAGES, "wall s", "CPU s", "same bytes"]
    yield name, f"{text}\n\n" + markdown(columns, rows)


SECTIONS: dict[str, Callable[[Any], Told]] = {"kills": kills, "workers": workers, "dask": dask}


def main() -> None:
    """Run the sections asked for."""
    parser = options_of(__doc__ or "", SECTIONS)
    parser.set_defaults(nodes=20_000, edges=60_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--purpose", default="links", help="for dask")
    parser.add_argument("--rounds", type=int, default=3, help="for dask")
    parser.add_argument(
        "--ways", default="threads:1,threads:2,workers:1,workers:2", help="for dask"
    )
    show("Jobs that survive, and clusters", SECTIONS, parser.parse_args())


if __name__ == "__main__":
    main()
