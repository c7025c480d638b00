"""Find source and target vectors: learned from sampled paths, or factorized as in the paper."""

from atpgraph.factorization.nnls import Factorization, Options, factorize
from atpgraph.factorization.panels import Descent, RowMap, Start, fit_panels

__all__ = ["Descent", "Factorization", "Options", "RowMap", "Start", "factorize", "fit_panels"]
