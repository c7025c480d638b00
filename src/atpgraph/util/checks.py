"""Check numeric parameters; a value that does not fit is an InputError of one sentence."""

from __future__ import annotations

from math import inf, isfinite
from numbers import Integral, Real

from atpgraph.errors import InputError


def real_number(name: str, value: object, least: float = 0.0, most: float = inf) -> float:
    """Return `value` as a finite float in [least, most].

    Examples
    --------
    >>> real_number("tol", 2)
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}; it must be a number.")
    number = float(value)
    if not least <= number <= most or not isfinite(number):
        bound = f"at least {least:g}" if most == inf else f"from {least:g} to {most:,.0f}"
        raise InputError(f"{name} is {value}; it must be finite and {bound}.")
    return number


def whole_number(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int in [least, most].

    Examples
    --------
    >>> whole_number("n_components", 8)
    8
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} is {value!r}; it must be a whole number.")
    number = int(value)
    if number < least:
        raise InputError(f"{name} is {value}; it must be at least {least}.")
    if most is not None and number > most:
        raise InputError(f"{name} is {number:,}; it must be at most {most:,}.")
    return number
