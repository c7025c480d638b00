"""How link predictors are judged: splits, negatives, protocols and measures."""

from atpgraph.linkpred.protocols.judging import (
    PROTOCOLS,
    Evaluation,
    PairProtocol,
    PairTest,
    Protocol,
    Ranking,
    RankingTest,
)
from atpgraph.linkpred.protocols.method import EmbeddingMethod, Method
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.linkpred.protocols.splits import Split, evaluate, make_split, make_time_split

__all__ = [
    "PROTOCOLS",
    "EmbeddingMethod",
    "Evaluation",
    "Method",
    "PairProtocol",
    "PairTest",
    "Pairs",
    "Protocol",
    "Ranking",
    "RankingTest",
    "Split",
    "evaluate",
    "make_split",
    "make_time_split",
]
