"""Link prediction: the predictor, protocols that hide test edges, baselines, benchmarks."""

from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols.judging import (
    PROTOCOLS,
    EmbeddingMethod,
    Evaluation,
    Method,
    PairTest,
    Protocol,
    RankingTest,
)
from atpgraph.linkpred.protocols.model_selection import EdgeSplit, LinkScorer
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.linkpred.protocols.splits import Split, evaluate, make_split

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
    "RankingTest",
    "Split",
    "evaluate",
    "make_split",
]
