"""How link predictors are judged: splits, negatives, protocols and measures."""

from atpgraph.linkpred.protocols.judging import PROTOCOLS, PairTest, RankingTest
from atpgraph.linkpred.protocols.splits import evaluate, make_split, make_time_split

__all__ = ["PROTOCOLS", "PairTest", "RankingTest", "evaluate", "make_split", "make_time_split"]
