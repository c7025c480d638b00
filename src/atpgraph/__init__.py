"""Directed graph embedding that keeps direction and reachability (ATP).

Names are imported when they are first used, so that ``import atpgraph`` and ``atp --help`` cost
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__version__ = "0.1.0"

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

_MODULE_OF = {
    "DiGraph": "atpgraph.graph.digraph",
    "PlantedCycles": "atpgraph.graph.generators",
    "citation_dag": "atpgraph.graph.generators",
    "gnm": "atpgraph.graph.generators",
    "noisy_hierarchy": "atpgraph.graph.generators",
    "plant_cycles": "atpgraph.graph.generators",
    "random_dag": "atpgraph.graph.generators",
    "read_edgelist": "atpgraph.graph.edgelist",
    "write_edgelist": "atpgraph.graph._write",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
