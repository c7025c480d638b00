"""Vectors whose scores tell paths from non-paths: stochastic descent over sampled pairs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.factorization import _descent
from atpgraph.factorization.nnls import Factorization
from atpgraph.factorization.path_vectors import Descent, PathVectors, Start, checked
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.util.checkpoints import Loop
from atpgraph.util.random import RandomState, generator, kernel_seed
from atpgraph.util.threads import Workers

_TASK = 4096  # paths of a task, about: fewer would be lost in the overhead
_MOST_BLOCKS = 64
_CHUNK = 8192  # paths taken at a time, milliseconds of work

_Drawn = tuple[Int32Array, Int32Array, Int64Array]


class PairSource(Protocol):
    """Where pairs come from: :class:`~atpgraph.closure.PathSampler`, or what answers the same."""

    @property
    def sizes(self) -> Int64Array:
        """Number of descendants of every node, or an estimate; 0 where there is none."""

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, as pairs in the order of `nodes`."""

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`."""


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
    start: Start = None,
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
        their targets.
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
    level, values = checked(levels, table, regularization)
    rng = generator(random_state)
    with Workers(n_jobs) as workers:
        learning = _Learning(
            paths, back, level, values, n_components, regularization, descent or Descent(), rng,
            start, rows, known,
        )  # fmt: skip
        return learning.run(workers, rng, max_iter, tol, loop)


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


class _Learning(PathVectors):
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
        start: Start,
        only: IntArray | None,
        known: npt.ArrayLike,
    ) -> None:
        every = np.flatnonzero(paths.sizes > 0).astype(np.int32)
        u, v = paths.draw(every, 1, np.uint64(1))
        climbs = levels[v] - levels[u]
        super().__init__(paths.sizes, levels, table, climbs, k, regularization, descent)
        self.begin(rng, start)
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

    def round(self, workers: Workers, rng: np.random.Generator) -> float:
        """Draw pairs and learn them; the mean loss for a path."""
        loss, paths = 0.0, 0
        for number, side in enumerate(self.sides):
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
            path, column = np.empty((2, 2 * how.negatives * len(u)), dtype=np.int32)
            count = _descent.violations(
                u, side.columns[meets], v, how.negatives, kernel_seed(rng), self.source,
                self.target, margin, path, column,
            )  # fmt: skip
            path, column = path[:count], column[:count]
            loss += _descent.descend(
                u, v, path, column, side.paths.joined(u[path], column), side.levels, self.table,
                self.source, self.target, self.seen, self.bias, margin, clip, rate, self.decay,
            )  # fmt: skip
        return loss
