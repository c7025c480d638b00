"""Link prediction: the predictor, protocols a method cannot cheat, baselines, benchmarks."""

from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols import (
    PROTOCOLS,
    EmbeddingMethod,
    Evaluation,
    Method,
    Pairs,
    PairTest,
    Protocol,
    Ranking,
    RankingTest,
    Split,
    evaluate,
    make_split,
)
from atpgraph.linkpred.protocols.model_selection import EdgeSplit, LinkScorer

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
