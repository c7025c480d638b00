"""Personalised PageRank by local push: how often a walk that keeps coming back to u is at v."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence._rows import Workspace, push_rows
from atpgraph.linkpred.evidence.base import LocalEvidence
from atpgraph.util.arrays import Float32Array, Int32Array, Int64Array
from atpgraph.util.registry import unknown_name

DIRECTIONS = ("both", "out", "in")


class PersonalisedPageRank(LocalEvidence):
    """p = restart · Σ_k (1 − restart)^k P^k e_u, entries below the tolerance left out.

    P steps to a random neighbour: along either direction of the edges (``both``), forward
    (``out``) or backward (``in``). A walk ends at a node without neighbours to go to. Local push
    never looks at a node that gets less than `tolerance` times its degree, so that a row costs at
    most 1 / (restart · tolerance) steps, whatever the size of the graph.

    Parameters
    ----------
    direction : {"both", "out", "in"}
    restart : float in (0, 1)
    tolerance : float
        Largest residual for each edge of a node.

    References
    ----------
    Andersen, Chung, Lang: Local graph partitioning using PageRank vectors. 2006.

    Examples
    --------
    >>> path = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> forward = PersonalisedPageRank("out", restart=0.5).fit(path)
    >>> forward.pairs(np.array([0, 0, 1]), np.array([1, 2, 0])).ravel().tolist()
    [0.25, 0.125, 0.0]
    """

    def __init__(
        self,
        direction: Literal["both", "out", "in"] = "both",
        *,
        restart: float = 0.15,
        tolerance: float = 1e-5,
    ) -> None:
        if direction not in DIRECTIONS:
            raise unknown_name("direction", direction, DIRECTIONS)
        if not 0 < restart < 1 or not tolerance > 0:
            raise InputError(
                f"restart is {restart} and tolerance {tolerance}; restart must be between 0 and 1, "
                "tolerance above 0."
            )
        self.direction = direction
        self.restart = restart
        self.tolerance = tolerance
        self.floor = restart * tolerance
        self.name = {"both": "proximity", "out": "reached", "in": "reaching"}[direction]

    def fit(self, graph: DiGraph) -> Self:
        """Keep the adjacency that the walk follows."""
        self.n_nodes = graph.n_nodes
        walked = graph.reverse() if self.direction == "in" else graph
        if self.direction == "both":
            walked = DiGraph.from_codes(
                np.concatenate([graph.sources, graph.targets]),
                np.concatenate([graph.targets, graph.sources]),
                graph.n_nodes,
            )
        self._indptr, self._targets = walked.indptr, walked.targets
        self._least = self.tolerance * np.maximum(np.diff(walked.indptr), 1)
        return self

    def _fill(
        self,
        sources: Int64Array,
        room: Workspace,
        ends: Int64Array,
        nodes: Int32Array,
        values: Float32Array,
    ) -> int:
        return push_rows(
            self._indptr, self._targets, sources, self.restart, self._least, room.value,
            room.other, room.touched, room.spare, room.queued, ends, nodes, values,
        )  # fmt: skip
