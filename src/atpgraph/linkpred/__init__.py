"""Link prediction: protocols a method cannot cheat, baselines and the laboratory."""

from atpgraph.linkpred.evaluation import Evaluation, evaluate
from atpgraph.linkpred.method import EmbeddingMethod, Method
from atpgraph.linkpred.model_selection import EdgeSplit, LinkScorer
from atpgraph.linkpred.negatives import Pairs
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols import PROTOCOLS, PairTest, Protocol, Ranking, RankingTest
from atpgraph.linkpred.splits import Split, make_split

__all__ = [
    "PROTOCOLS",
    "EdgeSplit",
    "EmbeddingMethod",
    "Evaluation",
    "LinkPredictor",
    "LinkScorer",
    "Method",
    "PairTest",
    "Pairs",
    "Protocol",
    "Ranking",
    "RankingTest",
    "Split",
    "evaluate",
    "make_split",
]
