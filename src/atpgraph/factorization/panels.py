"""Learn vectors whose scores say whether there is a path: one-sided regression over panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.closure.panel import COLUMNS, WORDS
from atpgraph.closure.paths import PanelRound, PanelSource, some_paths
from atpgraph.errors import InputError
from atpgraph.factorization._panel_rows import (
    GROUP,
    HalfRound,
    Landmarks,
    Rivals,
    Side,
    Steps,
    first_vectors,
    learn_rows,
)
from atpgraph.factorization.nnls import Factorization
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    IntArray,
)
from atpgraph.util.checkpoints import Loop
from atpgraph.util.checks import real_number
from atpgraph.util.progress import stage
from atpgraph.util.random import RandomState, generator, rng_state
from atpgraph.util.threads import Workers

Task = tuple[int, int, int]  # positions from … to, and a seed
Start = tuple[AnyArray, AnyArray]

_WIDTH = 16  # vectors are padded to a multiple of this
_ROWS = 8192  # positions per task, a fraction of a second
_FIRST = np.float32(0.1)  # standard deviation of the first components
_SETTLED = np.float32(60)  # sum of squared gradients that a vector of an earlier fit has seen
# Squared gradients that first vectors count as having seen, so that they take small steps: a
# constant, and a multiple of the squared length of a vector that comes from landmarks.
_CALM, _TRUST = np.float32(3), np.float32(4)
_NOISE = np.float32(0.1 * 3**0.5)  # uniform noise with a standard deviation of a tenth
_LANDMARKS = 512  # at most, on either side
_SMALL = 1e-4  # singular values below this share of the largest are noise
_FEWEST_PATHS = 8  # per landmark: with fewer, what landmarks have in common is chance


@dataclass(frozen=True)
class Descent:
    """How pairs are drawn and learned, chosen on validation graphs (benchmarks/notes/defaults.md).

    Attributes
    ----------
    draws : int
        Paths drawn from each node in a round, fewer where it has fewer descendants.
    edges : int
        Edges that each node draws in addition.
    margin : float
        Scores of pairs without a path belong below −margin.
    rate : float
        Learning rate.
    clip : float
        Largest slope of the loss.
    fewest : int
        Paths in a round, however small the graph: there they are drawn repeatedly.
    averaged : float
        Share of the rounds, the last ones, whose vectors are averaged.
    hard, hard_margin, hard_rounds : int, float, float
        In a share of the rounds, the last ones, a row also meets the highest-scoring non-paths
        among so many columns, with a margin of their own.
    """

    draws: int = 16
    edges: int = 2
    margin: float = 1.5
    rate: float = 0.2
    clip: float = 4.0
    fewest: int = 8192
    averaged: float = 0.25
    hard: int = 512
    hard_margin: float = 0.5
    hard_rounds: float = 0.3


class RowMap(Protocol):
    """Runs the tasks of half a round, in threads or elsewhere."""

    def __call__(
        self, work: Callable[[Any, Any], Any], tasks: Sequence[Any], given: Any
    ) -> Iterator[Any]:
        """Return ``work(task, given)`` for every task, in the order of the tasks."""


def fit_panels(
    paths: PanelSource,
    back: PanelSource,
    levels: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    n_components: int = 128,
    regularization: float = 1e-4,
    max_iter: int = 32,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    descent: Descent | None = None,
    start: Start | None = None,
    rows: tuple[IntArray, IntArray] | None = None,
    loop: Loop | None = None,
    run: RowMap | None = None,
) -> Factorization:
    """Find vectors with ⟨s_u, t_v⟩ ≈ f(Δ) where u reaches v, and below −margin where it does not.

    Minimizes the one-sided regression

    Σ_paths (⟨s_u, t_v⟩ − f(Δ))² + Σ_others max(⟨s_u, t_w⟩ + margin, 0)² + λ Σ (‖s‖² + ‖t‖²)

    over pairs that are drawn afresh in every round. So the sign of a score says whether there is a
    path, and its size how many levels the path climbs.

    In a round all source vectors learn, each from a few of its descendants and from the non-paths
    of a panel of about a thousand nodes, whose target vectors stay fixed; then all target vectors,
    from another panel. If the vectors of a panel moved too, they would absorb what belongs to all
    others: every row meets the few nodes of a panel.

    The first vectors are random. Where many nodes reach many others, the singular vectors of the
    pairs between two panels of landmarks are added (Nyström's method).

    Parameters
    ----------
    paths, back : PanelSource
        Descendants, and ancestors (the descendants in the reverse graph).
    levels : array of n entries
        Levels from 1, rising along every edge (:func:`atpgraph.hierarchy.levels`); nodes of level 1
        have no ancestors.
    table : array
        f(Δ) for Δ = 0, 1, … (:func:`~atpgraph.closure.kernel_table`), positive from Δ = 1 on.
    n_components : int
        Length of the vectors. From three on, the last two components hold a bias of the source,
        facing a 1 in the target vector, and a bias of the target, facing a 1 in the source vector.
    regularization : float
        λ, counted for every pair.
    max_iter : int
        Rounds.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.
    random_state
        Seed of the first vectors and of the pairs.
    descent : Descent, optional
        Constants of the method.
    start : two arrays of shape (n, n_components), optional
        Vectors of an earlier fit to continue from; rows of zeros start at random.
    rows : two integer arrays, optional
        Nodes whose source, and whose target vectors learn; by default all.
    loop : Loop, optional
        Where the state is saved after a round, and resumed from.
    run : RowMap, optional
        Runs the rows of half a round; by default threads of this process.

    Returns
    -------
    Factorization
        `objective` is the mean loss per path drawn, before it was learned, in each round.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> level = levels(dag)
    >>> sides = collect_paths(dag, level).sides
    >>> fit = fit_panels(*sides, level, kernel_table("log", 3), n_components=8, random_state=0)
    >>> (fit.source[:3] @ fit.target[3:].T > 0).tolist()
    [[True, True], [True, False], [False, True]]
    """
    level, values = _checked(levels, table, regularization)
    rng = generator(random_state)
    with Workers(n_jobs) as workers:
        sides = (paths, back)
        first = _renewed(sides, 1, rng, workers)
        learning = _Learning(
            sides, first, level, values, n_components, regularization, descent or Descent(), rows
        )
        learning.run_rows = run or _in_threads(workers)
        if start is None:
            learning.land(first, workers, rng)
        else:
            learning.continue_from(start, rng)
        del first
        return learning.run(workers, rng, max_iter, loop)


def _checked(
    levels: npt.ArrayLike, table: npt.ArrayLike, regularization: float
) -> tuple[Int32Array, Float64Array]:
    """Return levels and kernel as arrays; raise an error if they cannot be fitted."""
    level = np.ascontiguousarray(levels, dtype=np.int32)
    values = np.ascontiguousarray(table, dtype=np.float64)
    span = int(level.max(initial=1))
    if len(values) < span:
        raise InputError(f"The kernel table has {len(values)} entries for {span} levels.")
    bad = np.flatnonzero(values[1:span] <= 0)
    if len(bad):
        raise InputError(
            f"The kernel is {values[bad[0] + 1]} at a difference of {bad[0] + 1}; "
            "the score of a path has to be above 0."
        )
    real_number("regularization", regularization)
    return level, values


def _tasks(n: int, rng: np.random.Generator) -> list[Task]:
    """Return ranges of n positions, each with a seed."""
    starts = range(0, n, _ROWS)
    seeds = rng.integers(1, 2**63, len(starts)).tolist()
    return [(i, min(i + _ROWS, n), seed) for i, seed in zip(starts, seeds, strict=True)]


def _renewed(
    sides: tuple[PanelSource, PanelSource],
    draws: int,
    rng: np.random.Generator,
    workers: Workers,
    tilted: bool = False,
) -> list[PanelRound]:
    """Draw what both sides learn from in a round, both at the same time."""
    seeds = rng.integers(2**63, size=2).tolist()
    return workers.both(
        lambda at, some: sides[at].renew(draws, generator(seeds[at]), some, tilted=tilted)
    )


class _Learning:
    """Vectors being learned, those of one side at a time."""

    run_rows: RowMap

    def __init__(
        self,
        sides: tuple[PanelSource, PanelSource],
        first: list[PanelRound],
        levels: Int32Array,
        table: Float64Array,
        k: int,
        regularization: float,
        descent: Descent,
        rows: tuple[IntArray, IntArray] | None,
    ) -> None:
        self.sides, self.levels, self.descent, self.k = sides, levels, descent, k
        self.decay = np.float32(regularization)
        self.bias = k - 2 if k >= 3 else -1
        self.free = k - 2 if k >= 3 else k
        # The constants were chosen for the log kernel, with values from 1.3 to 6; others are
        # measured in a unit that brings their mean there.
        starts, ends = some_paths(first[0])
        climbs = levels[ends] - levels[starts]
        mean = float(table[climbs].mean()) if len(climbs) else 1.0
        self.unit = mean / float(np.clip(mean, 1.0, 4.0))
        self.table = (table / self.unit).astype(np.float32)
        self.margin = descent.margin * self.unit
        shape = (2, len(levels), -(-k // _WIDTH) * _WIDTH)
        self.source, self.target = np.zeros(shape, dtype=np.float32)
        self.seen = np.zeros(shape[:2], dtype=np.float32)
        self.sums: list[Float32Array] = []
        self.only: list[BoolArray] = [np.ones(len(levels), dtype=np.bool_) for _ in sides]
        for at, nodes in enumerate(rows or ()):
            self.only[at][:] = False
            self.only[at][nodes] = True

    # First vectors

    def land(self, first: list[PanelRound], workers: Workers, rng: np.random.Generator) -> None:
        """Make first vectors: random ones, plus what landmarks say if they say anything."""
        weights, mean = self._landmarks(first)
        vectors = self.source, self.target
        margin = np.float32(self.descent.margin)
        for at, (drawn, near, known) in enumerate(zip(first, vectors, weights, strict=True)):
            base = (-margin - np.float32(mean)) * known.sum(axis=0)
            given = Landmarks(
                drawn.columns[: len(known)], known, base,
                *((_CALM, _TRUST) if len(known) else (np.float32(0), np.float32(0))),
                margin, _NOISE, self.free,
            )  # fmt: skip
            side = Side(near, self.only[at], self.levels, self.table)
            work = partial(_land, drawn, given, side, near, self.seen[at])
            for _ in workers.map(work, _tasks(len(near), rng)):
                pass
            if self.bias >= 0:
                near[:, self.bias + 1 - at] = 1
                near[:, self.bias + at] = 0 if at else mean

    def _landmarks(self, first: list[PanelRound]) -> tuple[list[Float32Array], float]:
        """Return what landmarks contribute to the vectors of either side, and a mean score.

        Landmarks are two small sets of nodes with all paths between them known. If W is their
        matrix less its mean, W ≈ U·Σ·Vᵀ, then any row m of the whole matrix over the columns of W
        gets the vector m·V·Σ^−½, and any column over its rows mᵀ·U·Σ^−½.
        """
        ahead, behind = first
        rows, columns = (each.columns[: min(each.uniform, _LANDMARKS)] for each in (behind, ahead))
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
        if joined.sum() < _FEWEST_PATHS * len(columns):
            return nothing
        climbs = np.abs(self.levels[columns] - self.levels[rows][:, None])
        matrix = np.where(joined, self.table[climbs], -self.descent.margin).astype(np.float64)
        mean = float(matrix.mean())
        left, values, right = np.linalg.svd(matrix - mean, full_matrices=False)
        keep = min(self.free, int(np.count_nonzero(values > _SMALL * values[0])))
        weights = [np.zeros((len(side), width), dtype=np.float32) for side in (columns, rows)]
        for side, vectors in zip(weights, (right.T, left), strict=True):
            side[:, :keep] = vectors[:, :keep] / np.sqrt(values[:keep])
        return weights, mean

    def continue_from(self, start: Start, rng: np.random.Generator) -> None:
        """Begin with given vectors, which take small steps; rows of zeros begin at random."""
        free, bias = self.free, self.bias
        for at, (vectors, given) in enumerate(zip((self.source, self.target), start, strict=True)):
            vectors[:, : self.k] = given
            blank = np.flatnonzero(~vectors[:, :free].any(axis=1))
            vectors[:, :free] *= np.float32(self.unit**-0.5)
            self.seen[at] = _SETTLED
            self.seen[at, blank] = 0
            vectors[blank, :free] = _FIRST * rng.standard_normal((len(blank), free), np.float32)
            if bias >= 0:
                vectors[:, bias + 1 - at] = 1
                vectors[:, bias + at] /= np.float32(self.unit)
                vectors[blank, bias + at] = 0

    # Rounds

    def run(
        self, workers: Workers, rng: np.random.Generator, rounds: int, loop: Loop | None
    ) -> Factorization:
        """Learn for a number of rounds, resuming where an earlier run left off."""
        history: list[float] = []
        if not any(
            (side.sizes[only] > 0).any() for side, only in zip(self.sides, self.only, strict=True)
        ):
            rounds = 0  # there is nothing to learn from
        averaged = int(self.descent.averaged * rounds)
        with stage("factorise", rounds) as progress:
            kept = None if loop is None else loop.state()
            if kept is not None:
                history = self.resume(*kept, rng)
                progress.advance(len(history))
            while len(history) < rounds:
                left = rounds - len(history) - 1
                # Every other round is tilted, the last one is not.
                hard = self.descent.hard if left < self.descent.hard_rounds * rounds else 0
                history.append(self.round(left % 2 == 1, hard, workers, rng))
                if averaged > 1 and left < averaged:
                    self.add_to_sums()
                progress.advance()
                if loop is not None:
                    facts = {"history": history, "random": rng_state(rng)}
                    loop.keep(self.parts, facts, at_once=not left)
        if self.sums:
            for vectors, total in zip((self.source, self.target), self.sums, strict=True):
                np.divide(total, np.float32(averaged), out=vectors)
        source, target = self.finished()
        return Factorization(source, target, np.array(history), len(history), True, self.margin)

    def round(self, tilted: bool, hard: int, workers: Workers, rng: np.random.Generator) -> float:
        """Let the source vectors learn, then the target vectors; return the mean loss per path."""
        told = np.zeros(2)
        both = _renewed(self.sides, self.descent.draws, rng, workers, tilted)
        for at, (side, drawn) in enumerate(zip(self.sides, both, strict=True)):
            in_round = int(np.minimum(side.sizes[self.only[at]], self.descent.draws).sum())
            if in_round:
                passes = -(-self.descent.fewest // in_round)
                told += self.learn(at, drawn, passes, hard, rng)
        return float(told[0]) * self.unit**2 / max(float(told[1]), 1.0)

    def learn(
        self, at: int, drawn: PanelRound, passes: int, hard: int, rng: np.random.Generator
    ) -> Float64Array:
        """Take steps for all vectors of a side; return the sum of losses and number of paths."""
        near, far = (self.source, self.target)[:: 1 - 2 * at]
        how = self.descent
        groups = _grouped(drawn, rng)
        panel = far[drawn.columns[groups]]
        constant = self.bias + 1 - at if self.bias >= 0 else -1
        squares = np.einsum("ij,ij->i", panel, panel) / np.float32(panel.shape[1])
        margins = np.float32(how.margin), np.float32(how.hard_margin)
        given = HalfRound(
            near, self.seen[at], drawn, Rivals(groups, panel, squares),
            Side(far, self.only[at], self.levels, self.table),
            Steps(
                passes, how.draws, how.edges, min(hard, len(groups)), constant,
                *margins, np.float32(how.clip), np.float32(how.rate), self.decay,
            ),
        )  # fmt: skip
        total = np.zeros(2)
        tasks = _tasks(len(near), rng)
        for task, found in zip(tasks, self.run_rows(learn_range, tasks, given), strict=True):
            rows = drawn.nodes[task[0] : task[1]]
            near[rows], self.seen[at][rows], told = found
            total += told
        return total

    def add_to_sums(self) -> None:
        """Add the vectors to the sums that are averaged in the end."""
        if not self.sums:
            self.sums = [np.zeros_like(self.source), np.zeros_like(self.target)]
        for total, vectors in zip(self.sums, (self.source, self.target), strict=True):
            total += vectors

    def parts(self) -> dict[str, AnyArray]:
        """Return the arrays that a later run resumes from."""
        sums = {f"sum{at}": total for at, total in enumerate(self.sums)}
        return {"source": self.source, "target": self.target, "seen": self.seen} | sums

    def resume(
        self, parts: dict[str, AnyArray], facts: dict[str, Any], rng: np.random.Generator
    ) -> list[float]:
        """Restore a saved state; return its losses."""
        self.source, self.target, self.seen = (
            np.array(parts[name]) for name in ("source", "target", "seen")
        )
        self.sums = [np.array(parts[name]) for name in ("sum0", "sum1") if name in parts]
        rng.bit_generator.state = facts["random"]
        return list(facts["history"])

    def finished(self) -> tuple[Float32Array, Float32Array]:
        """Return the vectors in the scale of the kernel; a node without any path scores none."""
        self.sums = []
        # Without padding they are not copied: they are most of the memory of large graphs.
        source, target = (np.ascontiguousarray(x[:, : self.k]) for x in (self.source, self.target))
        vectors = source, target
        without = self.sides[0].sizes == 0, self.levels == 1
        for side, none in zip(vectors, without, strict=True):
            if self.unit != 1:
                side[:, : self.free] *= np.float32(np.sqrt(self.unit))
            side[none, : self.free] = 0
        if self.bias >= 0:
            biases = [side[:, self.bias + at] for at, side in enumerate(vectors)]
            for at, bias in enumerate(biases):
                bias *= np.float32(self.unit)
                bias[without[at]] = 0
            highest = [max(float(bias.max(initial=0.0)), 0.0) for bias in biases]
            for at, bias in enumerate(biases):
                bias[without[at]] = -self.margin - highest[1 - at]
        return vectors


def _grouped(drawn: PanelRound, rng: np.random.Generator) -> AnyArray:
    """Return the columns of a panel in groups: half of each uniform, half by popularity."""
    half = GROUP // 2
    every = np.arange(-(-drawn.uniform // half) * half).reshape(-1, half)
    popular = rng.permutation(drawn.popular)
    groups = np.hstack([every % drawn.uniform, popular[every % len(popular)]])
    return groups.astype(np.uint64).ravel()


def _in_threads(workers: Workers) -> RowMap:
    """Run tasks in threads of this process."""
    return lambda work, tasks, given: workers.map(lambda task: work(task, given), tasks)


def _land(
    drawn: PanelRound,
    given: Landmarks,
    side: Side,
    vectors: Float32Array,
    seen: Float32Array,
    task: Task,
) -> None:
    first, stop, seed = task
    first_vectors(first, stop, np.uint64(seed), drawn, given, side, vectors, seen)


def learn_range(task: Task, given: HalfRound) -> tuple[Float32Array, Float32Array, Float64Array]:
    """Take steps for a range of positions.

    Returns their vectors, the sums of their squared gradients, and the sum of losses and number of
    paths. Nothing that is given is changed, so a task can be repeated elsewhere.
    """
    first, stop, seed = task
    rows = given.drawn.nodes[first:stop]
    near, seen, told = given.near[rows], given.seen[rows], np.zeros(2)
    learn_rows(first, stop, np.uint64(seed), given, near, seen, told)
    return near, seen, told
