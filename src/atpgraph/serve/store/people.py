"""People as the service knows them: what they set themselves, and when they were asked."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from atpgraph.cqa.data.site import DAY_MS
from atpgraph.serve.store.database import Database
from atpgraph.serve.store.tables import asks, people

WEEK_MS = 7 * DAY_MS


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
    """Everybody who set something, in memory as in the table."""

    def __init__(self, known: Iterable[Person] = ()) -> None:
        self._people = {person.id: person for person in known}
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

    def put(self, person: Person) -> None:
        """Remember what the table holds now."""
        with self._lock:
            self._people[person.id] = person

    def drop(self, user: int) -> None:
        """Forget somebody."""
        with self._lock:
            self._people.pop(user, None)


def save_person(database: Database, connection: Connection, person: Person, now_ms: int) -> None:
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
    made = (sqlite if database.is_sqlite else postgresql).insert(people).values(**values)
    rest = {name: made.excluded[name] for name in values if name != "id"}
    connection.execute(made.on_conflict_do_update(index_elements=["id"], set_=rest))


def learn_handle(
    database: Database, connection: Connection, directory: Directory, user: int, handle: str,
    groups: tuple[str, ...] | None, now_ms: int,
) -> Person | None:  # fmt: skip
    """Note a name that came with an event; the person as changed, None if it was known."""
    old = directory[user]
    new = replace(old, handle=handle, groups=old.groups if groups is None else groups)
    if new == old:
        return None
    save_person(database, connection, new, now_ms)
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


@dataclass(frozen=True)
class Ask:
    """Somebody was asked something: by a suggestion, by hand, or outside of the service."""

    person: int
    at_ms: int
    kind: str
    shadow: bool
    suggestion: int | None = None


class AskBook:
    """Asks of the last week, in memory as in the table.

    Shadow asks count only while the service is in shadow mode: its report should show what would
    have happened, with the caps that would have held.
    """

    def __init__(self, known: Iterable[Ask] = ()) -> None:
        self._asks: dict[int, list[Ask]] = defaultdict(list)
        self._last: dict[int, int] = {}
        self.add(known)

    @classmethod
    def load(cls, connection: Connection, now_ms: int) -> AskBook:
        """From the table: the last week, and when everybody was last asked."""
        query = select(asks).where(asks.c.at_ms > now_ms - 8 * WEEK_MS).order_by(asks.c.at_ms)
        return cls(
            Ask(row.person, row.at_ms, row.kind, bool(row.shadow), row.suggestion)
            for row in connection.execute(query)
        )

    def add(self, new: Iterable[Ask]) -> None:
        """Remember asks."""
        for ask in new:
            self._asks[ask.person].append(ask)
            self._last[ask.person] = max(ask.at_ms, self._last.get(ask.person, 0))

    def times(self, person: int, now_ms: int, days: float, *, shadow: bool) -> int:
        """How often somebody was asked in the last days."""
        since = now_ms - days * DAY_MS
        found = self._asks.get(person, ())
        return sum(1 for ask in found if ask.at_ms > since and (shadow or not ask.shadow))

    def last(self, person: int, *, shadow: bool) -> int:
        """When somebody was last asked, 0 for never (or too long ago to matter)."""
        if shadow:
            return self._last.get(person, 0)
        times = [ask.at_ms for ask in self._asks.get(person, ()) if not ask.shadow]
        return max(times, default=0)

    def loads(self, now_ms: int, days: float) -> dict[int, int]:
        """Asks of everybody in the last days, shadow ones included."""
        since = now_ms - days * DAY_MS
        counts = {
            person: sum(1 for ask in found if ask.at_ms > since)
            for person, found in list(self._asks.items())
        }
        return {person: count for person, count in counts.items() if count}

    def drop(self, person: int) -> None:
        """Forget somebody."""
        self._asks.pop(person, None)
        self._last.pop(person, None)

    def sweep(self, now_ms: int) -> None:
        """Drop what no rule looks at any more."""
        for person, found in list(self._asks.items()):
            kept = [ask for ask in found if ask.at_ms > now_ms - 8 * WEEK_MS]
            if kept:
                self._asks[person] = kept
            else:
                self.drop(person)


def save_asks(connection: Connection, new: Iterable[Ask]) -> None:
    """Append to the table."""
    rows = [
        {
            "person": ask.person, "suggestion": ask.suggestion, "at_ms": ask.at_ms,
            "kind": ask.kind, "shadow": ask.shadow,
        }
        for ask in new
    ]  # fmt: skip
    if rows:
        connection.execute(insert(asks), rows)
