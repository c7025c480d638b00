"""Packages whose names are imported when they are first used, so that importing them is cheap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    namespace: dict[str, Any], names_in: Mapping[str, Sequence[str]]
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Parameters
    ----------
    namespace : dict
        ``globals()`` of the package; a name is put there when it is first used.
    names_in : mapping
        The names that each module defines; modules are given relative to the package.

    Examples
    --------
    >>> namespace = {"__name__": "os"}
    >>> lazy_names(namespace, {"path": ["basename"]})("basename")("/a/b"), "basename" in namespace
    ('b', True)
    """
    package = namespace["__name__"]
    module_of = {name: module for module, names in names_in.items() for name in names}

    def imported(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(f"{package}.{module_of[name]}"), name)
        return namespace[name]

    return imported


def moved(old: str, package: str, name: str) -> Any:
    """Return `name` of another distribution's `package`, which used to be called `old`, and warn.

    Raises
    ------
    ImportError
        If that distribution is not installed.
    """
    try:
        value = getattr(import_module(package), name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        install = package.replace("_", "-")
        raise ImportError(f"{old} is now {package}.{name}: pip install {install}.") from None
    warnings.warn(
        f"{old} is now {package}.{name}; the old name goes with the next release.",
        DeprecationWarning,
        stacklevel=3,
    )
    return value
