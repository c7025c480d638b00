"""Find source and target vectors: learned from sampled paths, or factorized as in the paper."""

from atpgraph.factorization.nnls import Factorization, factorize
from atpgraph.factorization.panels import Descent, RowMap, fit_panels
from atpgraph.factorization.single_rows import LearnedRows, NnlsRows

__all__ = [
    "Descent",
    "Factorization",
    "LearnedRows",
    "NnlsRows",
    "RowMap",
    "factorize",
    "fit_panels",
]
