"""Link prediction: protocols a method cannot cheat, metrics, rivals and the laboratory."""

from atpgraph.linkpred.evaluation import Evaluation, evaluate
from atpgraph.linkpred.method import EmbeddingMethod, Method
from atpgraph.linkpred.model_selection import EdgeSplit, LinkScorer
from atpgraph.linkpred.splits import PROTOCOLS, Pairs, PairTest, RankingTest, Split, make_split

__all__ = [
    "PROTOCOLS",
    "EdgeSplit",
    "EmbeddingMethod",
    "Evaluation",
    "LinkScorer",
    "Method",
    "PairTest",
    "Pairs",
    "RankingTest",
    "Split",
    "evaluate",
    "make_split",
]
