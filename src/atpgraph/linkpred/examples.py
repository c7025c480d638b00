"""Pairs to learn from: edges that are hidden from the graph, and others to set against them.

Evidence is computed from what is left of the graph. Random pairs, and pairs that paths join the
other way round only, share their sources, and a hidden edge shares its source with the targets that
it might have had: a row of evidence is computed once for all pairs of its source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.candidates import choices
from atpgraph.linkpred.negatives import Pairs, non_edges, one_way_pairs
from atpgraph.linkpred.splits import removable_edges
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.progress import stage

_ENOUGH = 2000  # hidden edges; a small graph is hidden from several times
_ROUNDS = 4
_AGAINST = 2000  # pairs of each kind to set against hidden edges


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
    found = choices(graph, evidence, edges.sources, edges.targets, rng)
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


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    columns = {
        field.name: [getattr(sample, field.name) for sample in samples] for field in fields(Sample)
    }
    shifts = np.cumsum([0] + [len(sample.choices) for sample in samples[:-1]])
    columns["starts"] = [sample.starts + by for sample, by in zip(samples, shifts, strict=True)]
    return Sample(**{name: np.concatenate(parts) for name, parts in columns.items()})
