"""Published and trivial link predictors to compare with."""

from atpgraph.linkpred.baselines.factored import (
    PROXIMITIES,
    adjacency_svd,
    atp,
    hope,
    nrp,
    strap,
    svdm,
)
from atpgraph.linkpred.baselines.skipgram import app, line
from atpgraph.linkpred.baselines.trivial import FORMULAS, Formula

__all__ = [
    "FORMULAS", "PROXIMITIES", "Formula", "adjacency_svd", "app", "atp", "hope", "line", "nrp",
    "strap", "svdm",
]  # fmt: skip
