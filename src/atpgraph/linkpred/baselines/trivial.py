"""Trivial baselines for every table: degrees, levels, neighbors, PageRank and popularity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.attributes import Clock
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk, undirected
from atpgraph.linkpred.evidence.parts import Evidence, Levels, Recency, Settings
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray

Numbers = Mapping[str, Any]


@dataclass(eq=False)
class Formula:
    """A formula over evidence; nothing is learned.

    The formula gets the numbers of pairs by name: the degrees ``out_u``, ``in_u``, ``out_v``,
    ``in_v``, the largest in-degree ``most``, the columns of local evidence, and the numbers of
    ``part`` (:class:`Recency` has some only where there are times).
    """

    name: str
    formula: Callable[[Numbers], Any]
    columns: Sequence[PageRank | Walk] = ()
    part: type[Evidence] | None = None
    any_direction: bool = False  # whether edges are followed both ways
    limits: Mapping[str, int] = field(default_factory=dict)  # of :class:`Local`
    random_state: int = 0

    @property
    def uses_times(self) -> bool:
        """Whether times are evidence."""
        return self.part is Recency

    def fit(self, graph: DiGraph, *, times: Any = None) -> Self:
        """Store the parts of the graph that the formula needs."""
        self._graph, self._fitted = graph, None
        whole = undirected(graph) if self.any_direction else graph
        self._local = Local(self.columns, **self.limits).fit(whole)
        clock = None if times is None else Clock.of(times, graph)
        if self.part is not None and (clock is not None or not self.uses_times):
            settings = Settings(random_state=self.random_state, clock=clock)
            self._fitted = self.part(settings).fit(graph)
        return self

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the formula of the pairs."""
        return self._scores(self._local.pairs(u, v), u, v)

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the formula of all targets, a row for each source."""
        n = self._graph.n_nodes

        def visit(at: int, room: Room) -> FloatArray:
            return self._scores(room.table, np.full(n, u[at]), np.arange(n))

        return np.stack(self._local.scan(u, visit))

    def _scores(self, near: FloatArray, u: IntArray, v: IntArray) -> Float64Array:
        out, into = self._graph.out_degree, self._graph.in_degree
        numbers: dict[str, Any] = {"out_u": out[u], "in_u": into[u], "out_v": out[v]}
        numbers |= {"in_v": into[v], "most": into.max(initial=0)}
        numbers |= dict(zip(self._local.names, near.T, strict=True))
        if self._fitted is not None:
            numbers |= dict(zip(self._fitted.names, self._fitted.pairs(u, v).T, strict=True))
        return np.asarray(self.formula(numbers), dtype=np.float64)


def _recent(x: Numbers, horizon: str) -> Any:
    """Return the recent links of v, ties broken by all links so far; all links without times."""
    ever = x.get("in-degree then", x["in_v"])
    return x.get(f"recent in-degree, {horizon} %", x["in_v"]) + ever / (x["most"] + 1.0)


class HierarchyLevels(Levels):
    """Levels as in the paper's hierarchy."""

    method = "h-voting"


_COSINE = Walk("><>", "cosine", damping=(0.5, 0.0), arrival=0.5)
_TWO_STEPS = Walk(">>", damping=(0.0,))
FORMULAS = {
    # level(v) − level(u) in the graph with its cycles broken: steps 1 and 2 of ATP alone.
    "levels": Formula(
        "difference of levels", lambda x: x["level of v"] - x["level of u"], part=HierarchyLevels
    ),
    # Number of nodes w with u → w → v, hubs included.
    "common-neighbours": Formula(
        "common neighbors",
        lambda x: x[">>"],
        [_TWO_STEPS],
        limits={"hub": 2**31, "budget": 2**62},
    ),
    # Nodes next to both, whatever the direction; the in-degree of v breaks ties, so that it says
    # something on a forest too, where two nodes without an edge rarely have a neighbor in common.
    "common-neighbours-any": Formula(
        "common neighbors, any direction",
        lambda x: x[">>"] + x["in_v"] / (2.0 * np.maximum(x["most"], 1)),
        [_TWO_STEPS],
        any_direction=True,
    ),
    # A D⁻¹ Aᵀ A: u → x ← y → v, by the in-degree of x. Who points where u points, points to v.
    "paths": Formula("path u → x ← y → v", lambda x: x["><>"], [Walk("><>", damping=(1.0, 0.0))]),
    # Σ over targets x of u of cos(in-neighbors of x, in-neighbors of v): item-item filtering.
    "item-cosine": Formula("item-item cosine", lambda x: x["cosine"], [_COSINE]),
    "ppr": Formula("personalized PageRank", lambda x: x["proximity"], [PageRank()]),
    "ppr-degree": Formula(
        "PageRank × log in-degree", lambda x: x["proximity"] * np.log1p(x["in_v"]), [PageRank()]
    ),
    # Preferential attachment that knows the direction.
    "degree-product": Formula("out × in degree", lambda x: x["out_u"] * x["in_v"]),
    # Links that v got; with times shortly before u chooses, within 2 % or 10 % of all edges.
    "popularity": Formula("popularity", lambda x: x["in_v"]),
    "recent-popularity": Formula("recent popularity", lambda x: _recent(x, "2"), part=Recency),
    "recent-cosine": Formula(
        "item-item cosine × recent in-degree",
        lambda x: x["cosine"] * np.log1p(_recent(x, "10")),
        [_COSINE],
        Recency,
    ),
    # Blind to direction. Liben-Nowell, Kleinberg: Link prediction for social networks. 2007.
    "preferential": Formula(
        "preferential attachment",
        lambda x: (x["out_u"] + x["in_u"]) * (x["out_v"] + x["in_v"]),
    ),
}
