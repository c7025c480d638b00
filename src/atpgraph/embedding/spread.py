"""A fit spread over a Dask cluster: the stages of :mod:`atpgraph.embedding.job` as tasks.

Workers share the work folder. A task reads what it needs from there, mapped, and leaves its result
there, whole or not at all; only names and small numbers travel. So a task that died with its worker
is simply done again, and what is done need not be done again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from atpgraph.closure import (
    ClosureChoice,
    HeldClosure,
    choose_closure,
    closure_from,
    parts_of,
    parts_of_side,
    sketch_side,
)
from atpgraph.cycles import CycleBreak, break_cycles
from atpgraph.embedding import purposes
from atpgraph.embedding.reachability import fit_paths
from atpgraph.errors import AtpError, InputError, MissingDependencyError
from atpgraph.factorization import Factorization, Matrix, Task, learn_range, matrices_of
from atpgraph.graph.archive import graph_arrays, graph_from
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.checkpoints import WorkFolder
from atpgraph.util.files import remove_folder
from atpgraph.util.threads import Workers

T = TypeVar("T")
R = TypeVar("R")

ANSWERS = "10s"  # or there is no scheduler
LOOPBACK = "127.0.0.1"
_PARTS = 64  # of half an iteration, at most: whatever the number of workers


@contextlib.contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """A Dask client for an address, a scheduler file, or ``local:N``: N workers on this machine."""
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise MissingDependencyError("distributed", "dask", "A scheduler") from None
    kind, _, number = scheduler.partition(":")
    if kind == "local":
        if not number.isdecimal() or int(number) < 1:
            raise InputError(f"{scheduler!r} names no number of workers; write local:2.")
        from atpgraph.util.threads import thread_count

        threads = max(thread_count(None) // int(number), 1)
        # A killed worker is restarted. On a busy machine that can take longer than the 15 s after
        # which Dask gives the worker up for good, and the job would wait forever.
        patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
        with patient, _local_cluster(int(number), threads) as cluster, Client(cluster) as client:
            yield client
        return
    where = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**where, timeout=ANSWERS)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler}; start one with 'dask scheduler'."
        ) from error
    with client:
        yield client


def _local_cluster(n_workers: int, threads: int) -> Any:
    """Return a cluster of processes on this machine that listens on the loopback interface only."""
    from distributed import LocalCluster

    class Cluster(LocalCluster):  # type: ignore[misc]
        def _update_worker_status(self, op: str, msg: Any) -> None:
            # Dask replaces its list of workers in wait_for_workers while messages are still on
            # their way. The removal of a worker that is no longer listed raises KeyError there,
            # which ends the task that reads the messages and later stops close() halfway.
            if op != "remove" or msg in self.scheduler_info["workers"]:
                super()._update_worker_status(op, msg)

    # Without an address, the dashboard of the scheduler listens on every interface.
    return Cluster(
        n_workers=n_workers, threads_per_worker=threads, host=LOOPBACK,
        dashboard_address=f"{LOOPBACK}:0",
    )  # fmt: skip


class Spread:
    """The stages of one job as tasks of a Dask client.

    Parameters
    ----------
    client : distributed.Client
    folder : WorkFolder
        On storage that all workers see under the same path.
    params : dict
        Parameters of the estimator.
    """

    def __init__(self, client: Any, folder: WorkFolder, params: dict[str, Any]) -> None:
        self._client, self._folder, self._params = client, folder, params
        self._path = str(folder.path.resolve())

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Results of `work` for every task, in the order of the tasks."""
        from distributed import KilledWorker

        future = None
        try:
            for future in self._client.map(work, tasks, pure=False):
                yield future.result()
        except KilledWorker as error:
            raise AtpError(
                f"A task ended every worker that it ran on; see their logs. {self._goes_on}"
            ) from error
        except Exception as error:
            if future is not None and future.status == "error":
                raise  # what the task itself said
            raise AtpError(f"The Dask scheduler is lost. {self._goes_on}") from error

    @property
    def _goes_on(self) -> str:
        return f"The same command goes on from {self._folder.path} once there is one again."

    def _run(self, work: Callable[[Any], R], *arguments: Any) -> R:
        (result,) = self.map(work, [(self._path, self._params, *arguments)])
        return result

    def share(self, graph: DiGraph) -> None:
        """Put the graph where the workers find it."""
        self._folder.stage("graph", lambda: (graph_arrays(graph), {}))

    def cycles(self) -> None:
        """Break the cycles, on one worker."""
        self._run(do_cycles)

    def closure(self, memory: int) -> None:
        """Find out who reaches whom: a closure forest, on one worker with all its cores, or
        sketches, each side on one.
        """
        sketches = self._run(do_closure, memory)
        if sketches is None:
            return
        reason, size = sketches
        names = [f"sketch-{size}-{side}" for side in range(2)]
        tasks = [(self._path, size, side, name) for side, name in enumerate(names)]
        pairs, _ = self.map(do_sketch, tasks)
        parts = {**self._folder.get(names[0])[0], **self._folder.get(names[1])[0]}
        self._folder.put("closure", parts, {"kind": "sketch", "reason": reason, "pairs": pairs})
        self._clear(*names)

    def pairs(self, table: FloatArray, regularization: float, max_iter: int) -> Factorization:
        """Fit the pairs of a closure forest, on one worker with all its cores: every step needs the
        one before it.
        """
        if not self._folder.has("fit"):
            self._run(do_pairs, table, regularization, max_iter)
        parts, facts = self._folder.get("fit")
        found: dict[str, Any] = {**parts, **facts}
        return Factorization(**found)

    def rows(self, number: int, matrix: Matrix, x: FloatArray, arguments: tuple[Any, ...]) -> float:
        """Solve all rows of half an iteration, in parts; see :func:`do_rows`."""
        tasks = matrix.tasks(x.shape[1])
        parts = np.array_split(np.arange(len(tasks)), min(_PARTS, len(tasks)))
        name = f"half-{number}"
        arrays = {f"argument{at}": value for at, value in enumerate(arguments) if np.ndim(value)}
        numbers = {
            str(at): float(value) for at, value in enumerate(arguments) if not np.ndim(value)
        }
        self._offer(name, arrays | {"x": x}, {"numbers": numbers})
        work = [
            (self._path, name, number % 2, [tasks[at] for at in part.tolist()], f"{name}-{at}")
            for at, part in enumerate(parts)
        ]
        values = [value for some in self.map(do_rows, work) for value in some]
        for _, _, _, some, part in work:
            solved = self._folder.get(part)[0]["x"]
            x[np.concatenate([matrix.rows(task) for task in some])] = solved
        self._clear(name, *(part for *_, part in work))
        return sum(values)

    def learn(self, number: int, given: dict[str, Any], tasks: list[Task]) -> list[Float64Array]:
        """Let the rows of half a round over panels learn, in parts; see :func:`do_learn`."""
        name = f"half-{number}"
        arrays = {key: value for key, value in given.items() if np.ndim(value)}
        numbers = {key: value for key, value in given.items() if not np.ndim(value)}
        self._offer(name, arrays, {"order": list(given), "numbers": numbers})
        parts = np.array_split(np.arange(len(tasks)), min(_PARTS, len(tasks)))
        work = [
            (self._path, name, [tasks[at] for at in part.tolist()], f"{name}-{index}")
            for index, part in enumerate(parts)
        ]
        told = [np.array(value) for some in self.map(do_learn, work) for value in some]
        for *_, some, part in work:
            learnt, rows = self._folder.get(part)[0], _nodes_of(some, given)
            given["near"][rows], given["seen"][rows] = learnt["near"], learnt["seen"]
        self._clear(name, *(part for *_, part in work))
        return told

    def _offer(self, name: str, parts: dict[str, Any], facts: dict[str, Any]) -> None:
        """Put what the tasks need where they find it; what an earlier run left there is checked."""
        if self._folder.has(name):
            self._folder.get(name)
        else:
            self._folder.put(name, parts, facts)

    def _clear(self, *stages: str) -> None:
        for stage in stages:
            remove_folder(self._folder.path / stage)


