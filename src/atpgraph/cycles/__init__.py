"""Break cycles: node scores, removal strategies, and methods that combine them."""

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
