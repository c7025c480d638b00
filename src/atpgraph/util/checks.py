"""Checks of parameters, each with its sentence."""

from __future__ import annotations

import numpy as np

from atpgraph.errors import InputError


def real_number(name: str, value: object, least: float = 0.0, most: float = np.inf) -> float:
    """`value` as a finite float; a sentence where it is none, or out of range.

    Examples
    --------
    >>> real_number("tol", np.float32(0.5))
    0.5
    """
    kinds = (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds):
        raise InputError(f"{name} is {value!r}; it must be a number.")
    number = float(value)
    if not least <= number <= most or not np.isfinite(number):
        bound = f"at least {least:g}" if most == np.inf else f"from {least:g} to {most:,.0f}"
        raise InputError(f"{name} is {value}; it must be finite and {bound}.")
    return number


def whole_number(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """`value` as an int; a sentence where it is none, or out of range.

    Examples
    --------
    >>> whole_number("n_components", np.int64(8))
    8
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} is {value!r}; it must be a whole number.")
    if value < least:
        raise InputError(f"{name} is {value}; it must be at least {least}.")
    if most is not None and value > most:
        raise InputError(f"{name} is {value:,}; it must be at most {most:,}.")
    return int(value)
