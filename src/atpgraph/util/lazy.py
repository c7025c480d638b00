"""Import the names of a package when they are first used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(namespace: dict[str, Any], names_in: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of the package with the globals `namespace`.

    `names_in` lists, for each module of the package, the names it defines, separated by blanks.

    Examples
    --------
    >>> namespace = {"__name__": "os"}
    >>> lazy_names(namespace, {"path": "basename"})("basename")("/a/b"), "basename" in namespace
    ('b', True)
    """
    package = namespace["__name__"]
    module_of = {name: module for module, names in names_in.items() for name in names.split()}

    def imported(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(f"{package}.{module_of[name]}"), name)
        return namespace[name]

    return imported


def moved(old: str, package: str, name: str) -> Any:
    """Return `name` of `package`, another distribution, and warn that it was called `old`."""
    try:
        value = getattr(import_module(package), name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        install = package.replace("_", "-")
        raise ImportError(f"{old} is now {package}.{name}: pip install {install}.") from None
    warnings.warn(
        f"{old} is now {package}.{name}; the old name will be removed in 0.4.",
        DeprecationWarning,
        stacklevel=3,
    )
    return value
