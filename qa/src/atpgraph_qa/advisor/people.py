"""Settings of people: opt-out, absence, hours, capacity, groups, topics."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import Int64Array

T = TypeVar("T")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")


@dataclass(frozen=True)
class Person:
    """A person who may be asked."""

    id: int  # on the site
    handle: str = ""  # name on the site, for messages; empty if unknown
    opted_out: bool = False
    away_until: str = ""  # day like 2026-12-25 until which nobody should ask; empty for none
    hours: str = ""  # working hours like 09:00-17:00; empty for the site's
    time_zone: str = ""  # empty for the site's
    capacity: int | None = None  # most asks a week; None for the site's
    groups: tuple[str, ...] = ()  # on the site
    topics: tuple[str, ...] = ()  # tags they say they know about


class Directory:
    """People by id, in memory.

    It may hold a whole site; the data that every question needs is cached until somebody's topics
    or groups change.

    Examples
    --------
    >>> known = Directory([Person(7, "ada", topics=("beans",)), Person(9, groups=("staff",))])
    >>> known[7].handle, known[8].handle, known.members(["staff"]).tolist()
    ('ada', '', [9])
    """

    def __init__(self, known: Iterable[Person] = ()) -> None:
        self._people = {person.id: person for person in known}
        self._kept: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def __getitem__(self, user: int) -> Person:
        return self._people.get(user) or Person(user)

    def __contains__(self, user: int) -> bool:
        return user in self._people

    def __iter__(self) -> Iterator[Person]:
        return iter(list(self._people.values()))

    def find(self, name: str, limit: int = 20) -> list[Person]:
        """Return people whose handle contains a text, ignoring case; exact matches come first."""
        wanted = name.strip().lstrip("@").casefold()
        found = [person for person in self if wanted and wanted in person.handle.casefold()]
        found.sort(key=lambda person: (person.handle.casefold() != wanted, person.handle))
        return found[:limit]

    def declaring(self) -> tuple[Person, ...]:
        """Return the people who declare topics."""
        return self._keep("topics", lambda: tuple(person for person in self if person.topics))

    def members(self, groups: Collection[str]) -> Int64Array:
        """Return the ids of the members of any of the groups, ascending."""
        wanted = frozenset(groups)

        def make() -> Int64Array:
            found = sorted(person.id for person in self if wanted.intersection(person.groups))
            return np.array(found, dtype=np.int64)

        return self._keep(wanted, make)

    def put(self, person: Person) -> None:
        """Add or replace a person."""
        with self._lock:
            old = self[person.id]
            self._people[person.id] = person
            if (old.topics, old.groups) != (person.topics, person.groups):
                self._kept.clear()

    def drop(self, user: int) -> None:
        """Remove a person."""
        with self._lock:
            self._people.pop(user, None)
            self._kept.clear()

    def _keep(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            result: T = self._kept[key]
        return result


def parse_hours(text: str) -> tuple[int, int]:
    """Return the start and end of ``09:00-17:00`` in minutes; hours may span midnight.

    Examples
    --------
    >>> parse_hours("09:00-17:30")
    (540, 1050)
    """
    match = _HOURS.fullmatch(text)
    if match is None:
        raise InputError(f"Write working hours like 09:00-17:00, not {text!r}.")
    a, b, c, d = (int(part) for part in match.groups())
    start, end = 60 * a + b, 60 * c + d
    if start > 1440 or end > 1440 or start == end:
        raise InputError(f"Write working hours like 09:00-17:00, not {text!r}.")
    return start, end


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by name, like Europe/Vienna."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"There is no time zone {name!r}; use one like Europe/Vienna.") from None


def parse_day(text: str) -> date:
    """Return a date written like ``2026-12-25``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"Write a day like 2026-12-25, not {text!r}.") from None
