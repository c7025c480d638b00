"""Reachable pairs of an acyclic graph, without writing them out."""

from atpgraph.closure._positions import Positions
from atpgraph.closure.build import (
    ClosureEstimate,
    closure_forest,
    closure_forests,
    estimate_closure,
)
from atpgraph.closure.choice import (
    CLOSURES,
    ClosureChoice,
    ExactClosure,
    HeldClosure,
    Paths,
    SketchedClosure,
    check_closure,
    choose_closure,
    closure_from,
    hold_closure,
    parts_of,
    parts_of_side,
    sketch_side,
)
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.kernels import KERNELS, Kernel, kernel_table
from atpgraph.closure.sampling import AncestorSampler, PathSampler
from atpgraph.closure.sketch import ReachSketch, reach_sketch
from atpgraph.closure.sketched_paths import PanelRound, SketchedPaths

__all__ = [
    "CLOSURES",
    "KERNELS",
    "AncestorSampler",
    "ClosureChoice",
    "ClosureEstimate",
    "ClosureForest",
    "ExactClosure",
    "HeldClosure",
    "Kernel",
    "PanelRound",
    "PathSampler",
    "Paths",
    "Positions",
    "ReachSketch",
    "SketchedClosure",
    "SketchedPaths",
    "check_closure",
    "choose_closure",
    "closure_forest",
    "closure_forests",
    "closure_from",
    "estimate_closure",
    "hold_closure",
    "kernel_table",
    "parts_of",
    "parts_of_side",
    "reach_sketch",
    "sketch_side",
]
