"""Evaluate link predictors: splits, negatives, protocols and metrics."""

from atpgraph.linkpred.protocols.judging import PROTOCOLS, PairTest, RankingTest
from atpgraph.linkpred.protocols.splits import evaluate, make_split, make_time_split

__all__ = ["PROTOCOLS", "PairTest", "RankingTest", "evaluate", "make_split", "make_time_split"]
