"""Directed graphs: the type, reading and writing, conversion, generators."""

from atpgraph.graph.convert import as_graph, to_networkx
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.edgelist import read_edgelist, write_edgelist
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
    "as_graph",
    "citation_dag",
    "gnm",
    "noisy_hierarchy",
    "plant_cycles",
    "random_dag",
    "read_edgelist",
    "to_networkx",
    "write_edgelist",
]
