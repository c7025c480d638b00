"""Why a link is likely: each evidence in numbers, and the nodes behind it by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection, Levels, Walks
from atpgraph.linkpred.logit import Head, log_odds
from atpgraph.util.arrays import Int64Array

_NAMED = 5


@dataclass(frozen=True)
class Reason:
    """One kind of evidence for a pair.

    Attributes
    ----------
    kind : str
        The kind of evidence.
    weight : float
        By how much it raises (or lowers) the log-odds, against a usual pair without a link.
    values : dict
        The numbers found.
    words : str
    nodes : list of labels
        The nodes in between, or nodes that both link to, as far as the evidence has any.
    """

    kind: str
    weight: float
    values: dict[str, float]
    words: str
    nodes: list[Any]


@dataclass(frozen=True)
class Explanation:
    """What speaks for and against a link.

    Attributes
    ----------
    source, target : labels
    probability : float
    known : bool
        Whether the graph has the edge already.
    reasons : list of Reason
        The weightiest first.
    """

    source: Any
    target: Any
    probability: float
    known: bool
    reasons: list[Reason]

    def __str__(self) -> str:
        there = ", an edge already" if self.known else ""
        lines = [f"{self.source} → {self.target}: {self.probability:.2f}{there}"]
        lines += [f"  {reason.weight:+.2f}  {reason.words}" for reason in self.reasons]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "probability": self.probability,
            "known": self.known,
            "reasons": [vars(reason) for reason in self.reasons],
        }


def explain(
    graph: DiGraph,
    evidence: Collection,
    heads: Mapping[str, Head],
    u: int,
    v: int,
    base_rate: float,
) -> Explanation:
    """The contributions of each kind of evidence to the log-odds of the link u → v."""
    head = heads["link"]
    found = evidence.pairs(np.array([u]), np.array([v]))
    terms = evidence.as_terms(found)
    above = (terms[0] - head.usual) * head.weights
    parts: dict[str, tuple[float, dict[str, float]]] = {}
    for kind, part, numbers, columns in evidence.spans():
        weight, values = parts.get(kind, (0.0, {}))
        shown = dict(zip(part.names, found[0, numbers].tolist(), strict=True))
        if kind == "attributes":
            shown = {"similarity": shown["similarity"]}
        parts[kind] = (weight + float(above[columns].sum()), values | shown)
    reasons = [
        Reason(kind, weight, values, *_words(graph, evidence, kind, values, u, v))
        for kind, (weight, values) in parts.items()
    ]
    reasons.sort(key=lambda reason: -abs(reason.weight))
    odds = float(head.score(terms)[0]) + log_odds(base_rate)
    labels = graph.labels.tolist()
    known = bool(graph.find_edges([u], [v])[0] >= 0)
    return Explanation(labels[u], labels[v], float(1.0 / (1.0 + np.exp(-odds))), known, reasons)


def _words(
    graph: DiGraph, evidence: Collection, kind: str, values: dict[str, float], u: int, v: int
) -> tuple[str, list[Any]]:
    """A sentence, and the labels of the nodes it names."""
    out_u, in_v = _out(graph, u), _out(graph.reverse(), v)
    if kind == "proximity":
        return f"a walk from the source is at the target {_share(values['proximity'])}", []
    if kind == "reach":
        return (
            f"walking forward, it is at the target {_share(values['reached'])}, walking backward "
            f"{_share(values['reaching'])}"
        ), []
    if kind == "paths":
        between = np.intersect1d(out_u, in_v)
        names = _labels(graph, between)
        told = f"{_count(len(between), 'path')} of two steps{_by(names)}"
        walks = Walks("><>", damping=0.0).fit(graph).pairs(np.array([u]), np.array([v]))[0, 0]
        alike = _count(round(walks), "walk")
        return f"{told}; {alike} over somebody with the same target", names
    if kind == "citation":
        same = np.intersect1d(out_u, _out(graph, v))
        together = np.intersect1d(_out(graph.reverse(), u), in_v)
        names = _labels(graph, np.union1d(same, together))
        return (
            f"{_count(len(same), 'target')} in common, {_count(len(together), 'source')} in common"
            f"{_by(names)}",
            names,
        )
    if kind == "reverse":
        there = values["<"] > 0
        return "the edge the other way round is there" if there else "no edge the other way", []
    if kind == "degrees":
        return (
            f"the source has {_count(len(out_u), 'out-edge')}, the target "
            f"{_count(len(in_v), 'in-edge')}",
            [],
        )
    if kind == "levels":
        (level,) = (part.level_ for part in evidence if isinstance(part, Levels))
        apart = int(level[v] - level[u])
        way = "above" if apart > 0 else "below"
        told = f"{abs(apart):,} {way} the source" if apart else "the same as the source"
        return f"level {int(level[v]):,}, {told}", []
    if kind == "atp":
        forth, back = values["ATP score"], values["ATP score of v → u"]
        return f"ATP scores the link {forth:.2f}, its reverse {back:.2f}", []
    if kind == "spectral":
        return f"nodes like the source link to it with strength {values['spectral score']:.2f}", []
    return f"attributes are alike by {values['similarity']:.2f}", []


def _out(graph: DiGraph, u: int) -> Int64Array:
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]].astype(np.int64)


def _labels(graph: DiGraph, codes: Int64Array) -> list[Any]:
    """The labels of a few of the nodes, the least popular first: they say most."""
    few = codes[np.argsort(graph.in_degree[codes] + graph.out_degree[codes], kind="stable")]
    return list(graph.labels[few[:_NAMED]].tolist())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _share(value: float) -> str:
    return f"{value:.2%} of the time" if value >= 5e-5 else "hardly ever"


def _by(names: list[Any]) -> str:
    return f" ({', '.join(map(str, names))})" if names else ""
