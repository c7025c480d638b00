"""The table of events: append-only and idempotent."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection, select

from atpgraph.util.files import atomic_path
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service import tables as db
from atpgraph_qa.service.database import make_private, serialize
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

LOG = logging.getLogger("atpgraph.serve")
KEY_FILE = "forget.key"


@dataclass(frozen=True)
class Edited:
    """A question was edited; a title, text or tags of None did not change."""

    question: int
    at_ms: int
    title: str | None = None
    body: str | None = None
    tags: Sequence[str] | None = None

    def changes(self) -> Row:
        """Return the columns that changed."""
        new = {"title": self.title, "body": self.body, "tags": self.tags}
        return {name: value for name, value in new.items() if value is not None}


@dataclass(frozen=True)
class StatusChanged:
    """A question was ``closed``, ``deleted``, or is ``open`` again."""

    question: int
    at_ms: int
    state: str


TopicChange = Edited | StatusChanged
Event = Asked | Answered | Accepted | Voted | TopicChange
KINDS: dict[str, type[Event]] = {
    "asked": Asked, "answered": Answered, "accepted": Accepted, "voted": Voted, "edited": Edited,
    "status": StatusChanged,
}  # fmt: skip
_NAMES = {made: name for name, made in KINDS.items()}


@dataclass(frozen=True)
class Arrival:
    """An event with its name, which is the same when it arrives again or in another way.

    The origin of a question says where it is: ``url`` for people, and data for the adapter of its
    source.
    """

    name: str
    event: Event
    origin: dict[str, str] = field(default_factory=dict)
    seq: int = 0  # once it is stored

    @classmethod
    def of(cls, event: Event, mark: str = "", origin: dict[str, str] | None = None) -> Arrival:
        """Return an event with its unique name.

        Votes have no id, so `mark` distinguishes them. An acceptance may move to another answer
        and back: its time distinguishes these, or `mark` if the source does not date it.
        """
        match event:
            case Asked() | Answered():
                name = f"{_NAMES[type(event)]}:{event.id}"
            case Accepted():
                name = f"accepted:{event.question}:{event.answer}:{mark or event.at_ms}"
            case Voted():
                name = f"voted:{mark}"
            case Edited() | StatusChanged():
                state = getattr(event, "state", "edited")
                name = f"{state}:{event.question}:{mark or event.at_ms}"
        return cls(name, event, origin or {})


def append(connection: Connection, arrivals: Sequence[Arrival], now_ms: int) -> list[int | None]:
    """Append events; return the sequence number of each, None for those that were there."""
    serialize(connection)
    result: list[int | None] = []
    for arrival in arrivals:
        event = arrival.event
        person = getattr(event, {Asked: "asker", Answered: "user"}.get(type(event), ""), NOBODY)
        seq = db.add(
            connection, db.events, name=arrival.name, kind=_NAMES[type(event)], at_ms=event.at_ms,
            received_ms=now_ms, payload=asdict(event), origin=arrival.origin,
            question=event.id if isinstance(event, Asked) else getattr(event, "question", None),
            answer=event.id if isinstance(event, Answered) else getattr(event, "answer", None),
            person=person if person >= 0 else None,
        )  # fmt: skip
        result.append(seq)
    return result


def after(connection: Connection, seq: int, limit: int, until: int = 2**62) -> list[Arrival]:
    """Return events after a sequence number that were not refused, in order."""
    t = db.events.c
    query = select(db.events).where(t.seq > seq, t.seq <= until, t.refused.is_(None))
    rows = connection.execute(query.order_by(t.seq).limit(limit))
    return [Arrival(r.name, KINDS[r.kind](**r.payload), r.origin, r.seq) for r in rows]


def revive(connection: Connection, event: Event, now_ms: int) -> None:
    """Append again the events that were refused because they came before this one."""
    if isinstance(event, Asked):
        later = ("answered", "edited", "status")
        waits = db.events.c.kind.in_(later) & (db.events.c.question == event.id)
    elif isinstance(event, Answered):
        waits = db.events.c.kind.in_(("accepted", "voted")) & (db.events.c.answer == event.id)
    else:
        return
    waits &= db.events.c.refused.is_not(None)
    rows = db.find(connection, select(db.events).where(waits).order_by(db.events.c.seq))
    if rows:
        db.remove(connection, db.events, db.events.c.seq.in_([row["seq"] for row in rows]))
        again = [Arrival(row["name"], KINDS[row["kind"]](**row["payload"])) for row in rows]
        append(connection, again, now_ms)


class ForgottenPeople:
    """The people who were forgotten, as keyed digests of their ids.

    The first start writes the key to a file in the work folder. It is not a row, because a backup
    with digests and key could be used to find out who was forgotten.
    """

    def __init__(self, connection: Connection, folder: Path) -> None:
        file, old_key = folder / KEY_FILE, db.get_meta(connection, "forget_key")
        self._digests = set(connection.execute(select(db.forgotten.c.digest)).scalars())
        if not file.exists():
            if self._digests and not old_key:
                LOG.warning("forget.key is missing: people forgotten before may come back")
            with atomic_path(file) as temporary:
                temporary.write_text(old_key or secrets.token_hex(32), encoding="ascii")
            make_private(file)
        db.remove(connection, db.meta, "forget_key")
        self._key = bytes.fromhex(file.read_text(encoding="ascii"))

    def digest(self, text: object) -> str:
        """Return a keyed digest of a user or another text."""
        return hmac.new(self._key, str(text).encode(), hashlib.sha256).hexdigest()

    def __contains__(self, user: int) -> bool:
        return bool(self._digests) and user >= 0 and self.digest(user) in self._digests

    def add(self, connection: Connection, user: int, now_ms: int) -> None:
        """Add a user to the erasure list."""
        db.add(connection, db.forgotten, digest=self.digest(user), at_ms=now_ms)
        self._digests.add(self.digest(user))

    def cleaned(self, event: Event) -> Event:
        """Return the event without a person who was forgotten."""
        if isinstance(event, Asked) and event.asker in self:
            return replace(event, asker=NOBODY)
        if isinstance(event, Answered) and event.user in self:
            return replace(event, user=NOBODY)
        return event
