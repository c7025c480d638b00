"""Explain why a link is suggested: the contribution of each group of evidence to the score."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.linkpred.ranking import Head, Ranker

_NAMED = 5
# Evidence that says the same in several ways is one reason.
GROUPS = {
    "neighborhood": ("proximity", "reach", "paths", "citation", "spectral", "atp"),
    "reverse": ("reverse",),
    "popularity": ("degrees",),
    "time": ("recency",),
    "hierarchy": ("levels",),
    "attributes": ("attributes",),
}
# Groups whose contribution is measured against a typical candidate; the others against nothing.
_AGAINST_USUAL = ("popularity", "time", "hierarchy", "attributes")


@dataclass(frozen=True)
class Reason:
    """The contribution of one group of evidence (:data:`GROUPS`) to a score."""

    kind: str
    weight: float
    values: dict[str, float]
    words: str
    nodes: list[Any]  # labels of nodes in between, or linked with both


@dataclass(frozen=True)
class Explanation:
    """The reasons for and against a link.

    ``score`` orders the list: ``base``, the score of a typical candidate with no connection between
    source and target, and the weights of all reasons add up to it. ``probability`` is the
    probability that the pair is a link, see :meth:`~atpgraph.LinkPredictor.predict_proba`.
    """

    source: Any
    target: Any
    score: float
    base: float
    probability: float
    known: bool  # whether the graph has the edge already
    reasons: list[Reason]  # the weightiest first

    def __str__(self) -> str:
        there = ", an edge already" if self.known else ""
        lines = [f"{self.source} → {self.target}: score {self.score:.2f}{there}"]
        lines += [f"  {self.base:+.2f}  base: a typical candidate without any connection"]
        lines += [f"  {reason.weight:+.2f}  {reason.words}" for reason in self.reasons]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def explain(evidence: Collection, head: Head, u: int, v: int) -> tuple[float, float, list[Reason]]:
    """Return the score of u → v, the score of a pair with no evidence, and the reasons between."""
    found = evidence.pairs(np.array([u]), np.array([v]))
    terms = evidence.as_terms(found)[0]
    group_of = {kind: group for group, kinds in GROUPS.items() for kind in kinds}
    groups = np.array([group_of[kind] for kind in evidence.term_kinds])
    nothing = evidence.as_terms(np.zeros_like(found))[0]
    reference = np.where(np.isin(groups, _AGAINST_USUAL), head.usual, nothing)
    above = (terms - reference) * head.weights
    reasons = []
    for group in GROUPS:
        numbers = zip(evidence.names, evidence.number_kinds, found[0].tolist(), strict=True)
        shown = {
            name: value
            for name, kind, value in numbers
            if value and group_of[kind] == group and not name.startswith("attributes ")
        }
        if shown or above[groups == group].any():
            words, nodes = _words(evidence, group, shown, u, v)
            reasons.append(Reason(group, float(above[groups == group].sum()), shown, words, nodes))
    reasons.sort(key=lambda reason: -abs(reason.weight))
    base = float(head.score(reference[None])[0])
    return float(head.score(terms[None])[0]), base, reasons


def explain_popularity(ranker: Ranker, u: int, v: int) -> tuple[float, float, list[Reason]]:
    """Return the score of v for a source without edges, the base 0, and the only reason."""
    score, recent = float(ranker.popularity(u)[v]), int(ranker.link_counts(u, ranker.horizon)[v])
    share = 100 * ranker.horizon
    lately = "" if share >= 100 else f" among the latest {share:g}% of all links"
    words = f"nothing is known of the source; the target got {_count(recent, 'link')}{lately}"
    return score, 0.0, [Reason("popularity", score, {"recent in-degree": float(recent)}, words, [])]


def _words(
    evidence: Collection, group: str, values: dict[str, float], u: int, v: int
) -> tuple[str, list[Any]]:
    """Return the facts behind a reason, in words, and the labels of the nodes they name."""
    graph = evidence.graph
    out_u, in_v = targets_of(graph, u), targets_of(graph.reverse(), v)
    if group == "neighborhood":
        between = np.intersect1d(out_u, in_v)
        same = np.intersect1d(out_u, targets_of(graph, v))
        together = np.intersect1d(targets_of(graph.reverse(), u), in_v)
        shared = between if len(between) else np.union1d(same, together)
        # The least popular first: they say most.
        degree = graph.in_degree[shared] + graph.out_degree[shared]
        names = graph.labels[shared[np.argsort(degree, kind="stable")[:_NAMED]]].tolist()
        kinds = {
            "path of two steps": between, "target in common": same, "source in common": together,
        }  # fmt: skip
        facts = [_count(len(nodes), what) for what, nodes in kinds.items() if len(nodes)]
        if values.get("><>", 0) and not facts:
            facts.append("nodes with the same targets link to it")
        if values.get("proximity", 0) >= 5e-5:
            facts.append(f"a random walk visits it {values['proximity']:.2%} of the time")
        if values.get("spectral score", 0) >= 0.005:
            facts.append(f"nodes like the source link to it ({values['spectral score']:.2f})")
        by = f" ({', '.join(map(str, names))})" if names else ""
        if not facts:
            return "a distant connection", names
        return ", ".join([facts[0] + by, *facts[1:]]), names
    if group == "reverse":
        return "the target links to the source", []
    if group == "popularity":
        ends = (("target", in_v, "in-edge"), ("source", out_u, "out-edge"))
        degrees = [f"the {end} has {_count(len(e), what)}" for end, e, what in ends if len(e)]
        return ", ".join(degrees) or "how active both nodes are", []
    if group == "time":
        names = [name for name in values if name.startswith("recent")]
        recent = max((int(values[name]) for name in names), default=0)
        age = "older" if values.get("age gap", 0) >= 0 else "newer"
        lately = f" and got {_count(recent, 'link')} lately" if recent else ""
        return f"the target is {age} than the source{lately}", []
    if group == "hierarchy":
        level = evidence.part("levels").level_
        apart = int(level[v] - level[u])
        way = "above" if apart > 0 else "below"
        told = f"{abs(apart):,} {way} the source" if apart else "the same as the source"
        return f"the target is on level {int(level[v]):,}, {told}", []
    return f"attributes are alike by {values.get('similarity', 0.0):.2f}", []


def _count(number: int, what: str) -> str:
    head, _, rest = what.partition(" ")
    plural = "" if number == 1 else "s"
    return f"{number:,} {head}{plural}{' ' + rest if rest else ''}"
