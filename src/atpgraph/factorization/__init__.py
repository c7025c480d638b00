"""Source and target vectors from the closure forest."""

from atpgraph.factorization.nnls import Factorization, factorize
from atpgraph.factorization.pair_rows import PairRows
from atpgraph.factorization.pairs import Descent, PairSource, fit_pairs
from atpgraph.factorization.row_solver import RowSolver, solve_rows
from atpgraph.factorization.svdm import matrix_operator, svdm

__all__ = [
    "Descent",
    "Factorization",
    "PairRows",
    "PairSource",
    "RowSolver",
    "factorize",
    "fit_pairs",
    "matrix_operator",
    "solve_rows",
    "svdm",
]
