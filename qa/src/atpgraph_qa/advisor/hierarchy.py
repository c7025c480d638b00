"""Levels of people in the hierarchy of a site, for the words of an explanation.

They do not rank: what the hierarchy knows of people, counts of answers, votes and acceptances know
as well (docs/evidence/routing.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.timeline.history import History


def _nobody() -> Int64Array:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels in the competition graph of a site, its cycles broken."""

    users: Int64Array = field(default_factory=_nobody)  # ids, ascending
    level: Int64Array = field(default_factory=_nobody)  # of each, from 1
    top: int = 0  # the highest level

    @classmethod
    def of(cls, history: History, random_state: int = 0) -> Self:
        """Return the hierarchy of a history."""
        from atpgraph.cycles import break_cycles
        from atpgraph.hierarchy import levels
        from atpgraph_qa.competition import competition_graph

        competition = competition_graph(history.posts(), ega="consecutive")
        if not competition.graph.n_edges:
            return cls()
        height = levels(break_cycles(competition.graph, "h-voting", random_state=random_state).dag)
        nodes = competition.user_nodes(history.users)
        there = nodes >= 0
        users, level = history.users[there], height[nodes[there]].astype(np.int64)
        order = np.argsort(users)
        return cls(users[order], level[order], int(height.max()))

    def level_of(self, user: int) -> int:
        """Level of a user by id, 0 for those not in it."""
        place = int(np.searchsorted(self.users, user))
        there = place < len(self.users) and self.users[place] == user
        return int(self.level[place]) if there else 0

    def without(self, users: Iterable[int]) -> Self:
        """Return the same without some people."""
        gone = np.fromiter(users, dtype=np.int64)
        if not len(gone):
            return self
        kept = ~np.isin(self.users, gone)
        return replace(self, users=self.users[kept], level=self.level[kept])
