"""Evidence for links: what is near a source, what both nodes are, and the model's collection."""

from atpgraph.linkpred.evidence.collection import DEFAULT, KINDS, Collection, select_kinds

__all__ = ["DEFAULT", "KINDS", "Collection", "select_kinds"]
