"""TrueSkill of the nodes: every edge u → v is a match that v won."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.util.arrays import Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import checkpoint


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
    graph: Any,
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
    graph : anything :func:`atpgraph.as_graph` takes
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
    >>> skill = trueskill([("a", "b"), ("b", "c"), ("a", "c")])
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
    graph, rng = as_graph(graph), generator(random_state)
    proper = graph.sources != graph.targets
    # Both players in one number, so that a shuffle moves one array; mean and variance side by side.
    matches = graph.sources[proper].astype(np.int64) << 32 | graph.targets[proper]
    belief = np.tile([mu, sigma**2], (graph.n_nodes, 1))
    margin = NormalDist().inv_cdf((draw_probability + 1.0) / 2.0) * math.sqrt(2.0) * beta
    passes = 0
    for _ in range(max_passes if len(matches) else 0):
        checkpoint()
        played = matches.copy()
        rng.shuffle(played)
        _play(played, belief, beta, tau, margin)
        passes += 1
        score = belief[:, 0] - 3.0 * np.sqrt(belief[:, 1])
        if np.mean(score[matches >> 32] <= score[matches & 0xFFFFFFFF]) >= target:
            break
    return TrueSkill(belief[:, 0].copy(), np.sqrt(belief[:, 1]), passes)


@kernel
def _play(matches: Any, belief: Any, beta: float, tau: float, margin: float) -> None:
    """Update the beliefs by the matches in order: the closed form for one against one."""
    for match in matches:
        x, w = match >> 32, match & 0xFFFFFFFF
        vw, vx = belief[w, 1] + tau * tau, belief[x, 1] + tau * tau
        c2 = vw + vx + 2.0 * beta * beta
        c = math.sqrt(c2)
        t = (belief[w, 0] - belief[x, 0] - margin) / c
        # The mean of the truncated normal: density / cumulative, −t where that underflows.
        cumulative = 0.5 * math.erfc(-t / math.sqrt(2.0))
        v = -t
        if cumulative > 1e-300:
            v = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / cumulative
        shrink = v * (v + t)
        belief[w, 0] += vw / c * v
        belief[x, 0] -= vx / c * v
        belief[w, 1] = vw * (1.0 - vw / c2 * shrink)
        belief[x, 1] = vx * (1.0 - vx / c2 * shrink)
