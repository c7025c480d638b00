"""The regression over paths and non-paths where the closure is too large to hold: by panels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.closure.panel import COLUMNS, WORDS
from atpgraph.closure.sketched_paths import PanelRound
from atpgraph.factorization._first_vectors import first_vectors
from atpgraph.factorization._landmarks import singular_vectors
from atpgraph.factorization._panel_rows import GROUP, learn_rows
from atpgraph.factorization.nnls import Factorization
from atpgraph.factorization.path_vectors import Descent, PathVectors, Start, checked
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.checkpoints import Loop
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import Workers

Task = tuple[int, int, int]  # positions from … to, and a seed

_ROWS = 8192  # of a task, a fraction of a second
# Squared gradients that first vectors count as having seen, so that they take small steps: any of
# them, and for its squared length one that landmarks gave.
_CALM, _TRUST = np.float32(3), np.float32(4)
_NOISE = np.float32(0.1 * 3**0.5)  # of a standard deviation of a tenth


class PanelSource(Protocol):
    """Where pairs come from: :class:`~atpgraph.closure.SketchedPaths`."""

    @property
    def sizes(self) -> Int64Array:
        """Number of descendants of every node, or an estimate; 0 where there is none."""

    def renew(self, draws: int, rng: np.random.Generator, workers: Workers) -> PanelRound:
        """What a round draws from, up to `draws` descendants of every node."""


class RowSpread(Protocol):
    """Lets rows learn elsewhere."""

    def learn(self, number: int, given: dict[str, Any], tasks: list[Task]) -> list[Float64Array]:
        """Half a round, the `number`-th: what :func:`learn_range` does to ``given["near"]`` and
        ``given["seen"]`` for all tasks, and what it tells, in their order.
        """


def fit_panels(
    paths: PanelSource,
    back: PanelSource,
    levels: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    n_components: int = 64,
    regularization: float = 1e-4,
    max_iter: int = 32,
    tol: float = 1e-4,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    descent: Descent | None = None,
    start: Start = None,
    rows: tuple[IntArray, IntArray] | None = None,
    loop: Loop | None = None,
    spread: RowSpread | None = None,
) -> Factorization:
    """What :func:`~atpgraph.factorization.fit_pairs` fits, from panels in place of a closure.

    In a round all source vectors learn, each from a few of its descendants and from the non-paths
    of a panel of about a thousand nodes, whose target vectors stand still; then all target vectors,
    from another panel. If those of a panel moved too, they would take on what belongs to all the
    others: the few nodes of a panel meet every row, thousands of times in a round.

    The first vectors are random, and where many nodes reach many others they are those that
    singular vectors of landmarks, the pairs between two first panels, give the other nodes (the
    method of Nyström).

    Parameters
    ----------
    paths, back : PanelSource
        Descendants, and ancestors as those of the graph turned round.
    rows : two integer arrays, optional
        Nodes whose source, and whose target vectors are to learn; by default all.
    levels, table, n_components, regularization, max_iter, tol, n_jobs, random_state, descent, start
        As for :func:`~atpgraph.factorization.fit_pairs`; every node draws up to ``descent.draws``
        paths from either end, and ``descent.edges`` edges.
    loop : Loop, optional
        Where the state is kept after a round, and taken up again.
    spread : RowSpread, optional
        Who lets the rows learn; by default threads. Panels and sketches are drawn here.

    Examples
    --------
    >>> from atpgraph.closure import hold_closure, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> level = levels(dag)
    >>> sides = hold_closure(dag, level, "sketch").panel_sources()
    >>> fit = fit_panels(*sides, level, kernel_table("log", 3), n_components=8, random_state=0)
    >>> (fit.source[:3] @ fit.target[3:].T > 0).tolist()
    [[True, True], [True, False], [False, True]]
    """
    level, values = checked(levels, table, regularization)
    rng = generator(random_state)
    with Workers(n_jobs) as workers:
        first = renewed((paths, back), 1, rng, workers)
        learning = _PanelLearning(
            paths, back, first, level, values, n_components, regularization, descent or Descent(),
            rows, spread,
        )  # fmt: skip
        if start is None:
            learning.land(first, workers, rng)
        else:
            learning.begin(rng, start)
        del first
        return learning.run(workers, rng, max_iter, tol, loop)


def tasks_of(n: int, rng: np.random.Generator) -> list[Task]:
    """Ranges of n positions, each with a seed."""
    starts = range(0, n, _ROWS)
    seeds = rng.integers(1, 2**63, len(starts)).tolist()
    return [(i, min(i + _ROWS, n), seed) for i, seed in zip(starts, seeds, strict=True)]


def renewed(
    sides: tuple[PanelSource, PanelSource], draws: int, rng: np.random.Generator, workers: Workers
) -> list[PanelRound]:
    """What both sides draw from in a round, made at the same time."""
    seeds = rng.integers(2**63, size=2).tolist()
    return workers.both(lambda at, some: sides[at].renew(draws, generator(seeds[at]), some))


class _PanelLearning(PathVectors):
    """Vectors being learnt, those of one side at a time."""

    def __init__(
        self,
        paths: PanelSource,
        back: PanelSource,
        first: list[PanelRound],
        levels: Int32Array,
        table: Float64Array,
        k: int,
        regularization: float,
        descent: Descent,
        rows: tuple[IntArray, IntArray] | None,
        spread: RowSpread | None,
    ) -> None:
        starts, ends = first[0].some_paths()
        climbs = levels[ends] - levels[starts]
        super().__init__(paths.sizes, levels, table, climbs, k, regularization, descent)
        self.sides, self.spread, self.rounds = (paths, back), spread, 0
        self.only: list[BoolArray] = [np.ones(len(levels), dtype=np.bool_) for _ in self.sides]
        for at, nodes in enumerate(rows or ()):
            self.only[at][:] = False
            self.only[at][nodes] = True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to learn from."""
        return not any(
            (side.sizes[only] > 0).any() for side, only in zip(self.sides, self.only, strict=True)
        )

    def land(self, first: list[PanelRound], workers: Workers, rng: np.random.Generator) -> None:
        """First vectors: random ones, added to those that landmarks give if they give any."""
        weights, mean = self._landmarks(first, rng)
        vectors = self.source, self.target
        for at, (panel, near, known) in enumerate(zip(first, vectors, weights, strict=True)):
            self._land(panel, known, mean, near, self.seen[at], workers, rng)
            if self.bias >= 0:
                near[:, self.bias + 1 - at] = 1
                near[:, self.bias + at] = 0 if at else mean

    def _land(
        self,
        panel: PanelRound,
        weights: Float32Array,
        mean: float,
        near: Float32Array,
        seen: Float32Array,
        workers: Workers,
        rng: np.random.Generator,
    ) -> None:
        columns = panel.columns[: len(weights)]
        margin = np.float32(self.descent.margin)
        base = (-margin - np.float32(mean)) * weights.sum(axis=0)
        calm, trust = (_CALM, _TRUST) if len(columns) else (np.float32(0), np.float32(0))

        def work(task: Task) -> None:
            first, stop, seed = task
            arguments: Any = (
                first, stop, np.uint64(seed), panel.nodes, columns, panel.bits, self.levels,
                self.table, margin, weights, base, calm, trust, _NOISE, self.free, near, seen,
            )  # fmt: skip
            first_vectors(*arguments)

        for _ in workers.map(work, tasks_of(len(near), rng)):
            pass

    def _landmarks(
        self, first: list[PanelRound], rng: np.random.Generator
    ) -> tuple[list[Float32Array], float]:
        """What landmarks are worth to the vectors of either side, and the mean of their matrix.

        Landmarks are two small sets of nodes, whose paths are all known. With W the matrix between
        them less its mean, W ≈ U·Σ·Vᵀ, any row m of the whole matrix over the columns of W gets
        the vector m·V·Σ^−½, and any column over its rows mᵀ·U·Σ^−½.
        """
        ahead, behind = first
        rows, columns = (each.columns[: each.uniform] for each in (behind, ahead))
        width = self.source.shape[1]
        nothing = [np.zeros((0, width), dtype=np.float32)] * 2, 0.0
        if not len(rows) or not len(columns):
            return nothing
        position = np.empty(len(self.levels), dtype=np.int64)
        position[ahead.nodes] = np.arange(len(position))
        at = np.arange(len(columns))
        words = ahead.bits[at // COLUMNS, position[rows][:, None], (at >> 6) % WORDS]
        joined = words >> (at & 63).astype(np.uint64) & np.uint64(1) != 0
        joined &= rows[:, None] != columns
        if joined.sum() < len(columns):
            return nothing  # less than a path for each: what they have in common is chance
        climbs = np.abs(self.levels[columns] - self.levels[rows][:, None])
        matrix = np.where(joined, self.table[climbs], -self.descent.margin).astype(np.float64)
        mean = float(matrix.mean())
        left, values, right = singular_vectors(matrix - mean, self.free, rng)
        weights = [np.zeros((len(side), width), dtype=np.float32) for side in (columns, rows)]
        for side, vectors in zip(weights, (right, left), strict=True):
            side[:, : len(values)] = (vectors / np.sqrt(values)[:, None]).T
        return weights, mean

    def round(self, workers: Workers, rng: np.random.Generator) -> float:
        """Let the source vectors learn, then the target vectors; the mean loss for a path."""
        told = np.zeros(2)
        both = renewed(self.sides, self.descent.draws, rng, workers)
        for at, (side, drawn) in enumerate(zip(self.sides, both, strict=True)):
            in_round = int(np.minimum(side.sizes[self.only[at]], self.descent.draws).sum())
            if in_round:
                passes = -(-self.descent.fewest // in_round)
                told += self.learn(at, drawn, passes, workers, rng)
        self.rounds += 1
        return float(told[0]) * self.unit**2 / max(float(told[1]), 1.0)

    def resume(
        self, parts: dict[str, AnyArray], facts: dict[str, Any], rng: np.random.Generator
    ) -> tuple[list[float], bool]:
        """Take up what an earlier run kept; its losses, and whether it was done."""
        history, converged = super().resume(parts, facts, rng)
        self.rounds = len(history)
        return history, converged

    def learn(
        self,
        at: int,
        drawn: PanelRound,
        passes: int,
        workers: Workers,
        rng: np.random.Generator,
    ) -> Float64Array:
        """Steps for all vectors of a side; the sum of losses and the number of paths."""
        near, far = (self.source, self.target)[:: 1 - 2 * at]
        n, how = len(near), self.descent
        indptr, successors = drawn.successors
        rivals = _rivals(drawn, rng)
        given = {
            "passes": passes, "draws": how.draws, "edges": how.edges, "nodes": drawn.nodes,
            "indptr": indptr, "successors": successors, "columns": drawn.columns,
            "uniform": drawn.uniform, "own": drawn.own, "bits": drawn.bits, "rivals": rivals,
            "found": drawn.found, "counts": drawn.counts, "node_of": drawn.node_of,
            "only": self.only[at], "levels": self.levels, "table": self.table, "near": near,
            "far": far, "panel": far[drawn.columns[rivals]], "seen": self.seen[at],
            "constant": self.bias + 1 - at if self.bias >= 0 else -1,
            "margin": how.margin, "clip": how.clip, "rate": how.rate, "decay": float(self.decay),
        }  # fmt: skip
        tasks = tasks_of(n, rng)
        if self.spread is not None:
            found = self.spread.learn(2 * self.rounds + at, given, tasks)
        else:
            found = list(workers.map(lambda task: learn_range(task, given), tasks))
        return np.asarray(sum(found, np.zeros(2)))


def _rivals(drawn: PanelRound, rng: np.random.Generator) -> UInt64Array:
    """The columns of a panel in groups, as they are met: half of each drawn uniformly, the other
    half by popularity.
    """
    half = GROUP // 2
    every = np.arange(-(-drawn.uniform // half) * half).reshape(-1, half)
    popular = rng.permutation(drawn.popular)
    groups = np.hstack([every % drawn.uniform, popular[every % len(popular)]])
    return groups.astype(np.uint64).ravel()


def learn_range(task: Task, given: dict[str, Any]) -> Float64Array:
    """Steps for the vectors of a range of positions, and what they tell.

    `given` has the arguments of :func:`~atpgraph.factorization._panel_rows.learn_rows` by name and
    in its order; numbers with a fraction become float32 there.
    """
    first, stop, seed = task
    told = np.zeros(2)
    rest = [np.float32(x) if isinstance(x, float) else x for x in given.values()]
    arguments: Any = (first, stop, np.uint64(seed), *rest, told)
    learn_rows(*arguments)
    return told
