"""The simulated community of ``atp server run --demo``."""

from __future__ import annotations

from itertools import islice

from atpgraph_qa.service.demo import Play, Traffic
from qa.tests.service.conftest import DAY_MS, NOW, Front, Make, TestClient


def _traffic(front: Front, play: Play) -> Traffic:
    made = Traffic("http://service", front.tokens["write"], play, pace_s=0.0, clock=front.clock)
    made.client = TestClient(front.client.app, headers=dict(made.client.headers))
    return made


def test_traffic_goes_on_where_it_was(make_front: Make) -> None:
    """After a restart, what was played before is not waited for again."""
    front = make_front()
    play = Play.make(NOW - 15 * DAY_MS)
    questions = list(islice(play.live(), 4))
    first = _traffic(front, play)
    assert [first._play(*question) for question in questions[:3]] == [True] * 3
    front.service.apply_all()
    assert len(front.suggestions()) == 3
    assert front.service.engine.seq == sum(
        1 + len(given) + (best >= 0) for _, given, best in questions[:3]
    )
    again = _traffic(front, play)
    assert [again._play(*question) for question in questions] == [False] * 3 + [True]
