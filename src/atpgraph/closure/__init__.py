"""Reachable pairs of an acyclic graph, without writing them out."""

from atpgraph.closure.build import (
    ClosureEstimate,
    closure_forest,
    closure_forests,
    estimate_closure,
)
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.kernels import KERNELS, Kernel, kernel_table
from atpgraph.closure.sampling import PathSampler

__all__ = [
    "KERNELS",
    "ClosureEstimate",
    "ClosureForest",
    "Kernel",
    "PathSampler",
    "closure_forest",
    "closure_forests",
    "estimate_closure",
    "kernel_table",
]
