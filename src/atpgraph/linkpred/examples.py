"""Pairs to learn from: edges that are hidden from the graph, and others to set against them.

Evidence is computed from what is left of the graph. Random pairs, and pairs that paths join the
other way round only, share their sources, and a hidden edge shares its source with the targets that
it might have had: a row of evidence is computed once for all pairs of its source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from atpgraph._progress import stage
from atpgraph._threads import Workers
from atpgraph._typing import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection, Rows, VectorEvidence
from atpgraph.linkpred.evidence._rows import Workspace, best_of, gather
from atpgraph.linkpred.evidence.base import sources_at_once
from atpgraph.linkpred.negatives import Pairs, non_edges, one_way_pairs
from atpgraph.linkpred.splits import removable_edges

_ENOUGH = 2000  # hidden edges; a small graph is hidden from several times
_ROUNDS = 4
_BEST, _CHANCE = 8, 30  # candidates of a query: the best by each evidence, and some of the others
_AGAINST = 2000  # pairs of each kind to set against hidden edges
_LONGEST = 4096  # vectors that can be the best of a query


@dataclass(frozen=True)
class Plan:
    """How much is hidden and learned from.

    Attributes
    ----------
    fraction : float
        Share of the edges hidden in each round.
    max_pairs : int
        Limit on the hidden edges that are learned from.
    """

    fraction: float = 0.1
    max_pairs: int = 4000


@dataclass(frozen=True, eq=False)
class Sample:
    """Terms of pairs, by what they are for.

    Attributes
    ----------
    links : array
        Hidden edges.
    others : array
        Random pairs without an edge.
    forward, backward : array
        Hidden edges whose reverse is no edge, and these reverses.
    against : array
        Pairs that paths join the other way round only.
    choices : array
        The targets that the sources of hidden edges could have had, the true one first.
    starts : int64 array
        Where the choices of each hidden edge begin.
    log_weight : array
        Logarithm of how many nodes each choice stands for.
    """

    links: Float64Array
    others: Float64Array
    forward: Float64Array
    backward: Float64Array
    against: Float64Array
    choices: Float64Array
    starts: Int64Array
    log_weight: Float64Array


class Choices(NamedTuple):
    """Targets that the sources of queries could have, see :class:`Sample`."""

    sources: Int64Array
    targets: Int64Array
    starts: Int64Array
    log_weight: Float64Array
    terms: Float64Array


def examples(
    graph: DiGraph,
    collect: Callable[[], Collection],
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[Sample, Collection]:
    """The pairs to learn from, of as many rounds as it takes, and the collection of the last."""
    samples: list[Sample] = []
    hidden = hidden_edges(graph, plan.fraction, rng)
    rounds = min(_ROUNDS, -(-min(_ENOUGH, plan.max_pairs) // len(hidden)))
    for left in range(rounds, 0, -1):
        evidence = collect().fit(graph.without_edges(hidden))
        with stage("pairs to learn from"):
            samples.append(_sample(graph, evidence, hidden[: plan.max_pairs], rng))
        if left > 1:
            hidden = hidden_edges(graph, plan.fraction, rng)
    return _joined(samples), evidence


def hidden_edges(graph: DiGraph, fraction: float, rng: np.random.Generator) -> Int64Array:
    """Edges to hide: those that leave the rest as connected as it was, if there are enough.

    Of a forest, where every edge is a bridge, any edges.
    """
    wanted = max(1, round(fraction * (graph.n_edges - graph.n_self_loops)))
    taken = removable_edges(graph, wanted, rng)
    if len(taken) < wanted / 2:
        real = np.flatnonzero(graph.sources != graph.targets)
        taken = rng.permutation(real)[:wanted].astype(np.int64)
    if len(taken) < 2 or graph.n_edges - len(taken) < 1:
        raise InputError(
            f"A graph of {graph.n_edges:,} edges is too small to learn from: some edges have to be "
            "hidden, and the rest has to say where they were."
        )
    return taken


def _sample(
    graph: DiGraph, evidence: Collection, taken: Int64Array, rng: np.random.Generator
) -> Sample:
    edges = Pairs(graph.sources[taken].astype(np.int64), graph.targets[taken].astype(np.int64))
    found = choices(graph, evidence, edges, rng)
    links = found.terms[found.starts]
    one_way = np.flatnonzero(graph.find_edges(edges.targets, edges.sources) < 0)
    count = min(len(edges), _AGAINST)
    others = non_edges(graph, count, rng)
    against = one_way_pairs(graph, count, rng, among=np.unique(others.sources))
    back = edges.take(one_way[:count])
    sides = (others, against, Pairs(back.targets, back.sources))
    terms = evidence.terms(
        np.concatenate([side.sources for side in sides]),
        np.concatenate([side.targets for side in sides]),
    )
    first, second = len(others), len(others) + len(against)
    return Sample(
        links=links,
        others=terms[:first],
        forward=links[one_way],
        backward=terms[second:],
        against=terms[first:second],
        choices=found.terms,
        starts=found.starts,
        log_weight=found.log_weight,
    )


def choices(
    graph: DiGraph, evidence: Collection, queries: Pairs, rng: np.random.Generator
) -> Choices:
    """Each query (u, v) with other targets of u: the best by each evidence, and some by chance.

    A candidate drawn by chance stands for all that were not. The best by vectors are sought among
    the longest ones.
    """
    step = sources_at_once(graph.n_nodes)
    lows = range(0, len(queries), step)
    vectors = [_longest(part) for part in evidence if isinstance(part, VectorEvidence)]

    def one(task: tuple[int, np.random.Generator]) -> Choices:
        low, own = task
        some = queries.take(np.arange(low, min(low + step, len(queries))))
        return _block(graph, evidence, vectors, some, own)

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
    queries: Pairs,
    rng: np.random.Generator,
) -> Choices:
    """The choices of a few queries, on one thread."""
    room = Workspace.of(graph.n_nodes)
    local = evidence.local
    rows = [part.rows_of(queries.sources, room) for part in local]
    scores = [(nodes, source[queries.sources] @ target.T) for nodes, source, target in vectors]
    free = np.ones(graph.n_nodes, dtype=bool)
    parts: list[Int64Array] = []
    weights: list[Float64Array] = []
    for at, (u, v) in enumerate(zip(queries.sources, queries.targets, strict=True)):
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
    u, v = np.repeat(queries.sources, sizes), np.concatenate(parts)
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


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    columns = {
        field.name: [getattr(sample, field.name) for sample in samples] for field in fields(Sample)
    }
    shifts = np.cumsum([0] + [len(sample.choices) for sample in samples[:-1]])
    columns["starts"] = [sample.starts + by for sample, by in zip(samples, shifts, strict=True)]
    return Sample(**{name: np.concatenate(parts) for name, parts in columns.items()})
