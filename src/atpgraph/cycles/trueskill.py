"""TrueSkill of the nodes: every edge u → v is a match that v won."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import checkpoint

_DRAWS = 2**18  # at a time
_AHEAD = 16  # matches: a few dozen nanoseconds each, the time that memory takes
_FAR = 8.0  # standard deviations that the table of _expansions covers on either side
_PER_UNIT = 32.0  # its rows per standard deviation


@dataclass(frozen=True, eq=False)
class TrueSkill:
    """Skill of every node, a normal belief.

    Attributes
    ----------
    mu, sigma : float64 arrays
        Mean and standard deviation of the belief about each node's skill.
    n_passes : int
        How often the edges were played.
    """

    mu: Float64Array
    sigma: Float64Array
    n_passes: int

    @property
    def score(self) -> Float64Array:
        """The conservative skill μ − 3σ."""
        return self.mu - 3.0 * self.sigma


def trueskill(
    graph: DiGraph,
    *,
    max_passes: int = 15,
    target: float = 0.95,
    mu: float = 25.0,
    sigma: float = 25.0 / 3.0,
    beta: float = 25.0 / 6.0,
    tau: float = 25.0 / 300.0,
    draw_probability: float = 0.10,
    random_state: RandomState = 0,
) -> TrueSkill:
    """Rate the nodes by playing every edge as a match, in a new order on each pass.

    Parameters
    ----------
    graph : DiGraph
        Self-loops are not matches and are skipped.
    max_passes : int
        Limit on the passes over the edges.
    target : float
        Stop once this share of the edges has score(u) ≤ score(v).
    mu, sigma, beta, tau, draw_probability : float
        The parameters of TrueSkill, at their usual values.
    random_state : int, Generator or None
        Seed of the order of the matches.

    Examples
    --------
    >>> skill = trueskill(DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c")]))
    >>> np.argsort(skill.score).tolist()
    [0, 1, 2]

    References
    ----------
    Herbrich, Minka and Graepel, "TrueSkill: a Bayesian skill rating system", NIPS 2006.
    """
    if not 0.0 <= draw_probability < 1.0:
        raise InputError(f"draw_probability is {draw_probability}; it must be in [0, 1).")
    if min(sigma, beta) <= 0.0 or tau < 0.0:
        raise InputError("sigma and beta must be positive and tau must not be negative.")
    rng = generator(random_state)
    proper = graph.sources != graph.targets
    # Matches in random order wait for memory: both players are in one number, which is shuffled
    # itself, and mean and variance of a node are side by side.
    matches = graph.sources[proper].astype(np.int64)
    matches <<= 32
    matches |= graph.targets[proper]
    belief = np.empty((graph.n_nodes, 2))
    belief[:, 0] = mu
    belief[:, 1] = sigma**2
    margin = NormalDist().inv_cdf((draw_probability + 1.0) / 2.0) * math.sqrt(2.0) * beta
    table = _expansions()
    passes = 0
    if len(matches):
        played = np.empty_like(matches)
        for _ in range(max_passes):
            checkpoint()
            np.copyto(played, matches)
            shuffle(played, rng)
            _play(played, belief, beta, tau, margin, table)
            passes += 1
            score = belief[:, 0] - 3.0 * np.sqrt(belief[:, 1])
            if _count_rising(matches, score) / len(matches) >= target:
                break
    return TrueSkill(belief[:, 0].copy(), np.sqrt(belief[:, 1]), passes)


def shuffle(values: Int64Array, rng: np.random.Generator) -> None:
    """What ``rng.shuffle(values)`` does, to the same order, in half the time.

    Examples
    --------
    >>> one, other = np.arange(9), np.arange(9)
    >>> shuffle(one, np.random.default_rng(0))
    >>> np.random.default_rng(0).shuffle(other)
    >>> np.array_equal(one, other)
    True
    """
    last = len(values) - 1
    while last > 0:
        draws = rng.integers(2**32, size=min(last, _DRAWS), dtype=np.uint32)
        last = _swap(values, last, draws)


@kernel
def _swap(values: Any, last: int, draws: Any) -> int:
    """Fisher and Yates from the end on; returns the place that comes next.

    Of a draw as many bits count as the place has. One that is too large is rejected, so that all
    places are as likely: the value changes places with itself, which is cheaper than a branch that
    nobody can predict.
    """
    mask = 1
    while mask < last:
        mask = 2 * mask + 1
    for draw in draws:
        if last <= mask >> 1:
            mask >>= 1
        drawn = int(draw) & mask
        good = drawn <= last
        at = drawn if good else last
        values[last], values[at] = values[at], values[last]
        last -= int(good)
    return last


@kernel
def _count_rising(matches: Any, score: Any) -> int:
    """How many matches were won by a node that does not score lower."""
    count = 0
    for match in matches:
        if score[match >> 32] <= score[match & 0xFFFFFFFF]:
            count += 1
    return count


def _expansions() -> Float64Array:
    """Taylor coefficients of v, the mean of the truncated normal, at steps of 1 / `_PER_UNIT`.

    They follow from v′ = −v (v + t); eight are exact to the last digits half a step away.
    """
    t = np.arange(-_FAR, _FAR + 0.5 / _PER_UNIT, 1.0 / _PER_UNIT)
    table = np.zeros((len(t), 8))
    table[:, 0] = [_truncated_mean(at) for at in t]
    for k in range(7):
        square = sum(table[:, i] * table[:, k - i] for i in range(k + 1))
        before = table[:, k - 1] if k else 0.0
        table[:, k + 1] = -(square + t * table[:, k] + before) / (k + 1)
    return table


@kernel
def _truncated_mean(t: float) -> float:
    """Density / cumulative of the normal distribution; −t where that underflows."""
    cumulative = 0.5 * math.erfc(-t / math.sqrt(2.0))
    if cumulative > 1e-300:
        return math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / cumulative
    return -t


@kernel
def _play(matches: Any, belief: Any, beta: float, tau: float, margin: float, table: Any) -> float:
    """Update the beliefs by the matches in order: the closed form for one against one.

    What is returned means nothing: it keeps the look at players of later matches, by which their
    beliefs are there when they are needed.
    """
    seen = 0.0
    last = len(matches) - 1
    for i in range(len(matches)):
        soon = matches[min(i + _AHEAD, last)]
        seen += belief[soon >> 32, 1] + belief[soon & 0xFFFFFFFF, 1]
        x, w = matches[i] >> 32, matches[i] & 0xFFFFFFFF
        vw = belief[w, 1] + tau * tau
        vx = belief[x, 1] + tau * tau
        c2 = vw + vx + 2.0 * beta * beta
        c = math.sqrt(c2)
        t = (belief[w, 0] - belief[x, 0] - margin) / c
        if abs(t) < _FAR:
            row = int((t + _FAR) * _PER_UNIT + 0.5)
            d = t - (row / _PER_UNIT - _FAR)
            v = table[row, 7]
            for k in range(6, -1, -1):
                v = v * d + table[row, k]
        else:
            v = _truncated_mean(t)
        shrink = v * (v + t)
        belief[w, 0] += vw / c * v
        belief[x, 0] -= vx / c * v
        belief[w, 1] = vw * (1.0 - vw / c2 * shrink)
        belief[x, 1] = vx * (1.0 - vx / c2 * shrink)
    return seen