def do_cycles(task: tuple[str, dict[str, Any]]) -> None:
    """Stage ``cycles``."""
    folder, params = WorkFolder.there(task[0]), task[1]
    graph = graph_from(folder.get("graph")[0])
    found = break_cycles(graph, params["method"], random_state=params["random_state"])
    folder.put("cycles", *parts_of_break(found))


def parts_of_break(found: CycleBreak) -> tuple[dict[str, Int64Array], dict[str, str]]:
    """What stage ``cycles`` keeps."""
    return {"removed": found.removed}, {"method": found.method}


def do_closure(task: tuple[str, dict[str, Any], int]) -> tuple[str, int] | None:
    """Stage ``closure``, if it is a closure forest; else the reason for sketches and their size."""
    folder, params, memory = WorkFolder.there(task[0]), task[1], task[2]
    dag, level = _dag(folder)
    held = choose_closure(
        dag, level, sketch_size=params["sketch_size"], memory=memory, n_jobs=None,
        **purposes.how_to_hold(params["closure"], params["solver"]),
    )  # fmt: skip
    if isinstance(held, ClosureChoice):
        return held.reason, held.sketch_size
    folder.put("closure", *parts_of(held))
    return None


def do_sketch(task: tuple[str, int, int, str]) -> int:
    """The sketches of one side, and the number of pairs."""
    path, size, side, name = task
    folder = WorkFolder.there(path)
    if not folder.has(name):
        with Workers() as workers:
            _, held, n_pairs = sketch_side(*_dag(folder), size, side, workers)
        folder.put(name, parts_of_side(side, held), {"pairs": n_pairs})
    return int(folder.get(name)[1]["pairs"])


