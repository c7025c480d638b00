"""Who reaches whom, held in one of two ways: a closure forest where it fits, else sketches."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from atpgraph.closure.build import closure_forest, closure_forests
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.panel import COLUMNS, Panel
from atpgraph.closure.sampling import AncestorSampler, PathSampler
from atpgraph.closure.sketch import ReachSketch, Sketcher, turned
from atpgraph.closure.sketched_paths import SketchedPaths
from atpgraph.closure.swept_paths import SweptPaths
from atpgraph.errors import BudgetError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.util.checks import whole_number
from atpgraph.util.memory import budget_bytes, human_bytes
from atpgraph.util.progress import stage
from atpgraph.util.registry import unknown_name
from atpgraph.util.threads import Workers, interruptible

log = logging.getLogger(__name__)

CLOSURES = ("auto", "exact", "sketch")
SKETCH_SIZE = 64
_SMALLEST = 16
_SIDES = ("rows", "columns")
_DRAWS = 16  # of each node, when nodes that are drawn often are to be told from others
_SEED = 0  # of the ranks: the closure of a graph does not depend on what is made of it


@dataclass(frozen=True)
class ClosureChoice:
    """How the closure is held, and why.

    Attributes
    ----------
    kind : {"exact", "sketch"}
    reason : str
        A sentence.
    sketch_size : int
        Members kept for each node and side, 0 if exact.
    """

    kind: str
    reason: str
    sketch_size: int = 0

    def __str__(self) -> str:
        size = f" of {self.sketch_size}" if self.sketch_size else ""
        return f"{self.kind}{size}: {self.reason}"


class Paths(Protocol):
    """Exact answers about paths: :class:`PathSampler` or :class:`SweptPaths`."""

    @property
    def sizes(self) -> Int64Array:
        """Number of descendants of every node, or an estimate; 0 where there is none."""

    def reached(self, nodes: IntArray) -> Iterator[Int32Array]:
        """The descendants of each node, ascending."""

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, as pairs in the order of `nodes`."""

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`."""


class ExactClosure:
    """Closure forests of the graph and, if `columns` are there, of its reverse."""

    def __init__(self, rows: ClosureForest, columns: ClosureForest | None, reason: str) -> None:
        self.rows, self.columns = rows, columns
        self.choice = ClosureChoice("exact", reason)
        self.n_pairs = rows.n_pairs
        self.n_stored = rows.n_extras + (columns.n_extras if columns is not None else 0)

    @cached_property
    def paths(self) -> PathSampler:
        """Exact answers about paths."""
        return PathSampler(self.rows)

    @property
    def sides(self) -> tuple[ClosureForest, ClosureForest]:
        """Descendants and ancestors."""
        if self.columns is None:
            raise ValueError("The ancestors were not asked for.")
        return self.rows, self.columns

    @cached_property
    def paths_back(self) -> AncestorSampler:
        """The same for the graph turned round."""
        return AncestorSampler(self.rows)

    def pair_sources(self, both: bool = False) -> tuple[PathSampler, AncestorSampler | None]:
        """What the regression over pairs draws from, with `both` from the other end as well."""
        return self.paths, self.paths_back if both else None

    def popularity(self, count: int) -> Float64Array:
        """Share of the paths drawn that end at each node, if every node draws `count`."""
        return self.paths.popularity(count)


class SketchedClosure:
    """Sketches of the descendants and of the ancestors, and sweeps for exact answers."""

    def __init__(
        self,
        dag: DiGraph,
        levels: Int32Array,
        rows: ReachSketch,
        columns: ReachSketch,
        n_pairs: int,
        reason: str,
        n_jobs: int | None = None,
    ) -> None:
        self._dag, self._levels, self._n_jobs = dag, levels, n_jobs
        self.rows, self.columns, self.n_pairs = rows, columns, n_pairs
        self.n_stored = rows.n_members + columns.n_members
        self.choice = ClosureChoice("sketch", reason, rows.members.shape[1])
        self._popularity: dict[int, Float64Array] = {}

    @classmethod
    def of(
        cls, dag: DiGraph, levels: Int32Array, size: int, n_jobs: int | None, reason: str
    ) -> SketchedClosure:
        """Sketch an acyclic graph."""

        def sketch(side: int, some: Workers) -> tuple[Sketcher, ReachSketch, int]:
            found = sketch_side(dag, levels, size, side, some)
            progress.advance()
            return found

        with stage("sketch", 2) as progress, Workers(n_jobs) as workers:
            (ahead, rows, n_pairs), (back, columns, _) = workers.both(sketch)
        closure = cls(dag, levels, rows, columns, n_pairs, reason, n_jobs)
        closure._sketchers = ahead, back
        return closure

    @cached_property
    def _sketchers(self) -> tuple[Sketcher, Sketcher]:
        """Of the graph, and of the graph turned round."""
        return _sketcher(self._dag, self._levels, 0), _sketcher(self._dag, self._levels, 1)

    @cached_property
    def paths(self) -> SweptPaths:
        """Exact answers about paths."""
        return SweptPaths(self._sketchers[1].view, self.rows.sizes, self._n_jobs)

    @property
    def sides(self) -> tuple[ReachSketch, ReachSketch]:
        """Descendants and ancestors."""
        return self.rows, self.columns

    @cached_property
    def paths_back(self) -> SweptPaths:
        """The same for the graph turned round."""
        return SweptPaths(self._sketchers[0].view, self.columns.sizes, self._n_jobs)

    def panel_sources(self) -> tuple[SketchedPaths, SketchedPaths]:
        """What the regression over panels draws from, at either end."""
        (ahead, back), rows, columns = self._sketchers, self.rows, self.columns
        return (
            SketchedPaths(ahead, rows.sizes, self.popularity(_DRAWS)),
            SketchedPaths(back, columns.sizes, rows.popularity(columns, _DRAWS)),
        )

    def popularity(self, count: int) -> Float64Array:
        """Share of the paths drawn that end at each node, if every node draws `count`."""
        if count not in self._popularity:
            self._popularity[count] = self.columns.popularity(self.rows, count)
        return self._popularity[count]


def _sketcher(dag: DiGraph, levels: Int32Array, side: int) -> Sketcher:
    """Of the graph, or of the graph turned round."""
    return Sketcher(dag.reverse(), turned(levels)) if side else Sketcher(dag, levels)


def sketch_side(
    dag: DiGraph, levels: Int32Array, size: int, side: int, workers: Workers
) -> tuple[Sketcher, ReachSketch, int]:
    """The sketch of the descendants (side 0) or of the ancestors (side 1) of all nodes, what made
    it, and the number of pairs.
    """
    rng = np.random.default_rng(_SEED)
    sketcher = _sketcher(dag, levels, side)
    found = sketcher.sketch(rng.permutation(dag.n_nodes).astype(np.int32), size, workers)
    n_pairs = found.n_pairs
    if side == 0 and not found.complete.all():
        # The errors of the sizes are alike; a panel tells their sum better.
        some = rng.permutation(dag.n_nodes)[: 2 * COLUMNS]
        joined = Panel(sketcher.view, some, workers).count() - len(some)
        n_pairs = round(joined * dag.n_nodes / len(some))
    return sketcher, found, n_pairs


HeldClosure = ExactClosure | SketchedClosure


def parts_of(closure: HeldClosure) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """The arrays and the facts that hold a closure; :func:`closure_from` reads them."""
    parts = parts_of_side(0, closure.rows)
    if closure.columns is not None:
        parts |= parts_of_side(1, closure.columns)
    facts = {"kind": closure.choice.kind, "reason": closure.choice.reason, "pairs": closure.n_pairs}
    return parts, facts


def parts_of_side(side: int, held: ClosureForest | ReachSketch) -> dict[str, AnyArray]:
    """Those of the descendants (side 0) or of the ancestors (side 1)."""
    return {f"{_SIDES[side]}.{field.name}": getattr(held, field.name) for field in fields(held)}


def closure_from(
    dag: DiGraph,
    levels: Int32Array,
    parts: dict[str, AnyArray],
    facts: dict[str, Any],
    n_jobs: int | None = None,
) -> HeldClosure:
    """The closure of a graph from what :func:`parts_of` gave."""
    kind: Any = ClosureForest if facts["kind"] == "exact" else ReachSketch
    held: list[Any] = [
        kind(**{field.name: parts[f"{side}.{field.name}"] for field in fields(kind)})
        if f"{side}.sizes" in parts
        else None
        for side in _SIDES
    ]
    if facts["kind"] == "exact":
        return ExactClosure(held[0], held[1], facts["reason"])
    return SketchedClosure(dag, levels, held[0], held[1], facts["pairs"], facts["reason"], n_jobs)


def check_closure(closure: object, sketch_size: object, solver: str) -> None:
    """Refuse what means nothing, before the work."""
    if closure not in CLOSURES:
        raise unknown_name("closure", str(closure), CLOSURES)
    if sketch_size != "auto":
        whole_number("sketch_size", sketch_size, least=2, most=2**20)
    if solver == "svd" and closure == "sketch":
        raise InputError(
            "solver='svd' multiplies with the whole matrix, which a sketch does not hold; "
            "use closure='exact', or solver='nnls'."
        )


def hold_closure(
    dag: DiGraph,
    levels: Int32Array,
    closure: str = "auto",
    *,
    sketch_size: int | Literal["auto"] = "auto",
    auto_size: int = SKETCH_SIZE,
    both: bool = True,
    most_nodes: int | None = None,
    memory: str | float | None = None,
    n_jobs: int | None = None,
) -> HeldClosure:
    """The closure of an acyclic graph, in the way that fits the memory.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    levels : int32 array
        Those of the graph.
    closure : {"auto", "exact", "sketch"}
        A closure forest, which is refused if the estimate exceeds the budget, or sketches; "auto"
        takes sketches where the forest would be refused.
    sketch_size : "auto" or int
        Members kept for each node and side; "auto" is `auto_size`, halved while that does not fit
        and down to 16.
    auto_size : int
        64, enough to learn from; fewer will do where only sizes are asked for.
    both : bool
        Whether the ancestors are needed as well.
    most_nodes : int, optional
        "auto" takes sketches of graphs with more nodes than that.
    memory, n_jobs
        As for :func:`closure_forest`.

    Examples
    --------
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> hold_closure(dag, levels(dag)).choice.kind
    'exact'
    """
    held = choose_closure(
        dag, levels, closure, sketch_size=sketch_size, auto_size=auto_size, both=both,
        most_nodes=most_nodes, memory=memory, n_jobs=n_jobs,
    )  # fmt: skip
    if isinstance(held, ExactClosure):
        return held
    return interruptible(SketchedClosure.of, dag, levels, held.sketch_size, n_jobs, held.reason)


def choose_closure(
    dag: DiGraph,
    levels: Int32Array,
    closure: str,
    *,
    sketch_size: int | Literal["auto"],
    auto_size: int,
    both: bool,
    most_nodes: int | None,
    memory: str | float | None,
    n_jobs: int | None,
) -> ExactClosure | ClosureChoice:
    """What :func:`hold_closure` holds, if that is a closure forest; else which sketches to make."""
    budget = budget_bytes(memory)

    def sketches(reason: str) -> ClosureChoice:
        size = sketch_size_for(dag.n_nodes, sketch_size, budget, auto_size)
        log.info("Sketches of %d descendants and ancestors for each node: %s", size, reason)
        return ClosureChoice("sketch", reason, size)

    if closure == "sketch":
        return sketches("as asked for")
    if closure == "auto" and most_nodes is not None and dag.n_nodes > most_nodes:
        return sketches(f"they learn faster with more than {most_nodes:,} nodes")
    try:
        rows, columns = _forests(dag, levels, both, budget, n_jobs)
    except BudgetError as error:
        if closure == "exact":
            raise
        log.info("%s", str(error).partition(";")[0])
        return sketches("the closure forest exceeds the memory budget")
    # The budget may be what is free just now, and a model file does not depend on that.
    held = human_bytes(rows.nbytes + (columns.nbytes if columns is not None else 0))
    auto = f"the closure forest takes {held}, within the memory budget"
    return ExactClosure(rows, columns, auto if closure == "auto" else "as asked for")


def _forests(
    dag: DiGraph, levels: Int32Array, both: bool, budget: int, n_jobs: int | None
) -> tuple[ClosureForest, ClosureForest | None]:
    if both:
        return closure_forests(dag, levels, memory=budget, n_jobs=n_jobs)
    return closure_forest(dag, levels, memory=budget, n_jobs=n_jobs), None


def sketch_size_for(
    n: int, sketch_size: int | Literal["auto"], budget: int, auto_size: int = SKETCH_SIZE
) -> int:
    """Members that are kept for each node and side."""
    if sketch_size != "auto":
        return sketch_size
    size = auto_size
    while size > _SMALLEST and sketch_bytes(n, size) > budget:
        size //= 2
    return size


def sketch_bytes(n: int, size: int) -> int:
    """Memory that both sketches take while they are made, each by position and by node."""
    return 16 * n * size + 64 * n
