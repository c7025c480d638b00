"""The tables, as queries see them; the numbered SQL files beside this one make them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects import postgresql, sqlite

METADATA = MetaData()


def _table(name: str, /, **columns: type) -> Table:
    kinds = {int: BigInteger, str: Text, bool: Boolean, float: Double}
    keys = _KEYS.get(name, ("id",))
    made = [
        # SQLite numbers rows by itself only where the key is an INTEGER.
        Column(
            column,
            BigInteger().with_variant(Integer, "sqlite") if column in keys and kind is int
            else kinds[kind](),
            primary_key=column in keys,
        )
        for column, kind in columns.items()
    ]  # fmt: skip
    return Table(name, METADATA, *made)


_KEYS = {
    "meta": ("name",), "sessions": ("digest",), "idempotency": ("token", "name"),
    "events": ("seq",), "topic_parts": ("topic",), "switched_off": ("adapter",),
    "forgotten": ("digest",), "calibration": ("day", "shadow", "bin"),
    "quotes": ("question", "suggestion"), "seen_hooks": ("digest",),
}  # fmt: skip

meta = _table("meta", name=str, value=str)
tokens = _table(
    "tokens", id=int, name=str, digest=str, scopes=str, created_ms=int, used_ms=int, revoked_ms=int
)
sessions = _table("sessions", digest=str, token=int, csrf=str, expires_ms=int)
idempotency = _table(
    "idempotency", token=int, name=str, fingerprint=str, status=int, body=str, created_ms=int
)
events = _table(
    "events", seq=int, name=str, kind=str, at_ms=int, received_ms=int, question=int, answer=int,
    person=int, payload=str, refused=str, origin=str,
)  # fmt: skip
topic_parts = _table("topic_parts", topic=int, at_ms=int, received_ms=int, payload=str)
people = _table(
    "people", id=int, handle=str, opted_out=bool, away_until=str, hours=str, time_zone=str,
    capacity=int, member_of=str, topics=str, updated_ms=int,
)  # fmt: skip
questions = _table(
    "questions", id=int, title=str, tags=str, asker=int, asked_ms=int, answers=int,
    answered_ms=int, first_person=int, accepted_answer=int, accepted_person=int, body=str,
    origin=str, closed_ms=int,
)  # fmt: skip
answers = _table("answers", id=int, question=int, person=int, at_ms=int)
suggestions = _table(
    "suggestions", id=int, question=int, round=int, created_ms=int, shadow=bool, model=str,
    state=str, people=str, ranking=str, baseline=str, decisions=str, notes=str, confidence=float,
    abstains=str, candidates=int, escalate_ms=int, changed_ms=int, outcome=int, place=int,
    baseline_place=int, resolved_ms=int, asked=int, asked_answered=bool, mode=str,
    sent_ms=int,
)  # fmt: skip
calibration = _table(
    "calibration", day=int, shadow=bool, bin=int, people=int, stated=float, observed=int
)
quotes = _table("quotes", question=int, suggestion=int)
seen_hooks = _table("seen_hooks", digest=str, at_ms=int, keep=bool)
feedback = _table(
    "feedback",
    id=int,
    suggestion=int,
    at_ms=int,
    verdict=str,
    person=int,
    token=int,
    note=str,
    given_by=str,
)
asks = _table("asks", id=int, person=int, suggestion=int, at_ms=int, kind=str, shadow=bool)
outbox = _table(
    "outbox", id=str, suggestion=int, adapter=str, payload=str, state=str, attempts=int,
    next_ms=int, created_ms=int,
)  # fmt: skip
deliveries = _table(
    "deliveries", id=int, message=str, at_ms=int, status=int, error=str, took_ms=int
)
switched_off = _table("switched_off", adapter=str, since_ms=int, why=str)
forgotten = _table("forgotten", digest=str, at_ms=int)
audit = _table("audit", id=int, at_ms=int, who=str, what=str, person=int)
models = _table("models", id=int, name=str, created_ms=int, state=str, judged=str)


def migrations() -> list[tuple[int, str]]:
    """Number and text of every migration, in order."""
    folder = files("atpgraph_qa.service.store").joinpath("migrations")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in found)


def insert_into(connection: Connection, table: Table) -> Any:
    """Return an INSERT that knows ON CONFLICT, which both databases write in their own way."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
