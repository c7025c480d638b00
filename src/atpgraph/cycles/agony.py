"""Social agony, exactly: the ranks that make the edges of a graph point up as far as possible.

The agony of ranks r is Σ max(r(u) − r(v) + 1, 0) over the edges u → v. Its minimum equals the
largest number of edges of a circulation with unit capacities (linear-programming duality), a
minimum-cost flow; the ranks come back from complementary slackness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.cycles.circulation import largest_circulation, spread
from atpgraph.graph.convert import as_graph
from atpgraph.graph.scc import CyclicCore, cyclic_core, strongly_connected_components
from atpgraph.graph.traversal import TwoWayRows
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.jit import kernel


@dataclass(frozen=True, eq=False)
class Agony:
    """Minimum agony of a graph and ranks that attain it.

    Optimal ranks are rarely unique: over all optimal rankings that start at 0 and need no more
    ranks than the shortest one, each node has a lowest and a highest rank. Both are optimal
    rankings themselves, and so is their mean, which keeps away from the arbitrary ends.

    Attributes
    ----------
    value : int
        The minimum of Σ max(r(u) − r(v) + 1, 0) over the edges that are not self-loops.
    lowest, highest : int64 arrays
        The lowest and the highest optimal rank of every node, from 0.
    """

    value: int
    lowest: Int64Array
    highest: Int64Array

    @property
    def centred(self) -> Float64Array:
        """Mean of the lowest and the highest optimal rank of every node."""
        return (self.lowest + self.highest) / 2.0


def agony(graph: Any, core: CyclicCore | None = None) -> Agony:
    """Minimum agony of a graph, with the lowest and the highest optimal ranks.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
        Any directed graph; self-loops and edge weights do not influence the ranks.
    core : CyclicCore, optional
        What lies on its cycles, where that is known.

    Examples
    --------
    A triangle costs its three edges whatever the ranks are; the fourth edge points up.

    >>> result = agony([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> result.value, result.lowest.tolist()
    (3, [0, 0, 0, 1])

    References
    ----------
    Gupte et al., "Finding hierarchy in directed online social networks", WWW 2011; Tatti, "Faster
    way to agony: discovering hierarchies in directed graphs", ECML PKDD 2014.
    """
    graph = as_graph(graph)
    core = cyclic_core(graph) if core is None else core
    circulating, prices = largest_circulation(core.graph)
    value = int(np.count_nonzero(circulating))
    some = np.zeros(graph.n_nodes, dtype=np.int32)  # a large graph waits for memory
    some[core.nodes] = prices
    del prices
    component = strongly_connected_components(graph)
    _lift(graph.indptr, graph.targets, component, np.argsort(-component, kind="stable"), some)
    del component
    # Self-loops count as on the circulation, where they constrain nothing.
    on = graph.sources == graph.targets
    on[core.edges] = circulating
    # r(v) ≥ r(u) + 1 along an edge u → v off the circulation, r(u) ≥ r(v) − 1 along one on it. What
    # a node can sink is a shortest path from all nodes at once, each allowed to sink to 0.
    top, none = int(some.max(initial=0)), np.zeros(graph.n_nodes, dtype=np.bool_)
    back = graph.reverse()
    sinks, rises = some.copy(), top - some
    spread(TwoWayRows.of(back), graph.incoming(on)[2], -some, sinks, none, top + 1)
    spread(TwoWayRows.of(graph), on, some, rises, none, top + 1)
    lowest = (some - sinks).astype(np.int64)
    highest = some + rises.astype(np.int64)
    return Agony(value, lowest, highest - top + int(lowest.max(initial=0)))


@kernel
def _lift(indptr: Any, targets: Any, component: Any, order: Any, rank: Any) -> None:
    """Raise whole components, in topological order, until the edges between them point up."""
    lift = np.zeros(len(order), dtype=np.int32)
    for i in range(len(order)):
        u = order[i]
        rank[u] += lift[component[u]]
        for e in range(indptr[u], indptr[u + 1]):
            v = targets[e]
            if component[v] != component[u]:
                lift[component[v]] = max(lift[component[v]], rank[u] + 1 - rank[v])
