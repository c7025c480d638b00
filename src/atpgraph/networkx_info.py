"""Describe the NetworkX backend; NetworkX reads this on every import, so it imports nothing."""

from __future__ import annotations

from typing import Any

NAME = "atpgraph"
FUNCTIONS = (
    "ancestors",
    "condensation",
    "dag_longest_path_length",
    "descendants",
    "has_path",
    "is_directed_acyclic_graph",
    "strongly_connected_components",
    "topological_generations",
    "transitive_closure",
    "transitive_closure_dag",
)


def get_info() -> dict[str, Any]:
    """Return the description of this backend that NetworkX shows."""
    return {
        "backend_name": NAME,
        "project": "atpgraph",
        "package": "atpgraph",
        "short_summary": "Paths, components and orders of directed graphs on the CPU.",
        "functions": {name: {} for name in FUNCTIONS},
    }
