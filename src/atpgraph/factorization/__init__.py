"""Source and target vectors from the closure forest."""

from atpgraph.factorization.nnls import Factorization, Matrix, Spread, factorize, matrices_of
from atpgraph.factorization.pair_rows import PairRows
from atpgraph.factorization.pairs import PairSource, fit_pairs
from atpgraph.factorization.panels import PanelSource, RowSpread, Task, fit_panels, learn_range
from atpgraph.factorization.path_vectors import Descent
from atpgraph.factorization.row_solver import RowSolver, solve_rows
from atpgraph.factorization.svdm import matrix_operator, svdm

__all__ = [
    "Descent",
    "Factorization",
    "Matrix",
    "PairRows",
    "PairSource",
    "PanelSource",
    "RowSolver",
    "RowSpread",
    "Spread",
    "Task",
    "factorize",
    "fit_pairs",
    "fit_panels",
    "learn_range",
    "matrices_of",
    "matrix_operator",
    "solve_rows",
    "svdm",
]
