"""What is told about a model, by the command that makes it and the one that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atpgraph.embedding import ATP


def model_facts(model: ATP) -> dict[str, Any]:
    """Sizes of the graph, the closure and the fit, and how good it is, for ``--json``."""
    return {
        "purpose": model.get_params()["purpose"],
        "method": model.method_,
        "nodes": model.graph_.n_nodes,
        "edges": model.graph_.n_edges,
        "removed": len(model.removed_),
        "levels": int(model.levels_.max(initial=0)),
        "reachable_pairs": model.n_reachable_pairs_,
        "iterations": model.n_iter_,
        "objective": float(model.objective_[-1]) if len(model.objective_) else None,
        "zero_weight": model.settings_.zero_weight,
        "regularization": model.settings_.regularization,
        "threshold": model.threshold_,
        "fidelity": None if model.fidelity_ is None else model.fidelity_.to_dict(),
    }
