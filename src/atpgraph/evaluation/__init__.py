"""Metrics, intervals and paired comparison, shared by every task."""

from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.intervals import Comparison, Interval, compare, interval
from atpgraph.evaluation.metrics import (
    auc,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    rank_of,
    ranks_among,
    roc_curve,
)
from atpgraph.evaluation.resampling import (
    bootstrap,
    paired_bootstrap,
    percentile_interval,
    resample_counts,
)

__all__ = [
    "Comparison",
    "Interval",
    "auc",
    "average_precision",
    "bootstrap",
    "compare",
    "hits_at",
    "interval",
    "mean_reciprocal_rank",
    "paired_bootstrap",
    "percentile_interval",
    "rank_of",
    "ranks_among",
    "reliability",
    "resample_counts",
    "roc_curve",
]
