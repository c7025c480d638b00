"""The event table: what happened on the site, appended once whatever is sent how often."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from atpgraph.util.files import atomic_path
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.store.database import Database, get_meta, make_private
from atpgraph_qa.service.store.tables import events, forgotten, insert_into, meta, seen_hooks
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

LOG = logging.getLogger("atpgraph.serve")
KEY_FILE = "forget.key"


@dataclass(frozen=True)
class Edited:
    """A question got another title, text or tags; None for what stayed."""

    question: int
    at_ms: int
    title: str | None = None
    body: str | None = None
    tags: tuple[str, ...] | None = None

    def changes(self) -> dict[str, Any]:
        """Return what is different now."""
        new = {"title": self.title, "body": self.body}
        if self.tags is not None:
            new["tags"] = list(self.tags)  # type: ignore[assignment]
        return {name: value for name, value in new.items() if value is not None}


@dataclass(frozen=True)
class Closed:
    """A question takes no more answers; with `deleted`, it is gone."""

    question: int
    at_ms: int
    deleted: bool = False


@dataclass(frozen=True)
class Reopened:
    """A closed question takes answers again."""

    question: int
    at_ms: int


TopicChange = Edited | Closed | Reopened
Event = Asked | Answered | Accepted | Voted | TopicChange
KINDS: dict[str, type[Event]] = {
    "asked": Asked, "answered": Answered, "accepted": Accepted, "voted": Voted, "edited": Edited,
    "closed": Closed, "reopened": Reopened,
}  # fmt: skip


_NAMES = {made: name for name, made in KINDS.items()}


@dataclass(frozen=True)
class Arrival:
    """An event as it comes in.

    Attributes
    ----------
    name : str
        The same for the same event however often and by whatever way it comes.
    event : Event
    origin : dict
        Where a question is: ``url`` for people, and what the source's adapter needs.
    """

    name: str
    event: Event
    origin: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """An event of the table."""

    seq: int
    event: Event
    origin: str


def name_of(event: Event, mark: str = "") -> str:
    """The unique name of an event.

    Votes have no id of their own, so `mark` tells them apart. An acceptance may move to another
    answer and back: its moment tells these apart, or `mark` where the source does not date it.
    """
    match event:
        case Asked():
            return f"asked:{event.id}"
        case Answered():
            return f"answered:{event.id}"
        case Accepted():
            return f"accepted:{event.question}:{event.answer}:{mark or event.at_ms}"
        case Voted():
            return f"voted:{mark}"
        case Edited() | Closed() | Reopened():
            kind = "deleted" if isinstance(event, Closed) and event.deleted else _NAMES[type(event)]
            return f"{kind}:{event.question}:{mark or event.at_ms}"


def to_payload(event: Event) -> str:
    """An event as JSON."""
    return json.dumps(asdict(event), ensure_ascii=False, separators=(",", ":"))


def from_payload(kind: str, payload: str) -> Event:
    """Back from JSON."""
    values: dict[str, Any] = json.loads(payload)
    if values.get("tags") is not None:
        values["tags"] = tuple(values["tags"])
    return KINDS[kind](**values)


def append(
    database: Database, connection: Connection, arrivals: Sequence[Arrival], now_ms: int
) -> list[int | None]:
    """Append events; the sequence number of each, None for those that were there."""
    database.serialize_appends(connection)
    result: list[int | None] = []
    for arrival in arrivals:
        event = arrival.event
        values = {
            "name": arrival.name,
            "kind": _NAMES[type(event)],
            "at_ms": event.at_ms,
            "received_ms": now_ms,
            "question": getattr(event, "question", None),
            "answer": getattr(event, "answer", None),
            "person": _person(event),
            "payload": to_payload(event),
            "origin": json.dumps(arrival.origin),
        }
        if isinstance(event, Asked):
            values["question"] = event.id
        if isinstance(event, Answered):
            values["answer"] = event.id
        made = insert_into(connection, events).values(**values)
        made = made.on_conflict_do_nothing(index_elements=["name"]).returning(events.c.seq)
        seq = connection.execute(made).scalar()
        result.append(None if seq is None else int(seq))
    return result


def after(connection: Connection, seq: int, limit: int, until: int | None = None) -> list[Stored]:
    """Events after a sequence number that were not refused, in order."""
    query = select(events.c.seq, events.c.kind, events.c.payload, events.c.origin)
    query = query.where(events.c.seq > seq, events.c.refused.is_(None))
    if until is not None:
        query = query.where(events.c.seq <= until)
    rows = connection.execute(query.order_by(events.c.seq).limit(limit))
    return [Stored(row.seq, from_payload(row.kind, row.payload), row.origin) for row in rows]


def last_seq(connection: Connection) -> int:
    """The newest sequence number, 0 for none."""
    return int(connection.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one())


def refuse(connection: Connection, seq: int, why: str) -> None:
    """Mark an event that the site's history does not fit; it is never applied."""
    connection.execute(update(events).where(events.c.seq == seq).values(refused=why))


