"""Things a user asks for by name, and what to say when the name is mistyped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from atpgraph.errors import InputError

T = TypeVar("T")


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not there, with the nearest one that is.

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


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to things that answers an unknown name with one clear sentence.

    Parameters
    ----------
    kind : str
        What the things are, for the sentence: "cycle-breaking method", "dataset".
    items : mapping
        The things, in the order in which they are listed.

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

    def __init__(self, kind: str, items: Mapping[str, T] | None = None) -> None:
        self.kind = kind
        self._items: dict[str, T] = dict(items or {})

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except (KeyError, TypeError):
            raise unknown_name(self.kind, name, self._items) from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def get(self, name: str, default: Any = None) -> Any:
        """What is under `name`, or the default."""
        return self._items.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate what is to be found under `name`."""

        def add(item: T) -> T:
            self._items[name] = item
            return item

        return add

    def select(self, names: str | Iterable[str] = "all") -> dict[str, T]:
        """The named things in the order asked for; "all" is every one."""
        wanted = [names] if isinstance(names, str) else list(names)
        chosen: dict[str, T] = {}
        for name in wanted:
            chosen |= self._items if name == "all" else {name: self[name]}
        return chosen
