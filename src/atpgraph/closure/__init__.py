"""Reachable pairs of an acyclic graph, without writing them out."""

from atpgraph.closure.build import (
    ClosureEstimate,
    closure_forest,
    closure_forests,
    estimate_closure,
)
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.kernels import Kernel, kernel_table

__all__ = [
    "ClosureEstimate",
    "ClosureForest",
    "Kernel",
    "closure_forest",
    "closure_forests",
    "estimate_closure",
    "kernel_table",
]
