"""Source and target vectors from the closure forest."""

from atpgraph.factorization.nnls import Factorization, Matrix, Spread, factorize, matrices_of
from atpgraph.factorization.pair_rows import PairRows
from atpgraph.factorization.pairs import Descent, PairSource, fit_pairs
from atpgraph.factorization.row_solver import RowSolver, solve_rows
from atpgraph.factorization.svdm import matrix_operator, svdm

__all__ = [
    "Descent",
    "Factorization",
    "Matrix",
    "PairRows",
    "PairSource",
    "RowSolver",
    "Spread",
    "factorize",
    "fit_pairs",
    "matrices_of",
    "matrix_operator",
    "solve_rows",
    "svdm",
]
