"""Cycles, order, reachability, embeddings and link prediction for directed graphs.

Names are imported when they are first used, so that ``import atpgraph`` and ``atp --help`` are
fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atpgraph._version import __version__ as __version__
from atpgraph.util.lazy import lazy_names, moved

if TYPE_CHECKING:  # type checkers do not follow __getattr__
    from atpgraph.closure.reachability import Reachability as Reachability
    from atpgraph.cycles import Agony as Agony
    from atpgraph.cycles import CycleBreak as CycleBreak
    from atpgraph.cycles import TrueSkill as TrueSkill
    from atpgraph.cycles import agony as agony
    from atpgraph.cycles import break_cycles as break_cycles
    from atpgraph.cycles import pagerank as pagerank
    from atpgraph.cycles import trueskill as trueskill
    from atpgraph.embedding import ATP as ATP
    from atpgraph.embedding.estimate import Estimate as Estimate
    from atpgraph.embedding.estimate import estimate as estimate
    from atpgraph.errors import AtpError as AtpError
    from atpgraph.errors import BudgetError as BudgetError
    from atpgraph.errors import InputError as InputError
    from atpgraph.graph.convert import as_graph as as_graph
    from atpgraph.graph.convert import to_networkx as to_networkx
    from atpgraph.graph.digraph import DiGraph as DiGraph
    from atpgraph.graph.edgelist import read_edgelist as read_edgelist
    from atpgraph.graph.edgelist import write_edgelist as write_edgelist
    from atpgraph.graph.generators import PlantedCycles as PlantedCycles
    from atpgraph.graph.generators import citation_dag as citation_dag
    from atpgraph.graph.generators import gnm as gnm
    from atpgraph.graph.generators import noisy_hierarchy as noisy_hierarchy
    from atpgraph.graph.generators import plant_cycles as plant_cycles
    from atpgraph.graph.generators import random_dag as random_dag
    from atpgraph.hierarchy import levels as levels
    from atpgraph.linkpred.predictor import LinkPredictor as LinkPredictor

_NAMES_IN = {
    "closure.reachability": "Reachability",
    "cycles": "Agony CycleBreak TrueSkill agony break_cycles pagerank trueskill",
    "embedding": "ATP",
    "embedding.estimate": "Estimate estimate",
    "errors": "AtpError BudgetError InputError",
    "graph.convert": "as_graph to_networkx",
    "graph.digraph": "DiGraph",
    "graph.edgelist": "read_edgelist write_edgelist",
    "graph.generators": "PlantedCycles citation_dag gnm noisy_hierarchy plant_cycles random_dag",
    "hierarchy": "levels",
    "linkpred.predictor": "LinkPredictor",
}
__all__ = sorted(name for names in _NAMES_IN.values() for name in names.split())
_import = lazy_names(globals(), _NAMES_IN)


def __getattr__(name: str) -> Any:
    return moved("atpgraph.Advisor", "atpgraph_qa", name) if name == "Advisor" else _import(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
