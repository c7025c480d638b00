"""Cycles, order, reachability, embeddings and link prediction for directed graphs.

Names are imported when they are first used, so that ``import atpgraph`` and ``atp --help`` cost
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atpgraph._version import __version__ as __version__
from atpgraph.util.lazy import lazy_names, moved

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

_import = lazy_names(
    globals(),
    {
        "closure.reachability": ["Reachability"],
        "cycles": [
            "Agony", "CycleBreak", "TrueSkill", "agony", "break_cycles", "pagerank", "trueskill",
        ],
        "embedding": ["ATP"],
        "embedding.estimate": ["Estimate", "estimate"],
        "errors": ["AtpError", "BudgetError", "InputError"],
        "graph.convert": ["as_graph", "to_networkx"],
        "graph.digraph": ["DiGraph"],
        "graph.edgelist": ["read_edgelist", "write_edgelist"],
        "graph.generators": [
            "PlantedCycles", "citation_dag", "gnm", "noisy_hierarchy", "plant_cycles", "random_dag",
        ],
        "hierarchy": ["levels"],
        "linkpred.predictor": ["LinkPredictor"],
    },
)  # fmt: skip


def __getattr__(name: str) -> Any:
    return moved("atpgraph.Advisor", "atpgraph_qa", name) if name == "Advisor" else _import(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
