"""Social agony, exactly: the ranks that make the edges of a graph point up as far as possible.

The agony of ranks r is Σ max(r(u) − r(v) + 1, 0) over the edges u → v. Its minimum equals the
largest number of edges of a circulation with unit capacities (linear-programming duality), a
minimum-cost flow; the ranks come back from complementary slackness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel
from atpgraph.cycles.circulation import largest_circulation
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import strongly_connected_components


@dataclass(frozen=True, eq=False)
class Agony:
    """Minimum agony of a graph and ranks that attain it.

    Optimal ranks are rarely unique: each node has a lowest and a highest rank over all optimal
    rankings between 0 and the top level. Both are optimal rankings themselves, and so is their
    mean, which keeps away from the arbitrary ends.

    Attributes
    ----------
    value : int
        The minimum of Σ max(r(u) − r(v) + 1, 0) over the edges that are not self-loops.
    lowest, highest : int64 arrays
        The lowest and the highest optimal rank of every node, from 0.
    """

    value: int
    lowest: npt.NDArray[np.int64]
    highest: npt.NDArray[np.int64]

    @property
    def centred(self) -> npt.NDArray[np.float64]:
        """Mean of the lowest and the highest optimal rank of every node."""
        return (self.lowest + self.highest) / 2.0


def agony(graph: DiGraph) -> Agony:
    """Minimum agony of a graph, with the lowest and the highest optimal ranks.

    Parameters
    ----------
    graph : DiGraph
        Any directed graph; self-loops and edge weights do not influence the ranks.

    Returns
    -------
    Agony

    Examples
    --------
    A triangle costs its three edges whatever the ranks are; the fourth edge points up.

    >>> result = agony(DiGraph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]))
    >>> result.value, result.lowest.tolist()
    (3, [0, 0, 0, 1])

    References
    ----------
    Gupte et al., "Finding hierarchy in directed online social networks", WWW 2011; Tatti, "Faster
    way to agony: discovering hierarchies in directed graphs", ECML PKDD 2014.
    """
    sources, targets = graph.sources, graph.targets
    component = strongly_connected_components(graph)
    proper = sources != targets
    cyclic = np.flatnonzero(proper & (component[sources] == component[targets]))
    on_circulation = np.zeros(graph.n_edges, dtype=np.bool_)
    on_circulation[cyclic] = largest_circulation(sources[cyclic], targets[cyclic])
    value = int(np.count_nonzero(on_circulation))
    up = np.flatnonzero(proper & ~on_circulation)
    around = np.flatnonzero(on_circulation)
    # r(v) ≥ r(u) + 1 off the circulation, r(u) ≥ r(v) − 1 on it; reversed for the highest ranks.
    tails = np.concatenate([sources[up], targets[around]])
    heads = np.concatenate([targets[up], sources[around]])
    steps = np.concatenate([np.ones(len(up), np.int64), np.full(len(around), -1, np.int64)])
    lowest = _least_solution(graph.n_nodes, tails, heads, steps, -component)
    highest = _least_solution(graph.n_nodes, heads, tails, steps, component)
    top = int(lowest.max(initial=0))
    return Agony(value, lowest, top - highest)


def _least_solution(
    n: int,
    tails: npt.NDArray[np.int32],
    heads: npt.NDArray[np.int32],
    steps: npt.NDArray[np.int64],
    priority: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:
    """Smallest r ≥ 0 with r(head) ≥ r(tail) + step for every constraint."""
    order = np.argsort(tails, kind="stable")
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=indptr[1:])
    rank = np.zeros(n, dtype=np.int64)
    first = np.argsort(priority, kind="stable")
    _relax(indptr, heads[order].astype(np.int32), steps[order], rank, first)
    return rank


@kernel
def _relax(indptr: Any, heads: Any, steps: Any, rank: Any, first: Any) -> None:
    """Longest-path relaxation to the fixed point, first-in first-out from the order `first`."""
    n = len(rank)
    queue = np.empty(n, dtype=np.int64)
    queued = np.empty(n, dtype=np.bool_)
    for i in range(n):
        queue[i] = first[i]
        queued[i] = True
    head, size = 0, n
    while size > 0:
        v = queue[head]
        head = head + 1 if head + 1 < n else 0
        size -= 1
        queued[v] = False
        for e in range(indptr[v], indptr[v + 1]):
            w = heads[e]
            reached = rank[v] + steps[e]
            if reached > rank[w]:
                rank[w] = reached
                if not queued[w]:
                    queued[w] = True
                    tail = head + size
                    queue[tail if tail < n else tail - n] = w
                    size += 1
