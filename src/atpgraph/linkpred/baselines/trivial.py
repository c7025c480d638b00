"""Rows every table should have: degrees, levels, neighbors, PageRank, and what is popular."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk, undirected
from atpgraph.linkpred.evidence.parts import Evidence, Levels, Recency, Settings
from atpgraph.linkpred.evidence.times import Clock
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray

Numbers = Mapping[str, Any]


class Formula:
    """A formula of evidence, nothing learned.

    Parameters
    ----------
    name : str
    formula : function
        Gets the numbers of pairs by name: the degrees ``out_u``, ``in_u``, ``out_v``, ``in_v``, the
        largest in-degree ``most``, the columns of local evidence, and the numbers of `part`.
    columns : sequence of PageRank and Walk
    part : class of evidence, optional
        :class:`Recency` has numbers only where there are times.
    any_direction : bool
        Follow edges in both directions.
    random_state : int
    **limits
        Of :class:`Local`.
    """

    def __init__(
        self,
        name: str,
        formula: Callable[[Numbers], Any],
        columns: Sequence[PageRank | Walk] = (),
        part: type[Evidence] | None = None,
        *,
        any_direction: bool = False,
        random_state: int = 0,
        **limits: int,
    ) -> None:
        self.name, self._formula, self._part = name, formula, part
        self._local, self._any_direction = Local(columns, **limits), any_direction
        self.random_state, self.uses_times = random_state, part is Recency

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Keep what the formula needs of the graph."""
        self._graph = graph
        self._local.fit(undirected(graph) if self._any_direction else graph)
        clock = None if times is None else Clock.of(times, graph)
        self._fitted = None
        if self._part is not None and (clock is not None or not self.uses_times):
            settings = Settings(random_state=self.random_state, clock=clock)
            self._fitted = self._part(settings).fit(graph)
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
        numbers: dict[str, Any] = {
            "out_u": out[u],
            "in_u": into[u],
            "out_v": out[v],
            "in_v": into[v],
        }
        numbers |= dict(zip(self._local.names, near.T, strict=True))
        numbers["most"] = into.max(initial=0)
        if self._fitted is not None:
            found = self._fitted.pairs(u, v).T
            numbers |= dict(zip(self._fitted.names, found, strict=True))
        return np.asarray(self._formula(numbers), dtype=np.float64)


def _recent(x: Numbers, horizon: str) -> Any:
    """Return the recent links of v, ties broken by all links so far; all links without times."""
    ever = x.get("in-degree then", x["in_v"])
    return x.get(f"recent in-degree, {horizon} %", x["in_v"]) + ever / (x["most"] + 1.0)


_COSINE = Walk("><>", "cosine", damping=(0.5, 0.0), arrival=0.5)
# level(v) − level(u) in the graph with its cycles broken: steps 1 and 2 of ATP alone.
LevelDifference = partial(
    Formula, "difference of levels", lambda x: x["level of v"] - x["level of u"], part=Levels
)
# Preferential attachment that knows the direction.
DegreeProduct = partial(Formula, "out × in degree", lambda x: x["out_u"] * x["in_v"])
# Blind to direction. Liben-Nowell, Kleinberg: Link prediction for social networks. 2007.
PreferentialAttachment = partial(
    Formula,
    "preferential attachment",
    lambda x: (x["out_u"] + x["in_u"]) * (x["out_v"] + x["in_v"]),
)
# Number of nodes w with u → w → v, hubs included.
CommonNeighbours = partial(
    Formula,
    "common neighbours",
    lambda x: x[">>"],
    [Walk(">>", damping=(0.0,))],
    hub=2**31,
    budget=2**62,
)
# Nodes next to both, whatever the direction; the in-degree of v breaks ties, so that it says
# something on a forest too, where two nodes without an edge rarely have a neighbor in common.
AnyNeighbours = partial(
    Formula,
    "common neighbours, any direction",
    lambda x: x[">>"] + x["in_v"] / (2.0 * np.maximum(x["most"], 1)),
    [Walk(">>", damping=(0.0,))],
    any_direction=True,
)
# A D⁻¹ Aᵀ A: u → x ← y → v, by the in-degree of x. Who points where u points, points to v.
ThreeSteps = partial(
    Formula, "path u → x ← y → v", lambda x: x["><>"], [Walk("><>", damping=(1.0, 0.0))]
)
# Σ over targets x of u of cos(in-neighbors of x, in-neighbors of v): item-item filtering.
ItemCosine = partial(Formula, "item-item cosine", lambda x: x["cosine"], [_COSINE])
# Links that v got shortly before u chooses, within 2 % and 10 % of all edges.
Popularity = partial(Formula, "popularity", lambda x: x["in_v"])
RecentPopularity = partial(Formula, "recent popularity", lambda x: _recent(x, "2"), part=Recency)
RecentItemCosine = partial(
    Formula,
    "item-item cosine × recent in-degree",
    lambda x: x["cosine"] * np.log1p(_recent(x, "10")),
    [_COSINE],
    Recency,
)


def Proximity(by_degree: bool = False) -> Formula:  # noqa: N802
    """Return personalized PageRank without directions, maybe times log(1 + in-degree of v)."""
    if not by_degree:
        return Formula("personalized PageRank", lambda x: x["proximity"], [PageRank()])
    name = "PageRank × log in-degree"
    return Formula(name, lambda x: x["proximity"] * np.log1p(x["in_v"]), [PageRank()])
