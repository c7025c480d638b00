"""Targets that a source might have: the best by each evidence, and some by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence._rows import Workspace, best_of, gather
from atpgraph.linkpred.evidence.base import Rows, sources_at_once
from atpgraph.linkpred.evidence.collection import Collection
from atpgraph.linkpred.evidence.vectors import VectorEvidence
from atpgraph.util.arrays import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.threads import Workers

_BEST, _CHANCE = 8, 30  # candidates of a query: the best by each evidence, and some of the others
_LONGEST = 4096  # vectors that can be the best of a query


class Choices(NamedTuple):
    """Targets that the sources of queries could have, the true one first.

    ``starts`` says where the choices of each query begin, ``log_weight`` is the logarithm of how
    many nodes each choice stands for, and ``terms`` are those of the pairs.
    """

    sources: Int64Array
    targets: Int64Array
    starts: Int64Array
    log_weight: Float64Array
    terms: Float64Array


def choices(
    graph: DiGraph,
    evidence: Collection,
    sources: Int64Array,
    targets: Int64Array,
    rng: np.random.Generator,
) -> Choices:
    """Each query (u, v) with other targets of u: the best by each evidence, and some by chance.

    A candidate drawn by chance stands for all that were not. The best by vectors are sought among
    the longest ones.
    """
    step = sources_at_once(graph.n_nodes)
    lows = range(0, len(sources), step)
    vectors = [_longest(part) for part in evidence if isinstance(part, VectorEvidence)]

    def one(task: tuple[int, np.random.Generator]) -> Choices:
        low, own = task
        some = slice(low, low + step)
        return _block(graph, evidence, vectors, sources[some], targets[some], own)

    with Workers(evidence.settings.n_jobs) as workers:
        blocks = list(workers.map(one, zip(lows, rng.spawn(len(lows)), strict=True)))
    shifts = np.cumsum([0] + [len(block.targets) for block in blocks[:-1]])
    parts = [
        block._replace(starts=block.starts + shift)
        for block, shift in zip(blocks, shifts, strict=True)
    ]
    return Choices(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _block(
    graph: DiGraph,
    evidence: Collection,
    vectors: list[tuple[Int32Array, FloatArray, FloatArray]],
    sources: Int64Array,
    targets: Int64Array,
    rng: np.random.Generator,
) -> Choices:
    """The choices of a few queries, on one thread."""
    room = Workspace.of(graph.n_nodes)
    local = evidence.local
    rows = [part.rows_of(sources, room) for part in local]
    scores = [(nodes, source[sources] @ target.T) for nodes, source, target in vectors]
    free = np.ones(graph.n_nodes, dtype=bool)
    parts: list[Int64Array] = []
    weights: list[Float64Array] = []
    for at, (u, v) in enumerate(zip(sources, targets, strict=True)):
        known = np.append(graph.targets[graph.indptr[u] : graph.indptr[u + 1]], u)
        free[known] = False
        best = [_best(*_line(row, at), free) for row in rows]
        best += [_best(nodes, score[at], free) for nodes, score in scores]
        top = np.unique(np.concatenate(best)) if best else np.empty(0, dtype=np.int64)
        free[top] = False
        chance, rest = _by_chance(free, rng)
        free[known], free[top] = True, True
        parts.append(np.concatenate([[v], top, chance]).astype(np.int64))
        share = max(rest / max(len(chance), 1), 1.0)
        weights.append(np.repeat([0.0, np.log(share)], [1 + len(top), len(chance)]))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    u, v = np.repeat(sources, sizes), np.concatenate(parts)
    near = np.empty((len(local), len(v)))
    for line, row in zip(near, rows, strict=True):
        gather(*row, bounds, v, room.value, line)
    terms = evidence.as_terms(evidence.with_local(near.T, u, v))
    return Choices(u, v, bounds[:-1], np.concatenate(weights), terms)


def _longest(part: VectorEvidence) -> tuple[Int32Array, FloatArray, FloatArray]:
    """Nodes whose target vectors are the longest, all source vectors, and these target vectors."""
    length = np.einsum("ij,ij->i", part.target_, part.target_)
    nodes = np.arange(len(length), dtype=np.int32)
    if len(length) > _LONGEST:
        nodes = np.sort(np.argpartition(-length, _LONGEST)[:_LONGEST]).astype(np.int32)
    return nodes, part.source_, part.target_[nodes]


def _line(rows: Rows, at: int) -> tuple[Int32Array, FloatArray]:
    part = slice(rows.indptr[at], rows.indptr[at + 1])
    return rows.nodes[part], rows.values[part]


def _best(nodes: Int32Array, values: FloatArray, free: BoolArray) -> Int64Array:
    best = np.empty(_BEST, dtype=np.int64)
    return best[: best_of(nodes, values, free, best, np.empty(_BEST))]


def _by_chance(free: BoolArray, rng: np.random.Generator) -> tuple[Int64Array, int]:
    """A few of the free nodes, and how many there are."""
    rest = int(np.count_nonzero(free))
    if rest < len(free) / 2:
        some = np.flatnonzero(free)
        return rng.choice(some, min(_CHANCE, rest), replace=False), rest
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < min(_CHANCE, rest):
        fresh = rng.integers(len(free), size=3 * _CHANCE)
        both = np.concatenate([drawn, fresh[free[fresh]]])
        _, first = np.unique(both, return_index=True)
        drawn = both[np.sort(first)][:_CHANCE]
    return drawn, rest
