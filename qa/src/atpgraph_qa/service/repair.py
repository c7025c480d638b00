"""Repair a store whose events are dated in the future, by a wrong clock or on purpose."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import delete, select, update

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.service import database_url
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store import outbox, tables
from atpgraph_qa.service.store.database import Database, put_meta
from atpgraph_qa.service.store.suggestions import end_suggestions

WHY = "dated more than a day after it arrived"


def repair(settings: Settings, now_ms: int) -> dict[str, int]:
    """Take events dated more than a day after their arrival out of use; return what was changed.

    The service must be stopped. History is rebuilt from the model and the other events at the next
    start, which therefore needs the model; weights that were learned since are lost.
    """
    Path(settings.store.folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    database = Database(database_url(settings))
    events = tables.events.c
    try:
        database.migrate()
        database.take_charge()
        with database.write(acting=True) as connection:
            ahead = (events.at_ms > events.received_ms + DAY_MS) & events.refused.is_(None)
            rows = connection.execute(
                select(events.seq, events.kind, events.question, events.answer).where(ahead)
            ).all()
            connection.execute(update(tables.events).where(ahead).values(refused=WHY))
            asked = [row.question for row in rows if row.kind == "asked"]
            given = [row.answer for row in rows if row.kind == "answered"]
            connection.execute(delete(tables.questions).where(tables.questions.c.id.in_(asked)))
            connection.execute(delete(tables.answers).where(tables.answers.c.id.in_(given)))
            about = tables.suggestions.c.question.in_(asked)
            ended = end_suggestions(connection, about, "expired", now_ms)
            for question in asked:
                outbox.cancel(connection, question)
            if rows:
                put_meta(connection, "snapshot", "{}")
                put_meta(connection, "base_model", "")
    finally:
        database.close()
    return {"events": len(rows), "questions": len(asked), "suggestions": ended}
