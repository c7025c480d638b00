"""Evidence for links: one small class for each kind, and the collection that a model weighs."""

from atpgraph.linkpred.evidence.attributes import Attributes
from atpgraph.linkpred.evidence.base import Evidence, LocalEvidence, Rows
from atpgraph.linkpred.evidence.collection import KINDS, Collection
from atpgraph.linkpred.evidence.nodes import Degrees, Levels
from atpgraph.linkpred.evidence.proximity import PersonalisedPageRank
from atpgraph.linkpred.evidence.vectors import AtpScore, SpectralScore, VectorEvidence
from atpgraph.linkpred.evidence.walks import Walks

__all__ = [
    "KINDS",
    "AtpScore",
    "Attributes",
    "Collection",
    "Degrees",
    "Evidence",
    "Levels",
    "LocalEvidence",
    "PersonalisedPageRank",
    "Rows",
    "SpectralScore",
    "VectorEvidence",
    "Walks",
]
