"""Checks of parameters, each with its sentence."""

from __future__ import annotations

import numpy as np

from atpgraph.errors import InputError


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
