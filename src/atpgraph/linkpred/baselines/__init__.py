"""Published and trivial link predictors to compare with, behind one interface."""

from atpgraph.linkpred.baselines.app import APP
from atpgraph.linkpred.baselines.hope import HOPE
from atpgraph.linkpred.baselines.line import LINE
from atpgraph.linkpred.baselines.local import (
    AnyNeighbours,
    ItemCosine,
    Proximity,
    ThreeSteps,
)
from atpgraph.linkpred.baselines.nrp import NRP
from atpgraph.linkpred.baselines.recent import RecentItemCosine, RecentPopularity
from atpgraph.linkpred.baselines.strap import STRAP
from atpgraph.linkpred.baselines.trivial import (
    AdjacencySVD,
    CommonNeighbours,
    DegreeProduct,
    PreferentialAttachment,
)

__all__ = [
    "APP",
    "HOPE",
    "LINE",
    "NRP",
    "STRAP",
    "AdjacencySVD",
    "AnyNeighbours",
    "CommonNeighbours",
    "DegreeProduct",
    "ItemCosine",
    "PreferentialAttachment",
    "Proximity",
    "RecentItemCosine",
    "RecentPopularity",
    "ThreeSteps",
]
