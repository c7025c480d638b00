"""Reachable pairs of an acyclic graph, without writing them out."""

from atpgraph.closure.build import (
    ClosureEstimate,
    closure_forest,
    closure_forests,
    estimate_closure,
)
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.panel import Positions, ReachSketch, reach_sketch
from atpgraph.closure.paths import (
    KERNELS,
    Kernel,
    PanelRound,
    PanelSource,
    Paths,
    collect_paths,
    kernel_table,
)

__all__ = [
    "KERNELS",
    "ClosureEstimate",
    "ClosureForest",
    "Kernel",
    "PanelRound",
    "PanelSource",
    "Paths",
    "Positions",
    "ReachSketch",
    "closure_forest",
    "closure_forests",
    "collect_paths",
    "estimate_closure",
    "kernel_table",
    "reach_sketch",
]
