"""The fit behind ``purpose="reachability"``: from a closure forest, or from sketches."""

from __future__ import annotations

from typing import Any

from atpgraph.closure import ExactClosure, HeldClosure
from atpgraph.factorization import Factorization, RowSpread, fit_pairs, fit_panels
from atpgraph.util.arrays import FloatArray, Int32Array


def fit_paths(
    closure: HeldClosure,
    levels: Int32Array,
    table: FloatArray,
    *,
    spread: RowSpread | None = None,
    **options: Any,
) -> Factorization:
    """Vectors that tell the paths of `closure`, by :func:`~atpgraph.factorization.fit_pairs` where
    it can tell any of them, else by :func:`~atpgraph.factorization.fit_panels`; they take the
    options, and panels `spread` as well.
    """
    if isinstance(closure, ExactClosure):
        return fit_pairs(closure.paths, levels, table, **options)
    return fit_panels(*closure.panel_sources(), levels, table, spread=spread, **options)
