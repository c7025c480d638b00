"""What a model is for, and the settings that follow from it where none are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atpgraph.closure import KERNELS, check_closure
from atpgraph.closure.choice import SKETCH_SIZE
from atpgraph.closure.kernels import LARGEST_WEIGHT
from atpgraph.errors import InputError
from atpgraph.util.checks import real_number, whole_number
from atpgraph.util.registry import unknown_name

PURPOSES = ("reachability", "links", "paper")
SOLVERS = ("pairs", "nnls", "svd")

# Chosen on validation splits and validation graphs, see docs/evidence/defaults.md.
ROUNDS = 32
SKETCH_ROUNDS = 96  # at most: up to 100,000 nodes they take as long as those of 100,000
# From here on fewer rounds, and no closure forest unless one is asked for: for the sake of time.
MANY_NODES = 100_000
# Of sketches that tell sizes only: pairs are drawn from others, new in every round.
PANEL_SKETCH = 16
FEWEST_ROUNDS = {"exact": 8, "sketch": 4}
DECAY = 1e-4
ITERATIONS = 3
ZERO_SHARE = 0.02
PENALTY = 4.0
MAX_PENALTY = 0.3
_LARGEST_PENALTY = 1e6
_MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class Settings:
    """What a fit uses, every "auto" resolved.

    Attributes
    ----------
    solver : {"pairs", "nnls", "svd"}
    zero_weight, regularization : float
        0 where the solver has none.
    max_iter : int
    """

    solver: str
    zero_weight: float
    regularization: float
    max_iter: int


def check(params: dict[str, Any]) -> str:
    """Refuse names and kinds of parameters that mean nothing; the solver that will be used."""
    if params["purpose"] not in PURPOSES:
        raise unknown_name("purpose", params["purpose"], PURPOSES)
    solver = params["solver"]
    if solver == "auto":
        solver = "pairs" if params["purpose"] == "reachability" else "nnls"
    if solver not in SOLVERS:
        raise unknown_name("solver", solver, SOLVERS)
    if not callable(params["kernel"]):
        KERNELS[params["kernel"]]  # an unknown name is refused before the work
    check_closure(params["closure"], params["sketch_size"], str(solver))
    whole_number("n_components", params["n_components"])
    if params["max_iter"] != "auto":
        whole_number("max_iter", params["max_iter"], most=_MOST_ROUNDS)
    if params["regularization"] != "auto":
        real_number("regularization", params["regularization"], most=_LARGEST_PENALTY)
    real_number("tol", params["tol"])
    real_number("c", params["c"], least=-LARGEST_WEIGHT, most=LARGEST_WEIGHT)
    if solver == "pairs" and params["zero_weight"] != "auto":
        raise InputError(
            f"zero_weight is {params['zero_weight']}, but the solver 'pairs' has no such weight; "
            "say purpose='links' or solver='nnls' with it."
        )
    return str(solver)


def how_to_hold(closure: str, solver: str) -> dict[str, Any]:
    """What :func:`~atpgraph.closure.hold_closure` is to be told about the closure of a fit."""
    return {
        "closure": "exact" if solver == "svd" else closure,
        "both": solver != "pairs",
        "most_nodes": MANY_NODES if solver == "pairs" else None,
        "auto_size": PANEL_SKETCH if solver == "pairs" else SKETCH_SIZE,
    }


def settle(params: dict[str, Any], n_nodes: int, n_pairs: int, closure: str = "exact") -> Settings:
    """The settings of a fit to a graph of `n_nodes` nodes, with `n_pairs` pairs joined by paths
    and its closure held in this way.

    Examples
    --------
    >>> from atpgraph import ATP
    >>> settle(ATP().get_params(), 1000, 50_000)
    Settings(solver='pairs', zero_weight=0.0, regularization=0.0001, max_iter=32)
    >>> [settle(ATP().get_params(), n, 50 * n, "sketch").max_iter for n in (50_000, 1_000_000)]
    [64, 4]
    >>> settle(ATP(purpose="links", max_iter=5).get_params(), 1000, 100_000).max_iter
    5
    """
    solver = check(params)
    zero_weight, regularization = 0.0, 0.0
    iterations = 1
    if solver == "pairs":
        regularization, iterations = DECAY, _rounds(n_nodes, closure)
    elif solver == "nnls":
        iterations = ITERATIONS
        # Relative to the number of pairs: for each pair without a path, for each number to learn.
        zeros = n_nodes * (n_nodes - 1) - n_pairs
        if params["purpose"] != "paper" and zeros > 0:
            zero_weight = min(ZERO_SHARE * n_pairs / zeros, 1.0)
        regularization = min(
            PENALTY * params["n_components"] * n_nodes / max(n_pairs, 1), MAX_PENALTY
        )
    given = {name: params[name] for name in ("zero_weight", "regularization", "max_iter")}
    return Settings(
        solver,
        zero_weight if given["zero_weight"] == "auto" else float(given["zero_weight"]),
        regularization if given["regularization"] == "auto" else float(given["regularization"]),
        iterations if given["max_iter"] == "auto" else int(given["max_iter"]),
    )


def _rounds(n_nodes: int, closure: str) -> int:
    """Rounds over the pairs: those of large graphs cost more each, those of sketches less."""
    if n_nodes > MANY_NODES:
        share: float = (MANY_NODES / n_nodes) ** 1.2
        return max(round(ROUNDS * share), FEWEST_ROUNDS[closure])
    if closure == "sketch":
        return min(ROUNDS * MANY_NODES // max(n_nodes, 1), SKETCH_ROUNDS)
    return ROUNDS
