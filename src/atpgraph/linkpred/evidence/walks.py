"""Short directed walks: paths of two and three steps, co-citation, coupling, a reverse edge."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence._rows import Workspace, walk_rows
from atpgraph.linkpred.evidence.base import LocalEvidence
from atpgraph.util.arrays import Float32Array, Int32Array, Int64Array

HUB = 1000  # edges of a node that no walk passes through
BUDGET = 2**18  # edges that a step follows from one source


class Walks(LocalEvidence):
    """Number of walks from u to v of a given pattern, each weighted by the degrees it passes.

    The pattern is written as arrows: ``>`` follows an edge, ``<`` goes against one. ``>>`` is
    u → x → v, ``><>`` is u → x ← y → v (who points where u points, points to v), ``<>`` is
    u ← x → v (cited together), ``><`` is u → x ← v (cite the same), ``<`` is the edge v → u.
    A walk that leaves a node by one of d edges counts d ** −damping there; 1 makes the numbers
    probabilities, 0 counts walks. No walk passes through a hub, a node with more than `hub` edges
    to choose from: it says next to nothing of the two ends, and would cost most of the time.
    Where a step from one source would follow more than `budget` edges, the limit of a hub is halved
    until it does not, so that a row of a large graph costs no more than one of a small graph.

    Parameters
    ----------
    pattern : str
    damping : float or sequence of float
        One for each step. The first step leaves u, and is never damped unless a sequence says so:
        it is the same for all targets.
    arrival : float
        A walk counts d ** −arrival for the d edges by which its last step could have arrived at v.
        ``Walks("><>", damping=(0, 0.5, 0), arrival=0.5)`` is the item-item cosine, summed over the
        targets of u.
    name : str, optional
        By default the pattern.
    hub, budget : int

    Examples
    --------
    >>> diamond = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4)
    >>> Walks(">>", damping=0).fit(diamond).pairs(np.array([0, 3]), np.array([3, 0])).ravel()
    array([2., 0.])
    """

    def __init__(
        self,
        pattern: str,
        *,
        damping: float | tuple[float, ...] = 1.0,
        arrival: float = 0.0,
        name: str = "",
        hub: int = HUB,
        budget: int = BUDGET,
    ) -> None:
        if not pattern or set(pattern) - {">", "<"}:
            raise InputError(f"The pattern {pattern!r} is no row of '>' and '<'.")
        steps = damping if isinstance(damping, tuple) else (0.0, *(damping for _ in pattern[1:]))
        if len(steps) != len(pattern):
            raise InputError(f"{len(steps)} dampings for the {len(pattern)} steps of {pattern!r}.")
        self.pattern = pattern
        self.damping = steps
        self.arrival = arrival
        self.name = name or pattern
        self.hub = hub
        self.budget = budget

    def fit(self, graph: DiGraph) -> Self:
        """Keep both directions of the adjacency."""
        self.n_nodes = graph.n_nodes
        back = graph.reverse()
        self._ends = (graph.indptr, graph.targets, back.indptr, back.targets)
        self._forward = np.array([step == ">" for step in self.pattern])
        self._damping = np.array(self.damping, dtype=np.float64)
        ways = graph.in_degree if self.pattern[-1] == ">" else graph.out_degree
        self._factor = np.maximum(ways, 1).astype(np.float64) ** -self.arrival
        return self

    def _fill(
        self,
        sources: Int64Array,
        room: Workspace,
        ends: Int64Array,
        nodes: Int32Array,
        values: Float32Array,
    ) -> int:
        return walk_rows(
            *self._ends, self._forward, self._damping, self._factor, self.hub, self.budget,
            sources, room.value, room.other, room.touched, room.spare, room.queued, ends, nodes,
            values,
        )  # fmt: skip
