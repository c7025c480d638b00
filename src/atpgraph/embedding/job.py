"""A fit in stages, each done once: in memory, or kept in a folder that survives the process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from atpgraph._version import __version__
from atpgraph.closure import HeldClosure, closure_from, parts_of
from atpgraph.cycles import CycleBreak
from atpgraph.embedding import purposes
from atpgraph.embedding.spread import Spread, parts_of_break
from atpgraph.errors import InputError
from atpgraph.graph.archive import graph_arrays
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Int32Array, Int64Array
from atpgraph.util.checkpoints import Loop, WorkFolder, digest

# What may be changed between two runs of a job, since the result does not depend on it.
_FREE = ("n_jobs", "verbose", "memory")


class Job:
    """The stages of one fit.

    Parameters
    ----------
    folder : WorkFolder, optional
        Where they are kept; by default nowhere.
    spread : Spread, optional
        Who does them; by default this process.
    n_jobs : int, optional
        Threads of this process; by default all cores.
    """

    def __init__(
        self,
        folder: WorkFolder | None = None,
        spread: Spread | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._folder, self.spread, self._n_jobs = folder, spread, n_jobs

    @classmethod
    @contextlib.contextmanager
    def at(
        cls,
        path: str | os.PathLike[str] | None,
        graph: DiGraph,
        params: dict[str, Any],
        client: Any = None,
    ) -> Iterator[Job]:
        """The job of fitting a graph with these parameters, kept in a folder if one is named, and
        done by the workers of a Dask client if one is given.
        """
        if path is None and client is not None:
            raise InputError("A cluster needs a work folder that all its workers share.")
        if path is None:
            yield cls()
            return
        if callable(params["kernel"]):
            raise InputError("A job with a work folder needs a kernel by its name, no function.")
        if not isinstance(params["random_state"], int):
            raise InputError("A job with a work folder needs a whole number as random_state.")
        kept = {name: value for name, value in params.items() if name not in _FREE}
        job = {"graph": digest(graph_arrays(graph)), "version": __version__} | kept
        folder = WorkFolder(Path(path), job)
        with folder.held():
            if client is None:
                yield cls(folder, n_jobs=params["n_jobs"])
                return
            spread = Spread(client, folder, params | {"solver": purposes.check(params)})
            spread.share(graph)
            yield cls(folder, spread, params["n_jobs"])

    def removed(self, work: Callable[[], CycleBreak]) -> tuple[Int64Array, str]:
        """The edges whose removal breaks the cycles, and the method that chose them."""
        if self._folder is None:
            broken = work()
            return broken.removed, broken.method
        if self.spread is not None and not self._folder.has("cycles"):
            self.spread.cycles()
        parts, facts = self._folder.stage("cycles", lambda: parts_of_break(work()))
        return parts["removed"], str(facts["method"])

    def closure(
        self, dag: DiGraph, levels: Int32Array, memory: int, work: Callable[[], HeldClosure]
    ) -> HeldClosure:
        """Who reaches whom; the arrays are mapped if they are kept."""
        if self._folder is None:
            return work()
        if self.spread is not None and not self._folder.has("closure"):
            self.spread.closure(memory)
        kept = self._folder.stage("closure", lambda: parts_of(work()))
        return closure_from(dag, levels, *kept, self._n_jobs)

    def loop(self) -> Loop | None:
        """Where the factorisation keeps its state."""
        return None if self._folder is None else self._folder.loop("vectors")
