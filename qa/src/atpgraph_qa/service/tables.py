"""The tables for SQLAlchemy, and the few statements on rows that other modules use.

The numbered SQL files in ``migrations/`` create the tables. Times are milliseconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

METADATA = sa.MetaData()
Row = dict[str, Any]


class Json(sa.TypeDecorator[Any]):
    """Lists and objects, stored as text in one form, so that the database can search for parts."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Return the text; a value that is text already comes from a backup of 0.2."""
        return value if value is None or isinstance(value, str) else json.dumps(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        """Return the list or object."""
        return None if value is None else json.loads(value)


WHO = sa.BigInteger()  # a user id, which is removed when the person is forgotten
# Text that people wrote, which may mention somebody; in the second, within lists and objects.
WORDS, JSON_WORDS = sa.Text(), Json()
_PLAIN = {int: sa.BigInteger, str: sa.Text, bool: sa.Boolean, float: sa.Double, list: Json}


def _table(name: str, keys: tuple[str, ...] = ("id",), /, **columns: Any) -> Table:
    made = [
        sa.Column(column, _PLAIN.get(kind, kind), primary_key=column in keys)
        for column, kind in columns.items()
    ]
    if columns[keys[0]] is int:  # SQLite numbers rows by itself only where the key is an INTEGER
        made[0].type = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return Table(name, METADATA, *made)


meta = _table("meta", ("name",), name=str, value=str)
tokens = _table(
    "tokens", id=int, name=str, digest=str, scopes=str, created_ms=int, used_ms=int, revoked_ms=int
)
sessions = _table("sessions", ("digest",), digest=str, token=int, csrf=str, expires_ms=int)
events = _table(
    "events", ("seq",), seq=int, name=str, kind=str, at_ms=int, received_ms=int, question=int,
    answer=int, person=WHO, payload=JSON_WORDS, refused=str, origin=list,
)  # fmt: skip
topic_parts = _table(
    "topic_parts", ("topic",), topic=int, at_ms=int, received_ms=int, payload=JSON_WORDS
)
people = _table(
    "people", id=int, handle=str, opted_out=bool, away_until=str, hours=str, time_zone=str,
    capacity=int, member_of=list, topics=list, updated_ms=int,
)  # fmt: skip
questions = _table(
    "questions", id=int, title=WORDS, tags=list, asker=WHO, asked_ms=int, answers=int,
    answered_ms=int, body=WORDS,
    origin=list, closed_ms=int,
)  # fmt: skip
answers = _table("answers", id=int, question=int, person=WHO, at_ms=int)
suggestions = _table(
    "suggestions", id=int, question=int, round=int, created_ms=int, shadow=bool, model=str,
    state=str, people=JSON_WORDS, ranking=list, baseline=list, decisions=list, notes=list,
    confidence=float, abstains=str, candidates=int, escalate_ms=int, changed_ms=int, outcome=WHO,
    place=int, baseline_place=int, resolved_ms=int, asked=int, asked_answered=bool, mode=str,
    sent_ms=int,
)  # fmt: skip
calibration = _table(
    "calibration", ("day", "shadow", "bin"), day=int, shadow=bool, bin=int, people=int,
    stated=float, observed=int,
)  # fmt: skip
quotes = _table("quotes", ("question", "suggestion"), question=int, suggestion=int)
seen = _table("seen", ("digest",), digest=str, at_ms=int, keep=bool)
feedback = _table(
    "feedback", id=int, suggestion=int, at_ms=int, verdict=str, person=WHO, note=WORDS,
    given_by=str,
)  # fmt: skip
asks = _table("asks", id=int, person=WHO, suggestion=int, at_ms=int, kind=str, shadow=bool)
outbox = _table(
    "outbox", id=str, suggestion=int, adapter=str, payload=JSON_WORDS, state=str, attempts=int,
    next_ms=int, created_ms=int,
)  # fmt: skip
deliveries = _table(
    "deliveries", id=int, message=str, at_ms=int, status=int, error=str, took_ms=int
)
switched_off = _table("switched_off", ("adapter",), adapter=str, since_ms=int, why=str)
forgotten = _table("forgotten", ("digest",), digest=str, at_ms=int)
audit = _table("audit", id=int, at_ms=int, who=str, what=WORDS, person=WHO)
models = _table("models", id=int, name=str, created_ms=int, state=str, judged=list)


def find(connection: Connection, query: Any) -> list[Row]:
    """Return the rows of a query."""
    return [dict(row._mapping) for row in connection.execute(query)]


def _where(table: Table, which: Any) -> Any:
    """Return a condition; a plain value is the key of a row."""
    return which if isinstance(which, sa.ClauseElement) else next(iter(table.primary_key)) == which


def find_one(connection: Connection, table: Table, which: Any) -> Row | None:
    """Return a row of a table, None if there is none; `which` is a condition or a key."""
    row = connection.execute(select(table).where(_where(table, which))).first()
    return None if row is None else dict(row._mapping)


def insert_into(connection: Connection, table: Table) -> Any:
    """Return an INSERT with the database's own form of ON CONFLICT."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


def add(connection: Connection, table: Table, **values: Any) -> Any:
    """Insert a row; return its key, None if there is a row with the same unique values."""
    made = insert_into(connection, table).values(**values).on_conflict_do_nothing()
    return connection.execute(made.returning(next(iter(table.primary_key)))).scalar()


def save(connection: Connection, table: Table, **values: Any) -> None:
    """Insert a row, or replace these values in the row that has its key."""
    made = insert_into(connection, table).values(**values)
    keys = [column.name for column in table.primary_key]
    rest = {name: made.excluded[name] for name in values if name not in keys}
    connection.execute(made.on_conflict_do_update(index_elements=keys, set_=rest))


def change(connection: Connection, table: Table, which: Any, **values: Any) -> int:
    """Set values in some rows (`which` is a condition or a key); return how many."""
    if not values:  # UPDATE without columns is not valid SQL
        return 0
    made = sa.update(table).where(_where(table, which)).values(**values)
    return int(connection.execute(made).rowcount)


def change_each(connection: Connection, table: Table, rows: Sequence[Row], *names: str) -> int:
    """Update these columns in many rows, each with its own values; return the number of rows."""
    key = next(iter(table.primary_key))
    made = sa.update(table).where(key == sa.bindparam("_key"))
    made = made.values({name: sa.bindparam(f"_{name}") for name in names})
    values = [{"_key": r[key.name], **{f"_{name}": r[name] for name in names}} for r in rows]
    if values:
        connection.execute(made, values)
    return len(values)


def remove(connection: Connection, table: Table, which: Any) -> int:
    """Delete some rows (`which` is a condition or a key); return how many."""
    return int(connection.execute(sa.delete(table).where(_where(table, which))).rowcount)


def is_new(connection: Connection, digest: str, now_ms: int, keep: bool = False) -> bool:
    """Return whether no request had this digest, if any, in the last day (`keep`: ever)."""
    values = {"digest": digest, "at_ms": now_ms, "keep": keep}
    return not digest or add(connection, seen, **values) is not None


def get_meta(connection: Connection, name: str, default: str = "") -> str:
    """Return a value of the table ``meta``."""
    row = find_one(connection, meta, name)
    return default if row is None else str(row["value"])


def put_meta(connection: Connection, name: str, value: object) -> None:
    """Set a value of the table ``meta``."""
    save(connection, meta, name=name, value=str(value))


def note(
    connection: Connection, now_ms: int, who: str, what: str, person: int | None = None
) -> None:
    """Append to the audit log; `person` is removed from the entry when they are forgotten."""
    add(connection, audit, at_ms=now_ms, who=who, what=what, person=person)
