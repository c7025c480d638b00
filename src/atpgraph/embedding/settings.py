"""Parameters of estimators: set and show them, check those of a fit and resolve "auto"."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any, Self

from atpgraph.closure import KERNELS
from atpgraph.errors import InputError, NotFittedError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.checks import real_number, unknown_name, whole_number

PURPOSES = ("reachability", "paper")
REMOVED = {
    "closure": "paths are sampled, or with purpose='paper' stored exactly",
    "sketch_size": "paths are sampled afresh in every round",
    "memory": "the learned solver needs a fixed number of bytes per node and edge",
    "tol": "max_iter limits the work",
    "c": "use a kernel such as lambda d: c + np.log(np.e + d)",
    "solver": "purpose='paper' is the non-negative factorization",
}

# Chosen on validation graphs, see benchmarks/notes/defaults.md.
ROUNDS = 20  # for graphs of 100,000 nodes
MOST_ROUNDS, FEWEST_ROUNDS = 32, 2
MANY_NODES = 100_000  # larger graphs get fewer rounds
DECAY = 1e-4
ITERATIONS = 3
ZERO_SHARE = 0.02
PENALTY, MAX_PENALTY = 4.0, 0.3
_LARGEST_PENALTY = 1e6
_MOST_ITERATIONS = 1_000_000


class Estimator:
    """An object whose parameters are the arguments of ``__init__``, stored under the same names."""

    graph_: DiGraph  # of a fitted estimator

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is ignored."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                raise unknown_name(f"{type(self).__name__} parameter", name, self._names())
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=True, sparse=True),
        )

    def _changed(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        signature = inspect.signature(type(self).__init__).parameters
        return {
            name: value
            for name, value in self.get_params().items()
            if value is not signature[name].default and value != signature[name].default
        }

    def _fitted(self) -> DiGraph:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(f"This {name} is not fitted yet; call fit(graph) first.")
        return self.graph_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self._changed().items())
        fitted = f".fit({self.graph_!r})" if self.__sklearn_is_fitted__() else ""
        return f"{type(self).__name__}({changed}){fitted}"


@dataclass(frozen=True)
class Settings:
    """The settings of one fit, with every "auto" resolved; see :class:`~atpgraph.ATP`."""

    purpose: str
    zero_weight: float
    regularization: float
    max_iter: int


def without_removed(given: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that replace removed ones, with a warning for each."""
    replaced: dict[str, Any] = {}
    for name, value in given.items():
        if name not in REMOVED:
            raise TypeError(f"ATP has no parameter {name!r}.")
        if name == "solver" and value == "svd":
            raise InputError(
                "ATP no longer has a solver 'svd'; use atpgraph.linkpred.baselines.svdm."
            )
        if name == "solver" and value == "nnls" and current["purpose"] == "reachability":
            replaced = {"purpose": "paper", "zero_weight": "auto"}
        warnings.warn(
            f"The parameter {name} of ATP has no effect and will be removed in 0.4: "
            f"{REMOVED[name]}.",
            DeprecationWarning,
            stacklevel=4,
        )
    return replaced


def checked(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the old purpose "links" spelled out, or raise an error."""
    given = dict(params)
    if given["purpose"] == "links":
        warnings.warn(
            "purpose='links' will be removed in 0.4; use purpose='paper' with zero_weight='auto'.",
            DeprecationWarning,
            stacklevel=4,
        )
        given["purpose"] = "paper"
        if not given["zero_weight"]:
            given["zero_weight"] = "auto"
    if given["purpose"] not in PURPOSES:
        raise unknown_name("purpose", given["purpose"], PURPOSES)
    if not callable(given["kernel"]):
        KERNELS[given["kernel"]]  # raises an error for an unknown name
    whole_number("n_components", given["n_components"])
    if given["max_iter"] != "auto":
        whole_number("max_iter", given["max_iter"], most=_MOST_ITERATIONS)
    if given["regularization"] != "auto":
        real_number("regularization", given["regularization"], most=_LARGEST_PENALTY)
    if given["zero_weight"] != "auto":
        real_number("zero_weight", given["zero_weight"], most=1.0)
    if given["purpose"] == "reachability" and given["zero_weight"]:
        raise InputError(
            f"zero_weight is {given['zero_weight']}, but purpose='reachability' has no such "
            "weight; use purpose='paper' with it."
        )
    return given


def settle(params: dict[str, Any], n_nodes: int, n_pairs: int) -> Settings:
    """Resolve the settings for a graph with `n_nodes` nodes and `n_pairs` pairs joined by paths.

    Examples
    --------
    >>> from atpgraph import ATP
    >>> settle(ATP().get_params(), 1000, 50_000)
    Settings(purpose='reachability', zero_weight=0.0, regularization=0.0001, max_iter=32)
    >>> [settle(ATP().get_params(), n, 50 * n).max_iter for n in (100_000, 1_000_000)]
    [20, 2]
    >>> settle(ATP(purpose="paper", max_iter=5).get_params(), 1000, 100_000).max_iter
    5
    """
    given = checked(params)
    if given["purpose"] == "reachability":
        zero_weight, regularization, iterations = 0.0, DECAY, rounds_for(n_nodes)
    else:
        # Relative to the number of pairs: per pair without a path, per number to learn.
        zeros = n_nodes * (n_nodes - 1) - n_pairs
        zero_weight = min(ZERO_SHARE * n_pairs / zeros, 1.0) if zeros > 0 else 0.0
        penalty = PENALTY * given["n_components"] * n_nodes / max(n_pairs, 1)
        regularization, iterations = min(penalty, MAX_PENALTY), ITERATIONS
    automatic = {
        "zero_weight": zero_weight, "regularization": regularization, "max_iter": iterations,
    }  # fmt: skip
    chosen: dict[str, Any] = {
        name: value if given[name] == "auto" else type(value)(given[name])
        for name, value in automatic.items()
    }
    return Settings(given["purpose"], **chosen)


def rounds_for(n_nodes: int) -> int:
    """Return the default number of rounds: the more a round costs, the fewer."""
    if n_nodes > MANY_NODES:
        share: float = (MANY_NODES / n_nodes) ** 1.2
        return max(round(ROUNDS * share), FEWEST_ROUNDS)
    return min(ROUNDS * MANY_NODES // max(n_nodes, 1), MOST_ROUNDS)
