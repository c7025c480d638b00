"""Find source and target vectors: learned from sampled paths, or factorized as in the paper."""

from atpgraph.factorization.nnls import Factorization, factorize
from atpgraph.factorization.panels import Descent, RowMap, fit_panels

__all__ = ["Descent", "Factorization", "RowMap", "factorize", "fit_panels"]
