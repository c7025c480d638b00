"""Run the stages of a fit: in this process, with checkpoints, or on a Dask cluster.

Everything that is distributed goes through one ``map``: a function, a list of small tasks, and the
arrays that all tasks read. Threads read the arrays directly; workers of a cluster map them from the
work folder, which they share with this process.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from atpgraph._version import __version__
from atpgraph.embedding.settings import checked
from atpgraph.errors import AtpError, InputError, MissingDependencyError
from atpgraph.factorization import RowMap
from atpgraph.graph.archive import graph_arrays
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.checkpoints import WorkFolder, digest, read_stage
from atpgraph.util.files import remove_folder

ANSWERS = "10s"  # time for a scheduler to answer
LOOPBACK = "127.0.0.1"
# Parameters that may change between two runs of a job, since the result does not depend on them.
_FREE = ("n_jobs", "verbose")


class Run(NamedTuple):
    """Where a fit keeps its checkpoints, and what runs half a round instead of threads, if set."""

    folder: WorkFolder
    rows: RowMap | None


@contextlib.contextmanager
def open_run(
    path: str | os.PathLike[str] | None, client: Any, graph: DiGraph, params: dict[str, Any]
) -> Iterator[Run]:
    """Open the work folder of a fit with these parameters, and use the workers of a Dask client."""
    if path is None:
        raise InputError("A cluster needs a work folder that all its workers share.")
    if callable(params["kernel"]):
        raise InputError("A fit with a work folder needs a kernel by its name, not a function.")
    if not isinstance(params["random_state"], Integral):
        raise InputError("A fit with a work folder needs a whole number as random_state.")
    if client is not None and checked(params)["purpose"] != "reachability":
        raise InputError("A cluster can only fit purpose='reachability'.")
    relevant = {name: value for name, value in params.items() if name not in _FREE}
    job = {"graph": digest(graph_arrays(graph)), "version": __version__} | relevant
    folder = WorkFolder(Path(path), job)
    with folder.held():
        yield Run(folder, None if client is None else ClusterMap(client, folder))


@contextlib.contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Open a Dask client for an address, a scheduler file, or ``local:N`` (N local workers)."""
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise MissingDependencyError("distributed", "dask", "A scheduler") from None
    kind, _, number = scheduler.partition(":")
    if kind == "local":
        if not number.isdecimal() or int(number) < 1:
            raise InputError(
                f"{scheduler!r} does not give the number of workers; write local:2, for example."
            )
        from atpgraph.util.threads import thread_count

        threads = max(thread_count(None) // int(number), 1)
        # A killed worker is restarted. On a busy machine that can take longer than the 15 s after
        # which Dask gives the worker up for good, and the job would wait forever.
        patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
        with patient, _local_cluster(int(number), threads) as cluster:
            yield from _until_closed(Client(cluster))
        return
    where = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**where, timeout=ANSWERS)
    except (OSError, ValueError, TimeoutError) as error:
        # A client that could not connect leaves the thread of its event loop running, and only
        # the frames of the error know the client.
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if isinstance(failed := frame.f_locals.get("self"), Client):
                failed._loop_runner.stop()
        raise InputError(
            f"No Dask scheduler answers at {scheduler}; start one with 'dask scheduler'."
        ) from error
    yield from _until_closed(client)


def _until_closed(client: Any) -> Iterator[Any]:
    """Yield a client, then close it and the thread of its event loop."""
    try:
        yield client
    finally:
        client.close()
        # If the scheduler is lost, the client closes itself and close() leaves the thread running.
        client._loop_runner.stop()


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


class ClusterMap:
    """Run tasks on the workers of a Dask client, which see the folder under the same path."""

    def __init__(self, client: Any, folder: WorkFolder) -> None:
        self._client, self._folder, self._calls = client, folder, 0

    def __call__(
        self, work: Callable[[Any, Any], Any], tasks: Sequence[Any], given: Any
    ) -> Iterator[Any]:
        """Return ``work(task, given)`` for every task, in the order of the tasks.

        The type of `given` has `arrays`, its content by name, and `of`, which rebuilds it.
        """
        from distributed import KilledWorker

        self._calls += 1
        name = f"tasks-{self._calls}"
        folder = self._folder.path / name
        remove_folder(folder)  # left by a run that was killed
        self._folder.put(name, given.arrays(), {})
        future = None
        try:
            # By name: before 2025, Dask calls a function that begins a tuple.
            shared = {"work": work, "kind": type(given), "folder": str(folder.resolve())}
            for future in self._client.map(_run_task, tasks, pure=False, **shared):
                yield future.result()
        except KilledWorker as error:
            raise AtpError(
                f"A task killed every worker that it ran on; see their logs. {self._resumes}"
            ) from error
        except Exception as error:
            if future is not None and future.status == "error":
                raise  # the task's own error
            raise AtpError(f"The Dask scheduler is lost. {self._resumes}") from error
        finally:
            remove_folder(folder)

    @property
    def _resumes(self) -> str:
        return f"Rerun the same command to resume from {self._folder.path}."


def _run_task(task: Any, work: Callable[[Any, Any], Any], kind: Any, folder: str) -> Any:
    """Run one task on a worker."""
    return work(task, _shared(kind, folder, (Path(folder) / "facts.json").stat().st_mtime_ns))


@lru_cache(maxsize=1)
def _shared(kind: Any, folder: str, written: int) -> Any:
    """Map the arrays of a folder; the tasks of a worker share them."""
    return kind.of(read_stage(Path(folder), check=False)[0])
