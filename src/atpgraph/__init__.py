"""Directed graph embedding that keeps direction and reachability (ATP).

Names are imported when they are first used, so that ``import atpgraph`` and ``atp --help`` cost
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atpgraph._version import __version__ as __version__

if TYPE_CHECKING:
    from atpgraph.closure.reachability import Reachability
    from atpgraph.cycles import (
        Agony,
        CycleBreak,
        TrueSkill,
        agony,
        break_cycles,
        pagerank,
        trueskill,
    )
    from atpgraph.embedding import ATP
    from atpgraph.embedding.estimate import Estimate, estimate
    from atpgraph.errors import AtpError, BudgetError, InputError
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
    from atpgraph.hierarchy import levels
    from atpgraph.linkpred.predictor import LinkPredictor

__all__ = [
    "ATP",
    "Agony",
    "AtpError",
    "BudgetError",
    "CycleBreak",
    "DiGraph",
    "Estimate",
    "InputError",
    "LinkPredictor",
    "PlantedCycles",
    "Reachability",
    "TrueSkill",
    "agony",
    "as_graph",
    "break_cycles",
    "citation_dag",
    "estimate",
    "gnm",
    "levels",
    "noisy_hierarchy",
    "pagerank",
    "plant_cycles",
    "random_dag",
    "read_edgelist",
    "to_networkx",
    "trueskill",
    "write_edgelist",
]

_MODULE_OF = {
    "BudgetError": "atpgraph.errors",
    "ATP": "atpgraph.embedding",
    "Estimate": "atpgraph.embedding.estimate",
    "estimate": "atpgraph.embedding.estimate",
    "Reachability": "atpgraph.closure.reachability",
    "LinkPredictor": "atpgraph.linkpred.predictor",
    "levels": "atpgraph.hierarchy",
    "trueskill": "atpgraph.cycles",
    "pagerank": "atpgraph.cycles",
    "break_cycles": "atpgraph.cycles",
    "agony": "atpgraph.cycles",
    "TrueSkill": "atpgraph.cycles",
    "CycleBreak": "atpgraph.cycles",
    "Agony": "atpgraph.cycles",
    "AtpError": "atpgraph.errors",
    "InputError": "atpgraph.errors",
    "DiGraph": "atpgraph.graph.digraph",
    "PlantedCycles": "atpgraph.graph.generators",
    "as_graph": "atpgraph.graph.convert",
    "citation_dag": "atpgraph.graph.generators",
    "gnm": "atpgraph.graph.generators",
    "noisy_hierarchy": "atpgraph.graph.generators",
    "plant_cycles": "atpgraph.graph.generators",
    "random_dag": "atpgraph.graph.generators",
    "read_edgelist": "atpgraph.graph.edgelist",
    "to_networkx": "atpgraph.graph.convert",
    "write_edgelist": "atpgraph.graph.edgelist",
}


def __getattr__(name: str) -> Any:
    if name == "Advisor":  # until 0.4
        from atpgraph.util.lazy import moved

        return moved("atpgraph.Advisor", "atpgraph_qa", name)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
