"""Scores of the nodes for breaking cycles: TrueSkill, PageRank and springs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float32Array, Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import checkpoint

ROUNDS = 7
STEPS = 5
ANCHOR = 0.3  # a weak spring from each node to 0


@dataclass(frozen=True, eq=False)
class TrueSkill:
    """The skill of every node, as a normal distribution.

    Attributes
    ----------
    mu, sigma : float64 arrays
        Mean and standard deviation of the belief about each node's skill.
    n_passes : int
        Number of passes over the edges.
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
    """Update the beliefs after each match, in order, by the closed form for two players."""
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


def pagerank(
    graph: Any, *, damping: float = 0.85, tol: float = 1e-10, max_iter: int = 1000
) -> Float64Array:
    """Return the PageRank of the nodes, which sums to 1, by power iteration.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
        Edge weights are not used. A node without out-edges jumps anywhere.
    damping : float
        Chance of following an edge.
    tol : float
        Stop once the sum of all changes is below this.
    max_iter : int
        Limit on the iterations.

    Examples
    --------
    >>> pagerank([(0, 1), (1, 0), (2, 0)]).round(3).tolist()
    [0.486, 0.464, 0.05]
    """
    if not 0.0 <= damping < 1.0:
        raise InputError(f"damping is {damping}; it must be in [0, 1).")
    graph = as_graph(graph)
    n = graph.n_nodes
    if n == 0:
        return np.zeros(0)
    out = graph.out_degree
    shape = (n, n)
    reverse = graph.reverse()
    share = 1.0 / np.maximum(out, 1)
    flow = sp.csr_array((share[reverse.targets], reverse.targets, reverse.indptr), shape=shape)
    rank = np.full(n, 1.0 / n)
    for _ in range(max_iter):
        spread = flow @ rank
        updated = damping * spread + (1.0 - damping * spread.sum()) / n
        change = np.abs(updated - rank).sum()
        rank = updated
        if change < tol:
            break
    return np.asarray(rank)


def spring_positions(graph: DiGraph, weights: Float64Array | None = None) -> Float64Array:
    """Return a position for every node; most edges go up.

    Every edge u → v is a spring that pulls v to one step above u. With springs of equal strength,
    wrong edges would distort the order. So the least-squares problem is solved several times; each
    time, a spring gets weaker the further it points down (a Cauchy weight), or the longer it is if
    it points up (an edge may span several levels). Each solution takes a few steps of conjugate
    gradients from the one before, and a step is one pass over the edges.

    `weights` are the strengths of the springs, by default 1.

    Examples
    --------
    >>> spring_positions(DiGraph.from_edges([(0, 1), (1, 2), (2, 3)])).round(1)
    array([-1. , -0.3,  0.3,  1. ])

    References
    ----------
    De Bacco, Larremore and Moore, "A physical model for efficient ranking in networks", Science
    Advances 2018, has the springs; the changing strengths are ours.
    """
    from scipy.sparse.linalg import LinearOperator, cg  # takes a tenth of a second

    n, u, v = graph.n_nodes, graph.sources, graph.targets
    # Single precision: the time is that of reading strengths and positions.
    stiffness = np.asarray(np.ones(len(u)) if weights is None else weights, dtype=np.float32)
    strength, x = stiffness, np.zeros(n, dtype=np.float32)
    for number in range(ROUNDS if len(u) else 0):
        checkpoint()
        if number:
            short = x[u] - x[v] + np.float32(1)
            strength = stiffness / (1 + np.where(short > 0, short * short, -short))
        out, into = np.bincount(u, strength, n), np.bincount(v, strength, n)
        diagonal = (out + into + ANCHOR).astype(np.float32)
        springs = sp.csr_array((strength, v, graph.indptr), shape=(n, n))
        matvec = partial(_laplacian_times, diagonal, springs, springs.T)
        laplacian = LinearOperator((n, n), matvec=matvec, dtype=np.float32)
        x, _ = cg(
            laplacian, (into - out).astype(np.float32), x, rtol=1e-6, maxiter=STEPS,
            M=sp.diags_array(1.0 / diagonal),
        )  # fmt: skip
    return np.asarray(x, dtype=np.float64)


def _laplacian_times(diagonal: Float32Array, springs: Any, back: Any, x: Float32Array) -> Any:
    return diagonal * x - springs @ x - back @ x
