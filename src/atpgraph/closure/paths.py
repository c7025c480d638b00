"""Collect what learning and evaluation need to know about the paths of an acyclic graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atpgraph.closure.panel import COLUMNS, Panel
from atpgraph.closure.panel_round import PanelSource
from atpgraph.closure.sketch import ReachSketch, Sketcher, turned
from atpgraph.closure.swept_paths import SweptPaths
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph.util.threads import Workers, interruptible

_SKETCH = 16  # members: they estimate sizes; pairs are drawn from new sketches in every round
_DRAWS = 16  # per node, when a node's popularity is computed
_SEED = 0  # of the ranks: what is collected depends on the graph alone


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of an acyclic graph: how many there are, and where to draw and look them up.

    Build one with :func:`collect_paths`.

    Attributes
    ----------
    dag : DiGraph
    levels : int32 array
    sizes, back_sizes : int64 arrays
        Number of descendants and of ancestors of every node, estimated above 16.
    popularity, back_popularity : float arrays
        Share of paths that end, and that start, at every node if each node draws 16.
    n_pairs : int
        Number of pairs joined by a path, an estimate on all but small graphs.
    n_jobs : int, optional
        Threads.
    """

    dag: DiGraph
    levels: Int32Array
    sizes: Int64Array
    back_sizes: Int64Array
    popularity: Float64Array
    back_popularity: Float64Array
    n_pairs: int
    n_jobs: int | None = None

    def parts(self) -> dict[str, AnyArray]:
        """Return the arrays that were collected, by name."""
        names = ("sizes", "back_sizes", "popularity", "back_popularity")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def _sketchers(self) -> tuple[Sketcher, Sketcher]:
        """Sketchers for the graph and its reverse."""
        return sketcher(self.dag, self.levels, 0), sketcher(self.dag, self.levels, 1)

    @property
    def sides(self) -> tuple[PanelSource, PanelSource]:
        """What source vectors, and what target vectors learn from."""
        ahead, back = self._sketchers
        return (
            PanelSource(ahead, self.sizes, self.back_sizes, self.popularity),
            PanelSource(back, self.back_sizes, self.sizes, self.back_popularity),
        )

    @property
    def oracle(self) -> SweptPaths:
        """Exact answers about the paths of the graph."""
        return SweptPaths(self._sketchers[1].view, self.sizes, self.n_jobs)


def collect_paths(dag: DiGraph, levels: Int32Array, n_jobs: int | None = None) -> Paths:
    """Sketch the descendants and ancestors of every node of an acyclic graph.

    Examples
    --------
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> collect_paths(dag, levels(dag)).n_pairs
    3
    """
    return interruptible(_collect, dag, levels, n_jobs)


def _collect(dag: DiGraph, levels: Int32Array, n_jobs: int | None) -> Paths:
    def sketch(side: int, some: Workers) -> tuple[Sketcher, ReachSketch, int]:
        found = sketch_side(dag, levels, side, some)
        progress.advance()
        return found

    with stage("sketch", 2) as progress, Workers(n_jobs) as workers:
        (ahead, down, n_pairs), (back, up, _) = workers.both(sketch)
    paths = Paths(
        dag, levels, down.sizes, up.sizes, up.popularity(down, _DRAWS), down.popularity(up, _DRAWS),
        n_pairs, n_jobs,
    )  # fmt: skip
    paths.__dict__["_sketchers"] = ahead, back
    return paths


def sketcher(dag: DiGraph, levels: Int32Array, side: int) -> Sketcher:
    """Return a sketcher for the graph (side 0) or its reverse (side 1)."""
    return Sketcher(dag.reverse(), turned(levels)) if side else Sketcher(dag, levels)


def sketch_side(
    dag: DiGraph, levels: Int32Array, side: int, workers: Workers
) -> tuple[Sketcher, ReachSketch, int]:
    """Sketch the descendants (side 0) or ancestors (side 1) of all nodes.

    Returns the sketcher, the sketch, and the number of pairs.
    """
    rng = np.random.default_rng(_SEED)
    made = sketcher(dag, levels, side)
    found = made.sketch(rng.permutation(dag.n_nodes).astype(np.int32), _SKETCH, workers)
    n_pairs = found.n_pairs
    if side == 0 and not found.complete.all():
        # The errors of the sizes are correlated; a panel estimates their sum better.
        some = rng.permutation(dag.n_nodes)[: 2 * COLUMNS]
        joined = Panel(made.view, some, workers).count() - len(some)
        n_pairs = round(joined * dag.n_nodes / len(some))
    return made, found, n_pairs
