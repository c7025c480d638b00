"""Evidence for links: one small class for each kind, and the collection that a model weighs."""

from atpgraph.linkpred.evidence.attributes import Attributes
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.linkpred.evidence.collection import DEFAULT, KINDS, Collection, Settings, select_kinds
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk
from atpgraph.linkpred.evidence.nodes import Degrees, Levels
from atpgraph.linkpred.evidence.times import Recency
from atpgraph.linkpred.evidence.vectors import AtpScore, SpectralScore, VectorEvidence

__all__ = [
    "DEFAULT",
    "KINDS",
    "AtpScore",
    "Attributes",
    "Collection",
    "Degrees",
    "Evidence",
    "Levels",
    "Local",
    "NewNode",
    "PageRank",
    "Recency",
    "Settings",
    "SpectralScore",
    "VectorEvidence",
    "Walk",
    "select_kinds",
]
