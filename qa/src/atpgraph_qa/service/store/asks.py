"""The table of who was asked when, and the log that rules look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, insert, select

from atpgraph_qa.advisor.policies import WEEK_MS, AskLog
from atpgraph_qa.service.store.tables import asks

KEPT_MS = 8 * WEEK_MS


@dataclass(frozen=True)
class Ask:
    """Somebody was asked something: by a suggestion, by hand, or outside of the service."""

    person: int
    at_ms: int
    kind: str
    shadow: bool
    suggestion: int | None = None


def save_asks(connection: Connection, new: Iterable[Ask]) -> None:
    """Append to the table."""
    rows = [asdict(ask) for ask in new]
    if rows:
        connection.execute(insert(asks), rows)


def load_asks(connection: Connection, now_ms: int, *, shadow: bool) -> AskLog:
    """Return the asks of the last weeks.

    Those of shadow mode count only while the service is in it: its report shows what would have
    happened, with the caps that would have held.
    """
    query = select(asks.c.person, asks.c.at_ms).where(asks.c.at_ms > now_ms - KEPT_MS)
    if not shadow:
        query = query.where(~asks.c.shadow)
    log = AskLog()
    log.record_all([(row.person, row.at_ms) for row in connection.execute(query)])
    return log
