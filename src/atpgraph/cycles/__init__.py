"""Break cycles: node scores, removal strategies, and methods that combine them."""

from __future__ import annotations

import warnings
from typing import Any

from atpgraph.cycles.agony import Agony, agony
from atpgraph.cycles.breaking import Agreement, CycleBreak, Reason, break_cycles
from atpgraph.cycles.methods import METHODS
from atpgraph.cycles.scores import TrueSkill, pagerank, trueskill

__all__ = [
    "METHODS",
    "Agony",
    "Agreement",
    "CycleBreak",
    "Reason",
    "TrueSkill",
    "agony",
    "break_cycles",
    "pagerank",
    "trueskill",
]


class _CycleBreaker:
    """The old way to run several methods on one graph."""

    def __init__(self, graph: Any, random_state: Any = 0) -> None:
        self.graph, self.random_state = graph, random_state

    @property
    def agony(self) -> int:
        return agony(self.graph).value

    def run(self, method: str) -> CycleBreak:
        return break_cycles(self.graph, method, random_state=self.random_state)


def __getattr__(name: str) -> Any:
    if name != "CycleBreaker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "CycleBreaker(graph).run(method) will be removed in 0.4; use break_cycles(graph, method).",
        DeprecationWarning,
        stacklevel=2,
    )
    return _CycleBreaker
