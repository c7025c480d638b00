"""Who did what, and when: a log that is only appended to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select

from atpgraph_qa.service.store.tables import audit


def note(
    connection: Connection, now_ms: int, who: str, what: str, person: int | None = None
) -> None:
    """Append an entry; `person` is whom it is about, so that it goes when they are forgotten."""
    connection.execute(insert(audit).values(at_ms=now_ms, who=who, what=what, person=person))


def entries(connection: Connection, limit: int = 100) -> list[dict[str, Any]]:
    """Return the newest entries first."""
    rows = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(limit))
    return [dict(row._mapping) for row in rows]
