"""Other people's link predictors, behind one interface."""

from atpgraph.linkpred.rivals.app import APP
from atpgraph.linkpred.rivals.hope import HOPE
from atpgraph.linkpred.rivals.line import LINE
from atpgraph.linkpred.rivals.nrp import NRP
from atpgraph.linkpred.rivals.trivial import (
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
    "AdjacencySVD",
    "CommonNeighbours",
    "DegreeProduct",
    "PreferentialAttachment",
]
