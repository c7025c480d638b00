"""Scikit-learn's conventions for estimators, without needing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from atpgraph.errors import InputError


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
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; "
                    f"it has {', '.join(self._names())}."
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(one_d_array=True, two_d_array=True, sparse=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "source_")

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not signature[name].default and value != signature[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