def revive(database: Database, connection: Connection, event: Event, now_ms: int) -> int:
    """Append again what was refused because it came before this event; how many.

    An answer may come before its question, an acceptance before its answer: hooks keep no order.
    """
    if isinstance(event, Asked):
        later = ("answered", "edited", "closed", "reopened")
        waits = events.c.kind.in_(later) & (events.c.question == event.id)
    elif isinstance(event, Answered):
        waits = events.c.kind.in_(("accepted", "voted")) & (events.c.answer == event.id)
    else:
        return 0
    query = select(events).where(waits, events.c.refused.is_not(None)).order_by(events.c.seq)
    rows = connection.execute(query).all()
    if rows:
        connection.execute(delete(events).where(events.c.seq.in_([row.seq for row in rows])))
        again = [Arrival(row.name, from_payload(row.kind, row.payload)) for row in rows]
        append(database, connection, again, now_ms)
    return len(rows)


def mark_seen(connection: Connection, digest: str, now_ms: int, *, keep: bool) -> bool:
    """Remember a request that must not be repeated; return whether it is new."""
    made = insert_into(connection, seen_hooks).values(digest=digest, at_ms=now_ms, keep=keep)
    made = made.on_conflict_do_nothing().returning(seen_hooks.c.digest)
    return connection.execute(made).first() is not None


def _person(event: Event) -> int | None:
    person = {Asked: "asker", Answered: "user"}.get(type(event))
    value = None if person is None else int(getattr(event, person))
    return None if value is None or value < 0 else value


class ForgottenPeople:
    """Knows who was forgotten without knowing who they are: keyed digests of user ids."""

    def __init__(self, key: bytes, digests: set[str]) -> None:
        self._key = key
        self._digests = digests

    @classmethod
    def load(cls, connection: Connection, folder: Path) -> ForgottenPeople:
        """Read the digests; the key is made at the first start.

        The key is a file of the work folder, not a row: a backup with both could be used to find
        out who was forgotten.
        """
        file = folder / KEY_FILE
        found = set(connection.execute(select(forgotten.c.digest)).scalars())
        if not file.exists():
            if found and not get_meta(connection, "forget_key"):
                LOG.warning("forget.key is missing: people forgotten before may come back")
            key = get_meta(connection, "forget_key") or secrets.token_hex(32)
            with atomic_path(file) as temporary:
                temporary.write_text(key, encoding="ascii")
            make_private(file)
        connection.execute(meta.delete().where(meta.c.name == "forget_key"))
        return cls(bytes.fromhex(file.read_text(encoding="ascii")), found)

    def digest(self, user: int) -> str:
        """What stands for a user."""
        return hmac.new(self._key, str(user).encode(), hashlib.sha256).hexdigest()

    def __contains__(self, user: int) -> bool:
        return bool(self._digests) and user >= 0 and self.digest(user) in self._digests

    def add(self, connection: Connection, user: int, now_ms: int) -> None:
        """Remember to forget a user."""
        if user not in self:
            connection.execute(insert(forgotten).values(digest=self.digest(user), at_ms=now_ms))
            self._digests.add(self.digest(user))

    def cleaned(self, event: Event) -> Event:
        """The event without those who were forgotten."""
        if isinstance(event, Asked) and event.asker in self:
            return replace(event, asker=NOBODY)
        if isinstance(event, Answered) and event.user in self:
            return replace(event, user=NOBODY)
        return event
