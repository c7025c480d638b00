"""People as the service knows them: what they set themselves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, select

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.service.store.database import insert_into
from atpgraph_qa.service.store.tables import people

T = TypeVar("T")


@dataclass(frozen=True)
class Person:
    """Somebody who may be asked.

    Attributes
    ----------
    id : int
        User id on the site.
    handle : str
        Name on the site, for messages; empty if unknown.
    opted_out : bool
    away_until : str
        Day like 2026-12-25 until which nobody should ask; empty for none.
    hours, time_zone : str
        Working hours like 09:00-17:00 and where; empty for the site's.
    capacity : int or None
        Most asks a week; None for the site's.
    groups, topics : tuple of str
        Groups on the site, and tags they say they know about.
    """

    id: int
    handle: str = ""
    opted_out: bool = False
    away_until: str = ""
    hours: str = ""
    time_zone: str = ""
    capacity: int | None = None
    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


class Directory:
    """Everybody who set something, in memory as in the table.

    It may hold the whole site, since hooks bring names along; what every question needs of it is
    kept until somebody's topics or groups change.
    """

    def __init__(self, known: Iterable[Person] = ()) -> None:
        self._people = {person.id: person for person in known}
        self._kept: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def load(cls, connection: Connection) -> Directory:
        """From the table."""
        return cls(_person(row) for row in connection.execute(select(people)))

    def __getitem__(self, user: int) -> Person:
        return self._people.get(user) or Person(user)

    def __contains__(self, user: int) -> bool:
        return user in self._people

    def __iter__(self) -> Iterator[Person]:
        return iter(list(self._people.values()))

    def by_handle(self, handle: str) -> Person | None:
        """Somebody by name on the site."""
        return next((person for person in self if person.handle == handle), None)

    def declaring(self) -> tuple[Person, ...]:
        """Those who say what they know about."""
        return self._keep("topics", lambda: tuple(person for person in self if person.topics))

    def members(self, groups: Collection[str]) -> Int64Array:
        """Ids of those who are in one of the groups, ascending."""
        wanted = frozenset(groups)

        def make() -> Int64Array:
            found = sorted(person.id for person in self if wanted.intersection(person.groups))
            return np.array(found, dtype=np.int64)

        return self._keep(wanted, make)

    def put(self, person: Person) -> None:
        """Remember what the table holds now."""
        with self._lock:
            old = self[person.id]
            self._people[person.id] = person
            if (old.topics, old.groups) != (person.topics, person.groups):
                self._kept.clear()

    def drop(self, user: int) -> None:
        """Forget somebody."""
        with self._lock:
            self._people.pop(user, None)
            self._kept.clear()

    def _keep(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            result: T = self._kept[key]
        return result


def save_person(connection: Connection, person: Person, now_ms: int) -> None:
    """Insert or replace the row of a person."""
    values = {
        "id": person.id,
        "handle": person.handle,
        "opted_out": person.opted_out,
        "away_until": person.away_until,
        "hours": person.hours,
        "time_zone": person.time_zone,
        "capacity": person.capacity,
        "member_of": json.dumps(person.groups),
        "topics": json.dumps(person.topics),
        "updated_ms": now_ms,
    }
    made = insert_into(connection, people).values(**values)
    rest = {name: made.excluded[name] for name in values if name != "id"}
    connection.execute(made.on_conflict_do_update(index_elements=["id"], set_=rest))


def learn_handle(
    connection: Connection, directory: Directory, user: int, handle: str,
    groups: tuple[str, ...] | None, now_ms: int,
) -> Person | None:  # fmt: skip
    """Note a name that came with an event; the person as changed, None if it was known."""
    old = directory[user]
    new = replace(old, handle=handle, groups=old.groups if groups is None else groups)
    if new == old:
        return None
    save_person(connection, new, now_ms)
    return new


def _person(row: Any) -> Person:
    return Person(
        id=row.id,
        handle=row.handle or "",
        opted_out=bool(row.opted_out),
        away_until=row.away_until or "",
        hours=row.hours or "",
        time_zone=row.time_zone or "",
        capacity=row.capacity,
        groups=tuple(json.loads(row.member_of)),
        topics=tuple(json.loads(row.topics)),
    )
