"""Published and trivial link predictors to compare with, behind one interface."""

from atpgraph.linkpred.baselines.factored import HOPE, NRP, STRAP, SVDM, AdjacencySVD
from atpgraph.linkpred.baselines.skipgram import APP, LINE
from atpgraph.linkpred.baselines.trivial import (
    AnyNeighbours,
    CommonNeighbours,
    DegreeProduct,
    ItemCosine,
    LevelDifference,
    Popularity,
    PreferentialAttachment,
    Proximity,
    RecentItemCosine,
    RecentPopularity,
    ThreeSteps,
)

__all__ = [
    "APP",
    "HOPE",
    "LINE",
    "NRP",
    "STRAP",
    "SVDM",
    "AdjacencySVD",
    "AnyNeighbours",
    "CommonNeighbours",
    "DegreeProduct",
    "ItemCosine",
    "LevelDifference",
    "Popularity",
    "PreferentialAttachment",
    "Proximity",
    "RecentItemCosine",
    "RecentPopularity",
    "ThreeSteps",
]
