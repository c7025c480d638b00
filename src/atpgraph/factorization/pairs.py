"""Vectors whose scores tell paths from non-paths: stochastic descent over sampled pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph._progress import stage
from atpgraph._random import RandomState, generator, kernel_seed, rng_state
from atpgraph._threads import Workers
from atpgraph._typing import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
)
from atpgraph._work import Loop
from atpgraph.errors import InputError
from atpgraph.factorization import _descent
from atpgraph.factorization._simd import TILE
from atpgraph.factorization.nnls import Factorization

_FIRST = np.float32(0.1)  # standard deviation of the first components
_SETTLED = np.float32(60)  # sum of squared gradients that a vector of an earlier fit has seen
_TASK = 4096  # paths of a task, about: fewer would be lost in the overhead
_MOST_BLOCKS = 64
_CHUNK = 8192  # paths taken at a time, milliseconds of work


_Drawn = tuple[Int32Array, Int32Array, Int64Array]


class PairSource(Protocol):
    """Where pairs come from: :class:`~atpgraph.closure.PathSampler`, or what answers the same."""

    @property
    def sizes(self) -> Int64Array:
        """Number of descendants of every node, or an estimate; 0 where there is none."""

    def renew(
        self, draws: int, rng: np.random.Generator, workers: Workers
    ) -> tuple[Int32Array, Int32Array] | None:
        """Prepare a round in which each node draws up to `draws` descendants.

        Returns the nodes that :meth:`joined` can be asked about until the next one: some drawn
        uniformly, and some by how often paths end there. None means all.
        """

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, as pairs in the order of `nodes`."""

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path may lead from each `u` to its `v`: never False where one does."""


@dataclass(frozen=True)
class Descent:
    """How :func:`fit_pairs` goes about it, chosen on validation graphs (docs/evidence/defaults.md).

    Attributes
    ----------
    draws : int
        Paths drawn from each node in a round, fewer where it has fewer.
    negatives : int
        For each path so many columns are drawn uniformly, and so many like the targets of paths.
    margin : float
        Scores of pairs without a path are to be below −margin.
    rate : float
        Learning rate.
    clip : float
        Largest slope of the loss.
    fewest : int
        Paths in a round, however small the graph: there they are drawn again and again.
    """

    draws: int = 16
    negatives: int = 4
    margin: float = 1.5
    rate: float = 0.2
    clip: float = 4.0
    fewest: int = 8192


def fit_pairs(
    paths: PairSource,
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
    start: tuple[Float32Array, Float32Array] | None = None,
    rows: IntArray | None = None,
    back: PairSource | None = None,
    loop: Loop | None = None,
    known: npt.ArrayLike = 1.0,
) -> Factorization:
    """Vectors with ⟨s_u, t_v⟩ ≈ f(Δ) where u reaches v, and below −margin where it does not.

    Minimises the one-sided regression

    Σ_paths (⟨s_u, t_v⟩ − f(Δ))² + Σ_others max(⟨s_u, t_w⟩ + margin, 0)² + λ Σ (‖s‖² + ‖t‖²)

    over pairs that are drawn anew in every round. So the sign of a score tells whether there is a
    path, and its size how many levels the path climbs. Of the pairs without a path only those above
    −margin cost anything; they are checked not to be paths.

    Rows and columns are cut into blocks, and tasks that run at a time share neither: the result
    does not depend on the number of threads.

    Parameters
    ----------
    paths : PairSource
        Such as :class:`~atpgraph.closure.PathSampler`.
    levels : array of n entries
        Levels from 1, rising along every edge (:func:`atpgraph.hierarchy.levels`); nodes of level 1
        have no ancestors.
    table : array
        f(Δ) for Δ = 0, 1, … (:func:`~atpgraph.closure.kernel_table`), above 0 from Δ = 1 on.
    n_components : int
        Length of the vectors. From three on, the last two components hold a bias of the source,
        facing a 1 in the target vector, and a bias of the target, facing a 1 in the source vector.
    regularization : float
        λ, counted for every pair.
    max_iter, tol
        Rounds; they end early when the loss has fallen to `tol` of that of the first.
    n_jobs : int, optional
        Threads; by default all cores.
    random_state
        Seed of the first vectors and of the pairs.
    descent : Descent, optional
        Constants of the method.
    start : two arrays of shape (n, n_components), optional
        Vectors from an earlier fit to go on with; nodes with rows of zeros begin at random.
    rows : integer array, optional
        Only paths from these nodes are drawn; by default from all.
    back : PairSource, optional
        The paths of the graph turned round. If they are given, half of the pairs are drawn from
        their targets, for sources that cannot draw every target of a node equally often.
    loop : Loop, optional
        Where the state is kept after a round, and taken up again.
    known : array of n entries, optional
        Share of the paths from each node that the start was fitted to: the smaller, the longer the
        first steps of its source vector.

    Returns
    -------
    Factorization
        `objective` is the mean loss for a path drawn, as met in each round before it was learnt.

    Examples
    --------
    >>> from atpgraph.closure import PathSampler, closure_forest, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> level = levels(dag)
    >>> paths = PathSampler(closure_forest(dag))
    >>> fit = fit_pairs(paths, level, kernel_table("log", 3), n_components=8, random_state=0)
    >>> (fit.source[:3] @ fit.target[3:].T > 0).tolist()
    [[True, True], [True, False], [False, True]]
    """
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
    if not 0.0 <= regularization < np.inf:
        raise InputError(f"regularization is {regularization}; it must be finite and not negative.")
    rng = generator(random_state)
    history: list[float] = []
    with Workers(n_jobs) as workers, stage("factorise", max_iter) as progress:
        learning = _Learning(
            paths, back, level, values, n_components, regularization, descent or Descent(), rng,
            start, rows, known, workers,
        )  # fmt: skip
        converged = learning.is_empty
        kept = None if loop is None else loop.state()
        if kept is not None:
            history, converged = learning.resume(*kept, rng)
            progress.advance(len(history))
        while not converged and len(history) < max_iter:
            history.append(learning.round(workers, rng))
            converged = history[-1] <= tol * history[0]
            progress.advance()
            if loop is not None:
                facts = {"history": history, "converged": converged, "random": rng_state(rng)}
                done = converged or len(history) == max_iter
                loop.keep(learning.parts, facts, at_once=done)
    source, target = learning.finished()
    objective = np.array(history)
    return Factorization(source, target, objective, len(history), converged, learning.margin)


class _Side:
    """Where pairs are drawn from: blocks of rows, and of the columns that they meet."""

    def __init__(
        self,
        paths: PairSource,
        levels: Int32Array,
        draws: int,
        fewest: int,
        rng: np.random.Generator,
        only: IntArray | None,
    ) -> None:
        self.paths, self.levels, self.draws = paths, levels, draws
        rows = np.flatnonzero(paths.sizes > 0).astype(np.int32)
        if only is not None:
            rows = np.intersect1d(rows, only).astype(np.int32)
        columns = np.flatnonzero(levels > 1).astype(np.int32)
        in_round = int(np.minimum(paths.sizes[rows], draws).sum())
        self.repeats = -(-fewest // max(in_round, 1))
        self.chunk = int(np.clip(2 * len(rows), 256, _CHUNK))
        most = min(_MOST_BLOCKS, len(rows), len(columns))
        blocks = min(max(int(np.sqrt(self.repeats * in_round / _TASK)), 1), most)
        self.rows, self.columns = (
            [np.sort(part) for part in np.array_split(rng.permutation(nodes), max(blocks, 1))]
            if blocks
            else []
            for nodes in (rows, columns)
        )
        self.block = np.zeros(len(levels), dtype=np.int8)
        for number, part in enumerate(self.columns):
            self.block[part] = number
        self.pools: list[tuple[Int32Array, Int32Array]] | None = None

    def renew(self, rng: np.random.Generator, workers: Workers) -> None:
        """Begin a round; keep what negatives may be drawn from, by block of columns."""
        known = self.paths.renew(self.draws, rng, workers)
        if known is not None:
            blocks = range(len(self.columns))
            parts = [[nodes[self.block[nodes] == at] for at in blocks] for nodes in known]
            self.pools = list(zip(*parts, strict=True))

    def draw(self, task: tuple[Int32Array, int]) -> _Drawn:
        """Paths from a block of rows, by block of columns, and where each of those ends."""
        rows, seed = task
        rng = np.random.default_rng(seed)
        parts = [self.paths.draw(rows, self.draws, kernel_seed(rng)) for _ in range(self.repeats)]
        u, v = (np.concatenate(side) for side in zip(*parts, strict=True))
        if self.repeats > 1:
            mixed = rng.permutation(len(u))
            u, v = u[mixed], v[mixed]
        block = self.block[v]
        order = np.argsort(block, kind="stable")
        ends = np.cumsum(np.bincount(block, minlength=len(self.columns)))
        return u[order], v[order], np.concatenate([[0], ends])


class _Learning:
    """Vectors being learnt from one side, or in turns from both."""

    def __init__(
        self,
        paths: PairSource,
        back: PairSource | None,
        levels: Int32Array,
        table: Float64Array,
        k: int,
        regularization: float,
        descent: Descent,
        rng: np.random.Generator,
        start: tuple[Float32Array, Float32Array] | None,
        only: IntArray | None,
        known: npt.ArrayLike,
        workers: Workers,
    ) -> None:
        self.paths, self.levels, self.descent, self.k = paths, levels, descent, k
        self.decay = np.float32(regularization)
        n = len(levels)
        self.bias = k - 2 if k >= 3 else -1
        self.free = k - 2 if k >= 3 else k
        paths.renew(1, rng, workers)
        # The constants were chosen for the log kernel, whose values are 1.3 to 6; others are taken
        # in a unit that brings their mean there.
        every = np.flatnonzero(paths.sizes > 0).astype(np.int32)
        u, v = paths.draw(every, 1, np.uint64(1))
        mean = float(table[levels[v] - levels[u]].mean()) if len(u) else 1.0
        self.unit = mean / float(np.clip(mean, 1.0, 4.0))
        self.table = (table / self.unit).astype(np.float32)
        self.margin = descent.margin * self.unit
        self.source, self.target = np.zeros((2, n, -(-k // TILE) * TILE), dtype=np.float32)
        self.seen = np.zeros((2, n), dtype=np.float32)
        for at, vectors in enumerate((self.source, self.target)):
            self.begin(at, vectors, rng, None if start is None else start[at])
        self.seen[0] *= np.asarray(known, dtype=np.float32)
        draws = descent.draws if back is None else -(-descent.draws // 2)
        self.sides = [_Side(paths, levels, draws, descent.fewest, rng, only)]
        if back is not None:
            turned = np.asarray(levels.max(initial=0) + 1 - levels, dtype=np.int32)
            self.sides.append(_Side(back, turned, draws, descent.fewest, rng, only))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to learn from."""
        return not any(side.rows for side in self.sides)

    def parts(self) -> dict[str, AnyArray]:
        """What a later run needs to go on."""
        return {"source": self.source, "target": self.target, "seen": self.seen}

    def resume(
        self, parts: dict[str, AnyArray], facts: dict[str, Any], rng: np.random.Generator
    ) -> tuple[list[float], bool]:
        """Take up what an earlier run kept; its losses, and whether it was done."""
        self.source, self.target, self.seen = (
            np.array(parts[name]) for name in ("source", "target", "seen")
        )
        rng.bit_generator.state = facts["random"]
        return list(facts["history"]), bool(facts["converged"])

    def begin(
        self, at: int, vectors: Float32Array, rng: np.random.Generator, given: Float32Array | None
    ) -> None:
        """The first vectors of a side: those given, with small steps from the first, or random."""
        n, free, bias = len(vectors), self.free, self.bias
        blank: Any = slice(None)
        if given is not None:
            blank = np.flatnonzero(given[:, 0] == 0)
            blank = blank[~np.any(given[blank, :free] != 0, axis=1)]
            n = len(blank)
            vectors[:, :free] = given[:, :free]
            if self.unit != 1:
                vectors[:, :free] *= np.float32(self.unit**-0.5)
            self.seen[at] = _SETTLED
            self.seen[at, blank] = 0
        vectors[blank, :free] = _FIRST * rng.standard_normal((n, free), dtype=np.float32)
        if bias >= 0:
            vectors[:, bias + 1 - at] = 1
            if given is not None:
                vectors[:, bias + at] = given[:, bias + at] / np.float32(self.unit)
                vectors[blank, bias + at] = 0

    def round(self, workers: Workers, rng: np.random.Generator) -> float:
        """Draw pairs and learn them; the mean loss for a path."""
        loss, paths = 0.0, 0
        for number, side in enumerate(self.sides):
            side.renew(rng, workers)
            if number:
                self.turn()
            found = self.learn_side(side, workers, rng)
            if number:
                self.turn()
            loss, paths = loss + found[0], paths + found[1]
        return loss * self.unit**2 / max(paths, 1)

    def turn(self) -> None:
        """Let source and target vectors change places, the two biases of each with them."""
        self.source, self.target = self.target, self.source
        self.seen = np.ascontiguousarray(self.seen[::-1])
        if self.bias >= 0:
            biases = [self.bias, self.bias + 1]
            for vectors in (self.source, self.target):
                vectors[:, biases] = vectors[:, biases[::-1]]

    def learn_side(
        self, side: _Side, workers: Workers, rng: np.random.Generator
    ) -> tuple[float, int]:
        """Draw the pairs of a side and learn them; the sum of losses and the number of paths."""
        blocks = len(side.rows)
        seeds = rng.integers(1, 2**63, (blocks, blocks + 1), dtype=np.int64)
        drawn = list(workers.map(side.draw, zip(side.rows, seeds[:, blocks], strict=True)))
        loss = 0.0
        for turn in range(blocks):
            # Each block of rows meets another block of columns: no two tasks share a vector.
            tasks = [
                (side, drawn[i], meets, seeds[i, meets])
                for i, meets in enumerate(np.roll(np.arange(blocks), -turn).tolist())
            ]
            loss += sum(workers.map(self.learn, tasks))
        return loss, sum(len(u) for u, _, _ in drawn)

    def learn(self, task: tuple[_Side, _Drawn, int, int]) -> float:
        """Take the steps for the paths into a block of columns; the sum of their losses."""
        side, (sources, targets, ends), meets, seed = task
        rng = np.random.default_rng(seed)
        how = self.descent
        margin, clip, rate = np.float32(how.margin), np.float32(how.clip), np.float32(how.rate)
        stop = int(ends[meets + 1])
        loss = 0.0
        for first in range(int(ends[meets]), stop, side.chunk):
            u, v = (part[first : min(first + side.chunk, stop)] for part in (sources, targets))
            columns, popular = side.pools[meets] if side.pools else (side.columns[meets], v)
            path, column = np.empty((2, 2 * how.negatives * len(u)), dtype=np.int32)
            count = _descent.violations(
                u, columns, popular, how.negatives, kernel_seed(rng), self.source, self.target,
                margin, path, column,
            )  # fmt: skip
            path, column = path[:count], column[:count]
            loss += _descent.descend(
                u, v, path, column, side.paths.joined(u[path], column), side.levels, self.table,
                self.source, self.target, self.seen, self.bias, margin, clip, rate, self.decay,
            )  # fmt: skip
        return loss

    def finished(self) -> tuple[Float32Array, Float32Array]:
        """The vectors, in the scale of the kernel; a node without any path scores none."""
        vectors = self.source[:, : self.k].copy(), self.target[:, : self.k].copy()
        without = self.paths.sizes == 0, self.levels == 1
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
