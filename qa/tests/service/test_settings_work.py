"""Settings that no other test turns: each of them changes what it says."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from atpgraph_qa import Advisor
from atpgraph_qa.service import tables
from atpgraph_qa.service.run import config_of, create_app
from qa.tests.service.conftest import NOW, Make

HOUR_MS = 3_600_000


def test_public_url_is_in_messages(make_front: Make) -> None:
    front = make_front(
        server={"public_url": "https://who.example/"}, policy={"mode": "automatic"},
        deliver={"adapters": ["webhook"], "webhook_url": "https://in.example/",
                 "webhook_secrets": ["whsec_eA=="]},
    )  # fmt: skip
    front.ask(90_001)
    with front.service.database.read() as connection:
        payload = connection.execute(select(tables.outbox.c.payload)).scalar_one()
    number = front.suggestions()[0]["id"]
    assert payload["data"]["link"] == f"https://who.example/inbox/{number}"


def test_public_metrics(make_front: Make) -> None:
    assert make_front().client.get("/metrics").status_code == 401
    front = make_front(folder="open", server={"public_metrics": True})
    assert front.client.get("/metrics").status_code == 200


@pytest.mark.parametrize("behind", [False, True])
def test_a_proxy_is_trusted_if_it_is_said(make_front: Make, behind: bool) -> None:
    front = make_front(server={"behind_proxy": behind})
    config = config_of(front.service, create_app(front.service, background=False))
    assert config.proxy_headers is behind
    assert config.forwarded_allow_ips == ["127.0.0.1", "::1"]


def test_when_a_snapshot_is_due(make_front: Make) -> None:
    front = make_front(store={"snapshot_events": 2, "snapshot_minutes": 30.0})
    snapshots = front.service.snapshots
    front.ask(90_001)
    assert not snapshots.due()
    front.ask(90_002)
    assert snapshots.due()  # enough events
    snapshots.write()
    front.ask(90_003)
    assert not snapshots.due()
    front.clock.pass_hours(0.51)
    assert snapshots.due()  # enough time


def test_wrong_tokens_are_slowed_down(make_front: Make) -> None:
    front = make_front(limits={"failures_per_minute": 3.0})
    headers = {"authorization": "Bearer atp_wrong"}
    seen = [front.client.get("/v1/people", headers=headers).status_code for _ in range(5)]
    assert seen == [401, 401, 401, 429, 429]
    assert front.call("GET", "/v1/people").status_code == 200  # others are not


def test_a_login_ends(make_front: Make) -> None:
    front = make_front(limits={"session_hours": 2.0})
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    assert front.client.get("/inbox").status_code == 200
    front.clock.pass_hours(2.1)
    assert front.client.get("/inbox").headers["location"] == "/login"


def test_writers_wait_when_too_many_events_do(make_front: Make) -> None:
    front = make_front(limits={"queue_events": 2})
    bodies = [{"id": 90_001 + k, "title": "beans", "at": NOW / 1000} for k in range(4)]
    seen = [front.call("POST", "/v1/questions", body) for body in bodies]
    assert [answer.status_code for answer in seen] == [202, 202, 202, 503]
    assert int(seen[-1].headers["retry-after"]) > 0
    front.service.apply_all()
    assert front.call("POST", "/v1/questions", bodies[-1]).status_code == 202


def test_what_is_stale_is_not_routed(make_front: Make) -> None:
    front = make_front(policy={"stale_hours": 3.0})
    front.ask(90_001, at=(NOW - 4 * HOUR_MS) / 1000)
    assert front.suggestions() == []
    front.ask(90_002, at=(NOW - 2 * HOUR_MS) / 1000)
    assert len(front.suggestions()) == 1


def test_it_learns_again_by_itself(make_front: Make) -> None:
    front = make_front(retrain={"every_days": 7.0})
    trainer = front.service.trainer
    front.service.run_maintenance()
    assert not trainer.running
    front.clock.pass_hours(7 * 24 + 1)
    front.service.run_maintenance()
    assert trainer.running
    trainer.stop()


def test_how_long_half_a_topic_waits(make_front: Make) -> None:
    from atpgraph_qa.service.adapters.base import Incoming
    from atpgraph_qa.service.events import Arrival
    from atpgraph_qa.timeline.events import Asked

    front = make_front(hooks={"discourse_wait_seconds": 600.0})
    half = Asked(90_001, "Why do tomato leaves curl?", tags=["tomatoes"], asker=7, at_ms=NOW)
    front.service.receive(Incoming(topic_parts=[Arrival.of(half)]))
    for hours, made in ((0.1, 0), (0.1, 1)):  # six minutes, then twelve
        front.clock.pass_hours(hours)
        front.service.run_maintenance()
        front.service.apply_all()
        assert len(front.suggestions()) == made


def test_a_job_that_fails_does_not_stop_the_others(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = make_front(store={"snapshot_events": 1})
    front.ask(90_001)

    def broken() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(front.service.suggester, "escalate", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        front.service.run_maintenance()
    assert front.service.snapshots.written_seq == 1


def test_a_question_that_cannot_be_ranked_does_not_stop_later_events(
    make_front: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    front = make_front()
    ask, record = Advisor.ask, front.service.suggester._record

    def broken(*given: Any, **more: Any) -> Any:
        if given[1].id == 90_001:
            raise RuntimeError("a bug")
        return ask(*given, **more)

    def unstored(connection: Any, question: int, *rest: Any) -> None:
        record(connection, question, *rest)
        if question == 90_002:
            raise RuntimeError("a bug")

    monkeypatch.setattr(Advisor, "ask", broken)
    monkeypatch.setattr(front.service.suggester, "_record", unstored)
    for number in (90_001, 90_002, 90_003):
        front.ask(number)
    assert [row["question"] for row in front.suggestions()] == [90_003]
    assert front.service.engine.advisor.history.records.question_at(90_001) >= 0
    bugs = [record for record in caplog.records if record.message == "bug"]
    assert [record.facts["seq"] for record in bugs] == [1, 2]  # type: ignore[attr-defined]


def test_a_question_that_cannot_be_ranked_again_does_not_stop_the_others(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = make_front()
    front.ask(90_001)
    front.ask(90_002)
    ask = Advisor.ask

    def broken(*given: Any, **more: Any) -> Any:
        if given[1].id == 90_001:
            raise RuntimeError("a bug")
        return ask(*given, **more)

    monkeypatch.setattr(Advisor, "ask", broken)
    front.clock.pass_hours(25)
    front.service.run_maintenance()
    assert [(row["question"], row["round"]) for row in front.suggestions()] == [
        (90_002, 1), (90_002, 0), (90_001, 0),
    ]  # fmt: skip
