"""Published and trivial link predictors to compare with, behind one interface."""

from atpgraph.linkpred.baselines.factored import HOPE, NRP, STRAP, SVDM, AdjacencySVD
from atpgraph.linkpred.baselines.skipgram import APP, LINE
from atpgraph.linkpred.baselines.trivial import FORMULAS, Formula

__all__ = ["APP", "FORMULAS", "HOPE", "LINE", "NRP", "STRAP", "SVDM", "AdjacencySVD", "Formula"]
