"""Directed graphs: the type, reading and writing, conversion, generators."""

from atpgraph.graph._write import write_edgelist
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.edgelist import read_edgelist
from atpgraph.graph.generators import (
    PlantedCycles,
    citation_dag,
    gnm,
    noisy_hierarchy,
    plant_cycles,
    random_dag,
)

__all__ = [
    "DiGraph",
    "PlantedCycles",
    "citation_dag",
    "gnm",
    "noisy_hierarchy",
    "plant_cycles",
    "random_dag",
    "read_edgelist",
    "write_edgelist",
]
