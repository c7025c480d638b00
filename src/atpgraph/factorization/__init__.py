"""Source and target vectors from the closure forest."""

from atpgraph.factorization.nnls import Factorization, factorize
from atpgraph.factorization.rows import RowSolver, solve_rows
from atpgraph.factorization.svdm import matrix_operator, svdm

__all__ = ["Factorization", "RowSolver", "factorize", "matrix_operator", "solve_rows", "svdm"]
