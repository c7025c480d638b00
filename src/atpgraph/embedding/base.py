"""Follow scikit-learn's conventions for estimators without depending on scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from atpgraph.errors import NotFittedError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.registry import unknown_name


class Estimator:
    """Parameters are the arguments of ``__init__``, stored as they are under the same names.

    A fitted estimator has a graph, ``graph_``.
    """

    graph_: DiGraph

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
