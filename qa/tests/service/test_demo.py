"""The simulated community of ``atp server run --demo``."""

from __future__ import annotations

from itertools import islice
from threading import Event

import pytest
from sqlalchemy import func, select

from atpgraph_qa.service import demo, tables
from atpgraph_qa.service.demo import PAST, fill_past, live, make_community, play
from qa.tests.service.conftest import DAY_MS, NOW, Make


def test_the_past_is_spread_over_two_weeks(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PAST", 14)
    front = make_front()
    fill_past(front.service, make_community())
    days = {(NOW - row["created_ms"]) // DAY_MS for row in front.suggestions(limit=100)}
    assert len(days) == 14


def test_traffic_goes_on_where_it_was(make_front: Make) -> None:
    """After a restart, what was played before is not waited for again."""
    front = make_front()
    community = make_community()
    questions = list(islice(live(community), PAST, PAST + 4))
    play(front.service, questions[:3], 0.0, Event())
    front.service.apply_all()
    assert len(front.suggestions()) == 3
    assert front.service.engine.seq == sum(len(question) for question in questions[:3])
    play(front.service, questions, 0.0, Event())
    front.service.apply_all()
    assert len(front.suggestions()) == 4
    with front.service.database.read() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.events)).scalar()
    assert stored == sum(len(question) for question in questions)
