"""Learn vectors whose scores tell whether there is a path, by one-sided regression over panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atpgraph.closure.panel import has_bit
from atpgraph.closure.paths import PanelRound, Paths
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
from atpgraph.factorization.nnls import Factorization, Options
from atpgraph.util.arrays import AnyArray, Float32Array, Float64Array, FloatArray, IntArray
from atpgraph.util.progress import stage
from atpgraph.util.random import generator, rng_state
from atpgraph.util.threads import Workers

Task = tuple[int, int, int]  # positions from … to, and a seed


class Start(NamedTuple):
    """An earlier fit, whose nodes come first, and those of its nodes that learn again.

    All further nodes learn, too, at first on their own.
    """

    source: FloatArray
    target: FloatArray
    sources: IntArray  # nodes whose source vectors learn
    targets: IntArray
    loss: float  # mean losses per path of the earlier fit, summed over its rounds
    zero: float = 0.0  # by how much it lowered all scores in the end


_WIDTH = 16  # vectors are padded to a multiple of this
_ROWS = 8192  # positions per task, a fraction of a second
# Squared gradients that first vectors count as having seen, so that they take small steps: a
# constant, and a multiple of the squared length of a vector that comes from landmarks.
_CALM, _TRUST = np.float32(3), np.float32(4)
_NOISE = np.float32(0.1 * 3**0.5)  # uniform noise with a standard deviation of a tenth
_LANDMARKS = 512  # at most, on either side
_SMALL = 1e-4  # singular values below this share of the largest are noise
_FEWEST_PATHS = 8  # per landmark: with fewer, what landmarks have in common is chance


# Runs the tasks of half a round, in threads or elsewhere: returns work(task, given) of every task,
# in the order of the tasks.
RowMap = Callable[[Callable[[Any, Any], Any], Sequence[Any], Any], Iterable[Any]]


@dataclass(frozen=True)
class Descent:
    """Settings for drawing pairs and learning from them; see benchmarks/notes/defaults.md."""

    draws: int = 16  # paths drawn from each node in a round, fewer where it has fewer descendants
    edges: int = 2  # edges that each node draws in addition
    margin: float = 1.5  # scores of pairs without a path belong below −margin
    rate: float = 0.2  # learning rate
    clip: float = 4.0  # largest slope of the loss
    passes: int = 1  # times that each node draws in a round,
    fewest: int = 8192  # or more in small graphs, up to so many paths
    averaged: float = 0.25  # share of the rounds, the last ones, whose vectors are averaged
    # In a share of the rounds, the last ones, a row also meets the highest-scoring non-paths
    # among so many columns, with a margin of their own.
    hard: int = 512
    hard_margin: float = 0.5
    hard_rounds: float = 0.3
    fits: float = 0.0  # mean loss per path below which a node skips its other passes of a round
    settled: float = 2.0  # multiplies the squared gradients that an earlier fit has seen
    # A mean loss per path below which only the last rounds are still to come; 0 for never.
    enough: float = 0.0


def fit_panels(
    paths: Paths,
    table: npt.ArrayLike,
    options: Options,
    *,
    descent: Descent | None = None,
    start: Start | None = None,
    run: RowMap | None = None,
) -> Factorization:
    """Find vectors with ⟨s_u, t_v⟩ ≈ f(Δ) where u reaches v, and below −margin where it does not.

    Minimizes the one-sided regression

    Σ_paths (⟨s_u, t_v⟩ − f(Δ))² + Σ_others max(⟨s_u, t_w⟩ + margin, 0)² + λ Σ (‖s‖² + ‖t‖²)

    over pairs that are drawn anew in every round. So the sign of a score says whether there is a
    path, and its size how many levels the path climbs.

    In a round all source vectors learn, each from a few of its descendants and from the non-paths
    of a panel of about a thousand nodes, whose target vectors stay fixed; then all target vectors,
    from another panel. If the vectors of a panel moved too, these few vectors would be fitted to
    all rows at once.

    The first vectors are random. If many nodes reach many others, the singular vectors of the pairs
    between two panels of landmarks are added (Nyström's method).

    `table` has f(Δ) for Δ = 0, 1, …, positive from Δ = 1 on; λ counts for every pair. From three
    components on, the last two hold a bias of the source, multiplied by a 1 in the target vector,
    and a bias of the target, multiplied by a 1 in the source vector. `objective` of the result has,
    for each round, the mean loss per drawn path before learning from it.

    Parameters
    ----------
    start : Start, optional
        An earlier fit to continue from, and the nodes that learn. Vectors that it does not have, or
        that are zeros, start at random.
    run : RowMap, optional
        Runs the rows of half a round; by default threads of this process.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> paths = collect_paths(dag, levels(dag))
    >>> options = Options(n_components=8, random_state=0)
    >>> fit = fit_panels(paths, kernel_table("log", 3), options)
    >>> (fit.source[:3] @ fit.target[3:].T > 0).tolist()
    [[True, True], [True, False], [False, True]]
    """
    values = np.ascontiguousarray(table, dtype=np.float64)
    bad = np.flatnonzero(values[1 : int(paths.levels.max(initial=1))] <= 0)
    if len(bad):
        raise InputError(
            f"The kernel is {values[bad[0] + 1]} at a difference of {bad[0] + 1}; "
            "the score of a path has to be above 0."
        )
    with Workers(options.n_jobs) as workers:
        return _Learning(paths, values, options, descent or Descent(), start, workers, run).run()


def _tasks(n: int, rng: np.random.Generator) -> list[Task]:
    """Return ranges of n positions, each with a seed."""
    starts = range(0, n, _ROWS)
    seeds = rng.integers(1, 2**63, len(starts)).tolist()
    return [(i, min(i + _ROWS, n), seed) for i, seed in zip(starts, seeds, strict=True)]


class _Learning:
    """The vectors being learned, one side at a time."""

    def __init__(
        self,
        paths: Paths,
        table: Float64Array,
        options: Options,
        descent: Descent,
        start: Start | None,
        workers: Workers,
        run_rows: RowMap | None,
    ) -> None:
        self.sides, self.levels, self.descent = paths.sides, paths.levels, descent
        self.options, self.start, self.workers, self.run_rows = options, start, workers, run_rows
        self.rng = generator(options.random_state)
        k = options.n_components
        self.bias = k - 2 if k >= 3 else -1
        self.free = k - 2 if k >= 3 else k
        # The constants were chosen for the log kernel, with values from 1.3 to 6; others are
        # measured in a unit that brings their mean there.
        some = paths.ends >= 0
        climbs = self.levels[paths.ends[some]] - self.levels[some]
        mean = float(table[climbs].mean()) if len(climbs) else 1.0
        self.unit = mean / float(np.clip(mean, 1.0, 4.0))
        self.table = (table / self.unit).astype(np.float32)
        self.margin = descent.margin * self.unit
        shape = len(self.levels), -(-k // _WIDTH) * _WIDTH
        # Of sources and targets, like all pairs below; two arrays, so that one can be freed.
        self.vectors = [np.zeros(shape, dtype=np.float32) for _ in self.sides]
        self.seen = np.zeros((2, shape[0]), dtype=np.float32)
        self.sums: list[Float32Array] = []
        self.last: PanelRound | None = None  # its arrays are overwritten
        # Nodes whose vectors learn, as a list or slice, and marked.
        self.learners: list[Any] = [slice(None)] * 2 if start is None else [*start[2:4]]
        self.only = np.zeros((2, len(self.levels)), dtype=np.bool_)
        for marks, nodes in zip(self.only, self.learners, strict=True):
            marks[nodes] = True

    def land(self) -> None:
        """Compute initial vectors: random ones, plus those from landmarks if there are any."""
        # Panels only, no draws.
        first = [side.renew(0, self.rng, self.workers) for side in self.sides]
        weights, mean = self._landmarks(first)
        margin, zero = np.float32(self.descent.margin), np.float32(0)
        for at, (drawn, near, known) in enumerate(zip(first, self.vectors, weights, strict=True)):
            base = (-margin - np.float32(mean)) * known.sum(axis=0)
            given = Landmarks(
                drawn.columns[: len(known)], known, base,
                *((_CALM, _TRUST) if len(known) else (zero, zero)), margin, _NOISE, self.free,
            )  # fmt: skip
            side = Side(near, self.only[at], self.levels, self.table)
            work = partial(first_vectors, drawn, given, side, near, self.seen[at])
            for _ in self.workers.map(work, _tasks(len(near), self.rng)):
                pass
            if self.bias >= 0:
                near[:, self.bias + 1 - at] = 1
                near[:, self.bias + at] = 0 if at else mean

    def _landmarks(self, first: list[PanelRound]) -> tuple[list[Float32Array], float]:
        """Return the contribution of landmarks to the vectors of either side, and a mean score.

        Landmarks are two small sets of nodes with all paths between them known. If W is their
        matrix minus its mean, W ≈ U·Σ·Vᵀ, then any row m of the whole matrix over the columns of W
        gets the vector m·V·Σ^−½, and any column over its rows mᵀ·U·Σ^−½.
        """
        ahead, behind = first
        rows, columns = (each.columns[: min(each.uniform, _LANDMARKS)] for each in (behind, ahead))
        width = self.vectors[0].shape[1]
        nothing = [np.zeros((0, width), dtype=np.float32)] * 2, 0.0
        if not len(rows) or not len(columns):
            return nothing
        position = np.empty(len(self.levels), dtype=np.int64)
        position[ahead.nodes] = np.arange(len(position))
        joined = has_bit(ahead.bits, position[rows][:, None], np.arange(len(columns)))
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

    def continue_from(self, start: Start) -> None:
        """Begin with the vectors of an earlier fit, which take small steps, and random new vectors.

        New nodes learn in a round of their own: among many others they would learn little.
        """
        free, bias, how = self.free, self.bias, self.descent
        known, scale = len(start.source), np.float32(self.unit**-0.5)
        for vectors, given in zip(self.vectors, start[:2], strict=True):
            np.multiply(given[:, :free], scale, out=vectors[:known, :free])
        # What each vector saw: in every round its paths, with the mean square of their gradients.
        slope = how.settled * 2 * start.loss / self.unit**2
        for at, side in enumerate(self.sides):
            paths = np.minimum(side.sizes, how.draws) + how.edges
            facing = self.vectors[1 - at][:known, :free]
            square = float(np.einsum("ij,ij->", facing, facing)) / max(facing.size, 1)
            self.seen[at] = slope * square * paths
        sides = zip(self.vectors, start[:2], self.learners, strict=True)
        for at, (vectors, given, nodes) in enumerate(sides):
            blank = nodes[~vectors[nodes, :free].any(axis=1)]
            if bias >= 0:
                vectors[:, bias + 1 - at] = 1
                vectors[:known, bias + at] = given[:, bias + at] / np.float32(self.unit)
                vectors[:known, bias + at] += np.float32(0 if at else start.zero / self.unit)
                vectors[blank, bias + at] = 0
            vectors[blank, :free] = self.rng.uniform(-_NOISE, _NOISE, (len(blank), free))
            self.seen[at, blank] = 0
        every = self.only.copy()
        self.only[:, :known] = False
        self.round(tilted=False, hard=0)
        self.only = every

    def run(self) -> Factorization:
        """Learn for a number of rounds, resuming where an earlier run left off."""
        rounds, loop = self.options.max_iter, self.options.loop
        history: list[float] = []
        saved = None if loop is None else loop.state()
        if saved is not None:
            history = self.resume(*saved)
        elif self.start is not None:
            self.continue_from(self.start)
        else:
            self.land()
        if not any(side.sizes[self.only[at]].any() for at, side in enumerate(self.sides)):
            rounds = 0  # there is nothing to learn from
        most = rounds
        with stage("factorize", rounds) as progress:
            progress.advance(len(history))
            while len(history) < (rounds := self.planned(most, history)):
                averaged = int(self.descent.averaged * rounds)
                left = rounds - len(history) - 1
                # Every other round is tilted, the last one is not.
                hard = self.descent.hard if left < int(self.descent.hard_rounds * rounds) else 0
                history.append(self.round(left % 2 == 1, hard))
                if averaged > 1 and left < averaged:
                    self.add_to_sums()
                progress.advance()
                if loop is not None:
                    facts = {"history": history, "random": rng_state(self.rng)}
                    loop.save(self.parts, facts, at_once=not left)
        count = np.float32(int(self.descent.averaged * rounds))
        for at, total in enumerate(self.sums):
            self.vectors[at][self.learners[at]] = np.divide(total, count, out=total)
        source, target = self.finished()
        return Factorization(source, target, np.array(history), len(history), self.margin)

    def planned(self, most: int, history: list[float]) -> int:
        """Return the number of rounds: once the loss is low, only the hard rounds remain."""
        low = np.flatnonzero(np.array(history) < self.descent.enough * self.unit**2)
        if not len(low):
            return most
        return min(most, int(np.ceil((low[0] + 1) / (1 - self.descent.hard_rounds))))

    def round(self, tilted: bool, hard: int) -> float:
        """Let the source vectors learn, then the target vectors; return the mean loss per path."""
        totals = np.zeros(2)
        how = self.descent
        for at, side in enumerate(self.sides):
            in_round = int(np.minimum(side.sizes[self.only[at]], how.draws).sum())
            if in_round:
                self.last = drawn = side.renew(
                    how.draws, self.rng, self.workers, self.last, tilted=tilted
                )
                totals += self.learn(at, drawn, max(how.passes, -(-how.fewest // in_round)), hard)
        return float(totals[0]) * self.unit**2 / max(float(totals[1]), 1.0)

    def learn(self, at: int, drawn: PanelRound, passes: int, hard: int) -> Float64Array:
        """Take steps for all vectors of a side; return the sum of losses and number of paths."""
        near, far = self.vectors[at], self.vectors[1 - at]
        how = self.descent
        groups = _grouped(drawn, self.rng)
        panel = far[drawn.columns[groups]]
        constant = self.bias + 1 - at if self.bias >= 0 else -1
        squares = np.einsum("ij,ij->i", panel, panel) / np.float32(panel.shape[1])
        margins = np.float32(how.margin), np.float32(how.hard_margin)
        given = HalfRound(
            near, self.seen[at], drawn, Rivals(groups, panel, squares),
            Side(far, self.only[at], self.levels, self.table),
            Steps(
                passes, how.draws, how.edges, min(hard, len(groups)), constant,
                *margins, np.float32(how.clip), np.float32(how.rate),
                np.float32(self.options.regularization),
                np.float32(2 * how.fits / self.unit**2),
            ),
        )  # fmt: skip
        tasks, total = _tasks(len(near), self.rng), np.zeros(2)
        if self.run_rows is None:
            return np.asarray(sum(self.workers.map(partial(_learn_here, given), tasks), total))
        for task, found in zip(tasks, self.run_rows(learn_range, tasks, given), strict=True):
            rows = drawn.nodes[task[0] : task[1]]
            near[rows], self.seen[at][rows], part = found
            total += part
        return total

    def add_to_sums(self) -> None:
        """Add the vectors to the sums that are averaged in the end."""
        for at, vectors in enumerate(self.vectors):
            if at < len(self.sums):
                self.sums[at] += vectors[self.learners[at]]
            else:
                self.sums.append(vectors[self.learners[at]].copy())

    def parts(self) -> dict[str, AnyArray]:
        """Return the arrays that a later run resumes from."""
        sums = {f"sum{at}": total for at, total in enumerate(self.sums)}
        source, target = self.vectors
        return {"source": source, "target": target, "seen": self.seen} | sums

    def resume(self, parts: dict[str, AnyArray], facts: dict[str, Any]) -> list[float]:
        """Restore a saved state; return its losses."""
        source, target, self.seen = (np.array(parts[name]) for name in ("source", "target", "seen"))
        self.vectors = [source, target]
        self.sums = [np.array(parts[name]) for name in ("sum0", "sum1") if name in parts]
        self.rng.bit_generator.state = facts["random"]
        return list(facts["history"])

    def finished(self) -> list[Float32Array]:
        """Return the vectors in the scale of the kernel; nodes without paths score below 0."""
        self.sums = []
        # Without padding they are not copied: they are most of the memory of large graphs.
        k = self.options.n_components
        self.vectors = [np.ascontiguousarray(x[:, :k]) for x in self.vectors]
        without = self.sides[0].sizes == 0, self.levels == 1
        for side, none in zip(self.vectors, without, strict=True):
            if self.unit != 1:
                side[:, : self.free] *= np.float32(np.sqrt(self.unit))
            side[none, : self.free] = 0
        if self.bias >= 0:
            biases = [side[:, self.bias + at] for at, side in enumerate(self.vectors)]
            for at, bias in enumerate(biases):
                bias *= np.float32(self.unit)
                bias[without[at]] = 0
            highest = [max(float(bias.max(initial=0.0)), 0.0) for bias in biases]
            for at, bias in enumerate(biases):
                bias[without[at]] = -self.margin - highest[1 - at]
        return self.vectors


def _grouped(drawn: PanelRound, rng: np.random.Generator) -> AnyArray:
    """Return the columns of a panel in groups: half of each uniform, half by popularity."""
    half = GROUP // 2
    every = np.arange(-(-drawn.uniform // half) * half).reshape(-1, half)
    popular = rng.permutation(drawn.popular)
    groups = np.hstack([every % drawn.uniform, popular[every % len(popular)]])
    return groups.astype(np.uint64).ravel()


def learn_range(task: Task, given: HalfRound) -> tuple[Float32Array, Float32Array, Float64Array]:
    """Take steps for a range of positions.

    Returns their vectors, the sums of their squared gradients, and the sum of losses and number of
    paths. The arguments do not change, so a task can be repeated elsewhere.
    """
    rows = given.drawn.nodes[task[0] : task[1]]
    near, seen, totals = given.near[rows], given.seen[rows], np.zeros(2)
    learn_rows(task, given, np.arange(len(rows), dtype=np.int32), near, seen, totals)
    return near, seen, totals


def _learn_here(given: HalfRound, task: Task) -> Float64Array:
    """Take steps for a range of positions, in place: no copies of the vectors."""
    totals = np.zeros(2)
    rows = given.drawn.nodes[task[0] : task[1]]
    learn_rows(task, given, rows, given.near, given.seen, totals)
    return totals