def do_pairs(task: tuple[str, dict[str, Any], FloatArray, float, int]) -> None:
    """Stage ``fit``, for the pairs of a closure forest."""
    path, params, table, regularization, max_iter = task
    folder = WorkFolder.there(path)
    dag, level = _dag(folder)
    closure = closure_from(dag, level, *folder.get("closure"))
    fit = fit_paths(
        closure, level, table, n_components=params["n_components"], max_iter=max_iter,
        regularization=regularization, tol=params["tol"], random_state=params["random_state"],
        loop=folder.loop("vectors"),
    )  # fmt: skip
    parts = {"source": fit.source, "target": fit.target, "objective": fit.objective}
    facts = {"n_iter": fit.n_iter, "converged": bool(fit.converged), "margin": float(fit.margin)}
    folder.put("fit", parts, facts)


def do_rows(task: tuple[str, str, int, list[tuple[int, int]], str]) -> list[float]:
    """A part of half an iteration: its rows solved, and the value of each of its ranges."""
    path, name, side, ranges, part = task
    folder = WorkFolder.there(path)
    if not folder.has(part):
        matrix: Any = _matrices(path, (folder.path / "closure").stat().st_mtime_ns)[side]
        parts, facts = folder.get(name)
        given: list[Any] = [None] * (len(parts) - 1 + len(facts["numbers"]))
        for at, number in facts["numbers"].items():
            given[int(at)] = int(number) if number.is_integer() else number
        for at in range(len(given)):
            given[at] = parts.get(f"argument{at}", given[at])
        x = parts["x"]
        table, vectors, *rest = given
        values = [matrix.update(some, table, vectors, x, *rest) for some in ranges]
        rows = np.concatenate([matrix.rows(some) for some in ranges])
        folder.put(part, {"x": x[rows]}, {"values": values})
    return list(folder.get(part)[1]["values"])


def do_learn(task: tuple[str, str, list[Task], str]) -> list[list[float]]:
    """A part of half a round over panels: its vectors, and what each of its ranges tells."""
    path, name, ranges, part = task
    folder = WorkFolder.there(path)
    if not folder.has(part):
        parts, facts = folder.get(name)
        found: dict[str, Any] = {**parts, **facts["numbers"]}
        given = {key: found[key] for key in facts["order"]}
        told = [learn_range(some, given).tolist() for some in ranges]
        rows = _nodes_of(ranges, given)
        folder.put(part, {key: given[key][rows] for key in ("near", "seen")}, {"told": told})
    return list(folder.get(part)[1]["told"])


def _nodes_of(ranges: list[Task], given: dict[str, Any]) -> Int32Array:
    return np.concatenate([given["nodes"][first:stop] for first, stop, _ in ranges])


def _dag(folder: WorkFolder) -> tuple[DiGraph, Int32Array]:
    graph = graph_from(folder.get("graph")[0])
    dag = graph.without_edges(folder.get("cycles")[0]["removed"])
    return dag, levels(dag)


@lru_cache(maxsize=1)
def _matrices(path: str, written: int) -> tuple[Matrix, Matrix]:
    """M by rows and by columns, kept between the tasks of a worker."""
    folder = WorkFolder.there(path)
    dag, level = _dag(folder)
    closure: HeldClosure = closure_from(dag, level, *folder.get("closure"))
    rows, columns = closure.sides
    return matrices_of(rows, columns, level)
