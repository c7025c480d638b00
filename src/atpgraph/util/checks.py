"""Check parameters and look up names; an invalid one raises an InputError of one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Integral, Real
from typing import TypeVar

from atpgraph.errors import InputError

T = TypeVar("T")


def real_number(name: str, value: object, most: float = inf) -> float:
    """Return `value` as a finite float in [0, most].

    Examples
    --------
    >>> real_number("tol", 2)
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}; it must be a number.")
    number = float(value)
    if not 0 <= number <= most or not isfinite(number):
        bound = "at least 0" if most == inf else f"from 0 to {most:,.0f}"
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


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name, with the nearest known one.

    Examples
    --------
    >>> print(unknown_name("kernel", "lag", ["log", "linear"]))
    There is no kernel 'lag': did you mean 'log'? Known: log, linear.
    """
    names = list(known)
    by_lower = {each.lower(): each for each in names}
    near = get_close_matches(str(name).lower(), by_lower, n=1)
    hint = f": did you mean {by_lower[near[0]]!r}?" if near else "."
    return InputError(f"There is no {kind} {name!r}{hint} Known: {', '.join(names)}.")


class Registry(dict[str, T]):
    """A dictionary whose error for an unknown name is one sentence.

    Parameters
    ----------
    kind : str
        What the values are, for the sentence: "cycle-breaking method", "dataset".
    items : mapping
        The values, in the order in which they are listed.

    Examples
    --------
    >>> rows = Registry("row", {"degree": 1, "level": 2})
    >>> rows["level"], list(rows)
    (2, ['degree', 'level'])
    >>> rows["leve"]
    Traceback (most recent call last):
        ...
    atpgraph.errors.InputError: There is no row 'leve': did you mean 'level'? Known: degree, level.
    """

    def __init__(self, kind: str, items: Mapping[str, T]) -> None:
        super().__init__(items)
        self.kind = kind

    def __getitem__(self, name: str) -> T:
        try:
            return super().__getitem__(name)
        except (KeyError, TypeError):
            raise unknown_name(self.kind, name, self) from None

    def select(self, names: str | Iterable[str] = "all") -> dict[str, T]:
        """Return the named values in the given order; "all" is every one."""
        chosen: dict[str, T] = {}
        for name in [names] if isinstance(names, str) else names:
            chosen |= self if name == "all" else {name: self[name]}
        return chosen


def renamed_top(k: int, top: int | None) -> int:
    """Return `k`, or `top`, its name before 0.3, with a warning."""
    if top is None:
        return k
    warnings.warn("top is now k; the old name will be removed in 0.4.", DeprecationWarning, 3)
    return top
