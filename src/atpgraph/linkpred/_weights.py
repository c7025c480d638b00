"""Weights of blocks of vectors, learned on validation pairs: logistic loss, or reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from atpgraph._typing import Float32Array, Float64Array, Int64Array
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.negatives import Pairs

Search = Callable[[Float64Array], float]

_LOG_RANK = 0.005
_TOP = 60
_RANDOM = 400
_ROWS = 64


@dataclass(frozen=True, eq=False)
class Parts:
    """Blocks of source and target vectors, and features of the nodes.

    Attributes
    ----------
    blocks : list of (source, target)
    features : array of shape (nodes, d)
        The first column is 1.
    popularity : int
        The column of `features` that grows with the in-degree.
    """

    blocks: list[tuple[Float32Array, Float32Array]]
    features: Float32Array
    popularity: int

    def inner_products(self, u: Int64Array, v: Int64Array) -> Float64Array:
        """One column for each block."""
        return np.column_stack(
            [np.einsum("ik,ik->i", s[u], t[v], dtype=np.float64) for s, t in self.blocks]
        )

    def join(self, weights: Weights) -> tuple[Float32Array, Float32Array]:
        """One pair of vectors whose inner product is the weighted sum.

        Blocks of weight 0 are left out.
        """
        used = [(w * s, t) for w, (s, t) in zip(weights.blocks, self.blocks, strict=True) if w != 0]
        sources = [*(s for s, _ in used), self.features @ weights.form]
        targets = [*(t for _, t in used), self.features]
        return (
            np.hstack(sources).astype(np.float32, copy=False),
            np.hstack(targets).astype(np.float32, copy=False),
        )


@dataclass(frozen=True, eq=False)
class Weights:
    """The score of (u, v) is Σ_b blocks[b] ⟨s_u, t_v⟩_b + x_u · form · x_v, x the features."""

    blocks: Float64Array
    form: Float64Array


def unit_scale(source: Float32Array, target: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Vectors with source rescaled so that the mean square of ⟨s_u, t_v⟩ over all pairs is 1.

    Examples
    --------
    >>> s, t = unit_scale(np.float32([[2.0], [2.0]]), np.float32([[3.0], [3.0]]))
    >>> np.round(s @ t.T, 6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    a = source.astype(np.float64).T @ source
    b = target.astype(np.float64).T @ target
    square = float((a * b).sum()) / max(len(source) ** 2, 1)
    scale = 1.0 / np.sqrt(square) if square > 0 else 1.0
    return (source * scale).astype(np.float32), target.astype(np.float32)


def learn_pairs(parts: Parts, good: Pairs, bad: Pairs, regularization: float) -> Weights:
    """Logistic regression of good against bad pairs, with a ridge penalty.

    The regressors are the blocks' inner products and all products of a feature of u with one of v,
    each divided by its deviation.
    """
    u = np.concatenate([good.sources, bad.sources])
    v = np.concatenate([good.targets, bad.targets])
    d = parts.features.shape[1]
    products = parts.features[u, :, None] * parts.features[v, None, :]
    given = np.hstack([parts.inner_products(u, v), products.reshape(len(u), d * d)])
    spread = given.std(axis=0)
    spread[spread == 0] = 1.0
    given /= spread
    label = np.zeros(len(u))
    label[: len(good)] = 1.0
    # Both classes weigh the same, however many pairs each has.
    share = np.where(label == 1, 0.5 / max(len(good), 1), 0.5 / max(len(bad), 1))

    def loss(w: Float64Array) -> tuple[float, Float64Array]:
        z = given @ w
        value = share @ (np.logaddexp(0.0, z) - label * z) + regularization * (w @ w) / 2
        return float(value), given.T @ (share * (expit(z) - label)) + regularization * w

    start = np.zeros(given.shape[1])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    w = best.x / spread
    blocks = len(parts.blocks)
    return Weights(w[:blocks], w[blocks:].reshape(d, d))


def learn_ranking(
    parts: Parts, queries: Pairs, known: DiGraph, rng: np.random.Generator
) -> Weights:
    """Coordinate search for the weights with the highest mean reciprocal rank.

    Weights of blocks stay ≥ 0; that of the in-degree, which is a term of v alone, may be negative.
    (Terms of u alone do not change a ranking.) A rank is counted among the nodes any block has
    near the top, and estimated for the rest from a random sample.

    Reciprocal ranks alone are a lottery where nobody ranks well: of 2,000 queries one lucky first
    place moves the mean by 0.0005. So a little of the mean logarithm of the rank is taken off,
    which decides there and is too small to matter elsewhere.
    """
    popularity = parts.features[:, parts.popularity]
    one = np.ones((len(popularity), 1), dtype=np.float32)
    blocks = [*parts.blocks, (one, popularity[:, None])]
    others, weight = _candidates(blocks, queries, known, rng)
    truth = np.column_stack(
        [
            np.einsum("ik,ik->i", s[queries.sources], t[queries.targets], dtype=np.float64)
            for s, t in blocks
        ]
    )
    gap = others - truth[:, None, :]

    def value(w: Float64Array) -> float:
        ahead = gap @ w
        rank = 1.0 + (weight * ((ahead > 0) + 0.5 * (ahead == 0))).sum(axis=1)
        return float((1.0 / rank).mean() - _LOG_RANK * np.log(rank).mean())

    w = _ascend(value, len(blocks))
    d = parts.features.shape[1]
    form = np.zeros((d, d))
    form[0, parts.popularity] = w[-1]
    return Weights(w[:-1], form)


def _ascend(value: Search, size: int) -> Float64Array:
    """From the best single block, change one weight at a time while that helps."""
    alone = np.eye(size)
    best, at = max((value(w), -i) for i, w in enumerate(alone))
    w: Float64Array = alone[-at]
    for _ in range(4):
        before = best
        for i in range(size):
            steps = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
            if w[i] != 0:
                steps = w[i] * np.array([0.0, 0.5, 0.7, 1.4, 2.0])
            elif i == size - 1:
                steps = np.concatenate([-steps[:3], steps])
            for step in steps:
                other = w.copy()
                other[i] = step
                if other.any() and (tried := value(other)) > best + 1e-5:
                    best, w = tried, other
        if best - before < 1e-4:
            break
    return w


def _candidates(
    blocks: Sequence[tuple[Float32Array, Float32Array]],
    queries: Pairs,
    known: DiGraph,
    rng: np.random.Generator,
) -> tuple[Float64Array, Float64Array]:
    """Scores of nodes to rank against, by query, node and block; and how many nodes each is for."""
    n = known.n_nodes
    top = min(_TOP, n)
    width = top * len(blocks)
    scores = np.zeros((len(queries), width + _RANDOM, len(blocks)))
    weight = np.zeros((len(queries), width + _RANDOM))
    for low in range(0, len(queries), _ROWS):
        u = queries.sources[low : low + _ROWS]
        rows = np.arange(len(u))[:, None]
        banned = np.zeros((len(u), n), dtype=bool)
        banned[rows[:, 0], u] = True
        for i, node in enumerate(u):
            banned[i, known.targets[known.indptr[node] : known.indptr[node + 1]]] = True
        full = [s[u] @ t.T for s, t in blocks]
        near = np.zeros((len(u), n), dtype=bool)
        for products in full:
            masked = np.where(banned, -np.inf, products)
            near[rows, np.argpartition(masked, n - top, axis=1)[:, n - top :]] = True
        near &= ~banned
        chance = rng.integers(n, size=(len(u), _RANDOM))
        rest = (~near & ~banned).sum(axis=1)
        counted = ~near[rows, chance] & ~banned[rows, chance]
        share = rest / np.maximum(counted.sum(axis=1), 1)
        for i in range(len(u)):
            nodes = np.concatenate([np.flatnonzero(near[i]), chance[i, counted[i]]])
            scores[low + i, : len(nodes)] = np.column_stack(
                [products[i, nodes] for products in full]
            )
            inside = len(nodes) - int(counted[i].sum())
            weight[low + i, :inside] = 1.0
            weight[low + i, inside : len(nodes)] = share[i]
    return scores, weight
