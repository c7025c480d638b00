"""Scikit-learn's conventions without scikit-learn, and what a fitted embedding holds."""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from html import escape
from typing import Any, Self

import numpy as np

from atpgraph.closure import ClosureChoice, HeldClosure
from atpgraph.closure.reachability import Labels, Reachability
from atpgraph.embedding import purposes
from atpgraph.embedding.calibration import Calibration
from atpgraph.embedding.fidelity import Fidelity, evaluate
from atpgraph.embedding.path_sample import PathSample
from atpgraph.errors import NotFittedError
from atpgraph.factorization import Descent
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)
from atpgraph.util.registry import unknown_name
from atpgraph.util.threads import thread_count

log = logging.getLogger(__name__)


class Estimator:
    """Parameters are the arguments of ``__init__``, stored as they are under the same names."""

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters
        return [name for name in parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there for scikit-learn."""
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
        """The parameters that are not at their defaults."""
        signature = inspect.signature(type(self).__init__).parameters
        return {
            name: value
            for name, value in self.get_params().items()
            if value is not signature[name].default and value != signature[name].default
        }

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self._changed().items())
        return f"{type(self).__name__}({changed})"


class Embedding(Estimator, ABC):
    """A fitted model: what its file holds and other modules read, and how it answers users."""

    source_: FloatArray
    target_: FloatArray
    levels_: Int32Array
    objective_: Float64Array
    n_iter_: int
    timings_: dict[str, float]
    method_: str
    solver_: str
    zero_weight_: float
    regularization_: float
    margin_: float
    threshold_: float
    fidelity_: Fidelity | None
    calibration_: Calibration | None
    n_reachable_pairs_: int
    n_extras_: int
    closure_: ClosureChoice
    graph_: DiGraph
    removed_: Int64Array
    kernel_table_: Float64Array
    n_descendants_: Int64Array
    popularity_: Float32Array
    _reachability: Reachability

    @abstractmethod
    def fit(self, graph: Any, y: object = None) -> Self:
        """Embed a graph."""

    def fit_transform(self, graph: Any, y: object = None) -> FloatArray:
        """:meth:`fit`, then the vectors of all nodes, as :meth:`transform` gives them."""
        self.fit(graph, y)
        return self.transform(self.graph_)

    def transform(self, nodes: Any) -> FloatArray:
        """Source and target vector of each node, side by side: features for a classifier.

        Parameters
        ----------
        nodes : list or array of labels, or a graph
            Nodes of the model; of a graph (anything :func:`atpgraph.as_graph` takes) all nodes, in
            the order in which it has them.

        Returns
        -------
        array of shape (nodes, 2 n_components)
        """
        graph = self._fitted()
        codes = graph.codes(_labels_in(graph, nodes))
        return np.concatenate([self.source_[codes], self.target_[codes]], axis=1)

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the columns of :meth:`transform`, for scikit-learn."""
        self._fitted()
        k = self.source_.shape[1]
        return np.array([f"{side}{at}" for side in ("source", "target") for at in range(k)], object)

    def reaches(self, u: Labels, v: Labels) -> bool | BoolArray:
        """Whether a path of the graph, cycles included, leads from u to v: exact, no vectors.

        See :class:`~atpgraph.Reachability`, which `reachability_` is, for more such questions.
        """
        return self.reachability_.reaches(u, v)

    @property
    def reachability_(self) -> Reachability:
        """The exact paths of the graph."""
        graph = self._fitted()
        if not hasattr(self, "_reachability") or self._reachability.graph is not graph:
            self._reachability = Reachability(graph)
        return self._reachability

    @property
    def dag_(self) -> DiGraph:
        """The graph without the removed edges."""
        return self._fitted().without_edges(self.removed_)

    def _checked(self, graph: Any) -> DiGraph:
        """The graph to fit, once the parameters of the wrong kind are refused."""
        params = self.get_params()
        purposes.check(params)
        thread_count(params["n_jobs"])
        given = as_graph(graph, memory=params["memory"])
        if given.weights is not None:
            log.warning("Edge weights are not used: to the embedding an edge is an edge.")
        return given

    def _judge(self, closure: HeldClosure, effort: float = 1.0) -> None:
        """Measure how well the vectors keep the paths of the graph; find threshold and calibration.

        A smaller `effort` samples less.
        """
        if self.solver_ == "pairs":
            self.n_descendants_ = closure.paths.sizes
            self.popularity_ = closure.popularity(Descent().draws).astype(np.float32)
        sizes = None if closure.columns is None else (closure.rows.sizes, closure.columns.sizes)
        sample = PathSample.of(
            self.dag_, self.levels_, sizes, effort=effort, n_jobs=self.get_params()["n_jobs"]
        )
        cut = 0.0 if self.solver_ == "pairs" else None
        judged = evaluate(sample, self.source_, self.target_, cut)
        self.fidelity_, self.threshold_, self.calibration_ = judged
        log.info("%s", self.fidelity_)
        if self.fidelity_.is_poor and self.solver_ == "pairs":
            log.warning("%s", self.fidelity_.advice())

    def _fitted(self) -> DiGraph:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet; call fit(graph) first."
            )
        return self.graph_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")

    def __repr__(self) -> str:
        fitted = f".fit({self.graph_!r})" if self.__sklearn_is_fitted__() else ""
        return super().__repr__() + fitted

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = {name: repr(value) for name, value in self._changed().items()}
        state = "not fitted"
        if self.__sklearn_is_fitted__():
            state = "fitted"
            rows |= {
                "nodes": f"{self.graph_.n_nodes:,}",
                "edges": f"{self.graph_.n_edges:,}",
                "edges removed to break cycles": f"{len(self.removed_):,}",
                "levels": f"{int(self.levels_.max(initial=0)):,}",
                "components": f"{self.source_.shape[1]:,}",
                "fidelity": str(self.fidelity_ or "not measured"),
            }
        cells = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<b>{type(self).__name__}</b>, {state}<table>{cells}</table>"


def _labels_in(graph: DiGraph, nodes: Any) -> list[Any]:
    """The labels meant by a list of them, or by a graph; a list of pairs may be either."""
    if isinstance(nodes, (list, tuple)) or getattr(nodes, "ndim", 0) == 1:
        labels = list(nodes.tolist() if hasattr(nodes, "tolist") else nodes)
        pairs = {type(label) for label in labels} & {list, tuple}
        if not pairs or (list not in pairs and (graph.codes_or_minus_one(labels) >= 0).all()):
            return labels
    return list(as_graph(nodes).labels.tolist())
