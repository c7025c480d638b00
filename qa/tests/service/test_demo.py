"""The simulated community of ``atp server run --demo``."""

from __future__ import annotations

from itertools import islice

import pytest

from atpgraph_qa.service import demo
from atpgraph_qa.service.demo import PAST, Traffic, fill_past, live, make_community
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
    first = Traffic(front.service, community, pace_s=0.0)
    assert [first.play(question) for question in questions[:3]] == [True] * 3
    front.service.apply_all()
    assert len(front.suggestions()) == 3
    assert front.service.engine.seq == sum(len(question) for question in questions[:3])
    again = Traffic(front.service, community, pace_s=0.0)
    assert [again.play(question) for question in questions] == [False] * 3 + [True]
