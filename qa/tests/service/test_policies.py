"""The rules that keep quiet: each leaves somebody out, says why, and is recorded."""

from __future__ import annotations

import pytest

from atpgraph_qa.service import tables
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Rules
from qa.tests.service.conftest import NOW, Front, Make


def rules_said(front: Front, number: int) -> dict[str, str]:
    """Rule by person of the first suggestion of a question."""
    found = front.suggestions(question=number)[-1]
    return {str(decision["person"]): decision["rule"] for decision in found["decisions"]}


def asked(front: Front, number: int) -> list[int]:
    """Who is asked in the latest round."""
    return [person["user"] for person in front.suggestions(question=number)[0]["people"]]


def best_of(front: Front) -> int:
    answer = front.call("POST", "/v1/route", {"title": "tomato leaves", "tags": ["tomatoes"]})
    return int(answer.json()["people"][0]["user"])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"opted_out": True}, "opted-out"),
        ({"away_until": "2026-09-21"}, "away"),
        ({"hours": "09:00-12:00"}, "hours"),  # it is 14:13 UTC
        ({"hours": "15:00-02:00"}, "hours"),
        ({"hours": "09:00-15:00", "time_zone": "Asia/Tokyo"}, "hours"),
        ({"capacity": 0}, "capacity"),
    ],
)
def test_a_person_is_left_alone(make_front: Make, change: dict[str, object], rule: str) -> None:
    front = make_front()
    best = best_of(front)
    assert front.call("PATCH", f"/v1/people/{best}", change).status_code == 200
    front.ask(90_001)
    assert best not in asked(front, 90_001)
    assert rules_said(front, 90_001)[str(best)] == rule


@pytest.mark.parametrize(
    "change",
    [{"hours": "09:00-15:00"}, {"hours": "22:00-15:00"}, {"away_until": "2026-09-20"},
     {"hours": "22:00-23:59", "time_zone": "Asia/Tokyo"}],
)  # fmt: skip
def test_a_person_may_be_asked(make_front: Make, change: dict[str, object]) -> None:
    front = make_front()
    best = best_of(front)
    front.call("PATCH", f"/v1/people/{best}", change)
    front.ask(90_001)
    assert best in asked(front, 90_001)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ({"hours": "01:00-02:00"}, "hours"),
        ({"weekdays": ["tue", "wed"]}, "weekday"),
        ({"holidays": ["2026-09-21"]}, "holiday"),
        ({"per_day": 0}, "capacity"),
    ],
)
def test_a_rule_for_everybody(make_front: Make, policy: dict[str, object], rule: str) -> None:
    front = make_front(policy=policy)
    front.ask(90_001)
    (found,) = front.suggestions()
    assert found["people"] == []
    assert found["abstains"].startswith("None of the best 20 may be asked now: 20 ")
    assert {decision["rule"] for decision in found["decisions"]} == {rule}
    assert found["ranking"]  # kept, so that the report can tell how good it would have been


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"groups": ["staff"]}, "are in none of the groups that may be asked"),
        ({"least_answers": 100_000}, "gave fewer than 100000 answers"),
        ({"inactive_days": 0.01}, "the newest answer known here is 1 days old"),
    ],
)
def test_why_nobody_is_even_ranked(make_front: Make, policy: dict[str, object], said: str) -> None:
    front = make_front(policy=policy)
    front.ask(90_001)
    (found,) = front.suggestions()
    assert found["people"] == []
    assert said in found["abstains"]
    assert found["candidates"] == 0


def test_members_of_permitted_groups_are_asked(make_front: Make) -> None:
    front = make_front(policy={"groups": ["staff"], "least_confidence": 0.0})
    front.call("PATCH", "/v1/people/3", {"groups": ["staff", "other"]})
    front.ask(90_001)
    assert asked(front, 90_001) == [3]


def test_every_kind_of_ask_counts(make_front: Make) -> None:
    front = make_front(policy={"rest_hours": 4.0, "mode": "automatic"})
    best = best_of(front)
    assert front.call("POST", f"/v1/people/{best}/asks", {"kind": "by mail"}).status_code == 201
    front.ask(90_001)
    assert rules_said(front, 90_001)[str(best)] == "asked-recently"
    front.clock.pass_hours(4.1)
    front.ask(90_002)
    assert best in asked(front, 90_002)


def test_shadow_asks_count_in_shadow_only(make_front: Make) -> None:
    front = make_front(policy={"per_day": 1, "people": 1})
    front.ask(90_001)
    front.ask(90_002)
    assert asked(front, 90_001) != asked(front, 90_002)
    live = make_front(folder="live", policy={"per_day": 1, "people": 1, "mode": "automatic"})
    best = best_of(live)
    with live.service.database.write() as connection:
        values = {"person": best, "at_ms": NOW, "kind": "suggestion", "shadow": True}
        tables.add(connection, tables.asks, **values)
    live.service.engine.set_mode("automatic", "test")  # reads the asks again
    live.ask(90_001)
    assert asked(live, 90_001) == [best]


def test_silence_is_escalated_and_an_answer_stops_it(make_front: Make) -> None:
    front = make_front(policy={"escalate_hours": 24.0, "escalations": 2})
    front.ask(90_001)
    front.clock.pass_hours(23)
    front.service.run_maintenance()
    assert len(front.suggestions()) == 1
    front.clock.pass_hours(2)
    front.service.run_maintenance()
    second, first = front.suggestions()
    assert second["round"] == 1
    before = {person["user"] for person in first["people"]}
    assert not before & {person["user"] for person in second["people"]}
    assert "asked-before" in {decision["rule"] for decision in second["decisions"]}
    body = {"id": 95_001, "question": 90_001, "user": 3, "at": front.clock.now / 1000}
    front.call("POST", "/v1/answers", body)
    front.service.apply_all()
    front.clock.pass_hours(48)
    front.service.run_maintenance()
    found = front.suggestions()
    assert len(found) == 2
    assert {row["state"] for row in found} == {"answered"}


def test_a_declined_suggestion_goes_on_at_once(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    (found,) = front.suggestions()
    front.call("POST", f"/v1/suggestions/{found['id']}/feedback", {"verdict": "declined"})
    front.service.run_maintenance()
    assert len(front.suggestions()) == 2


def test_nobody_answers_and_it_expires(make_front: Make) -> None:
    front = make_front(policy={"escalations": 0, "expire_days": 3.0})
    front.ask(90_001)
    front.clock.pass_hours(24 * 4)
    front.service.run_maintenance()
    assert front.suggestions()[0]["state"] == "expired"


def test_the_least_recently_asked_is_the_fall_back(make_front: Make) -> None:
    front = make_front(policy={"candidates": 3, "people": 1, "least_confidence": 0.0})
    title = "Why do my tomato leaves curl in the greenhouse?"
    route = {"title": title, "tags": ["tomatoes"], "asker": 7, "top": 3}
    for person in front.call("POST", "/v1/route", route).json()["people"]:
        front.call("PATCH", f"/v1/people/{person['user']}", {"opted_out": True})
    front.ask(90_001)
    first = asked(front, 90_001)
    assert "fallback" in rules_said(front, 90_001).values()
    front.ask(90_002)
    assert asked(front, 90_002) != first  # somebody who was not asked before
    closed = make_front(folder="closed", policy={"candidates": 1, "fallback": False, "people": 1})
    closed.call("PATCH", f"/v1/people/{best_of(closed)}", {"opted_out": True})
    closed.ask(90_001)
    assert asked(closed, 90_001) == []


def test_declared_topics_place_a_newcomer(make_front: Make) -> None:
    front = make_front(policy={"people": 5, "declared_bonus": 20.0, "least_answers": 5})
    front.call("PATCH", "/v1/people/5555", {"topics": ["tomatoes"]})
    front.service.run_maintenance()
    front.ask(90_001)
    assert asked(front, 90_001)[0] == 5555


def test_a_newcomer_who_answers_is_none_any_more(make_front: Make) -> None:
    front = make_front()
    service = front.service
    for user in (5555, 5556):
        front.call("PATCH", f"/v1/people/{user}", {"topics": ["tomatoes"]})
    service.run_maintenance()
    for number in range(5):
        front.ask(90_001 + number)
        body = {"id": 95_001 + number, "question": 90_001 + number, "user": 5555}
        front.call("POST", "/v1/answers", {**body, "at": NOW / 1000})
    service.apply_all()
    assert [person.user for person in service.engine.advisor.newcomers] == [5556]
    front.call("PATCH", "/v1/people/5556", {"topics": []})
    service.run_maintenance()
    assert service.engine.advisor.newcomers == ()
    service.snapshots.write()
    front.call("PATCH", "/v1/people/5556", {"topics": ["tomatoes"]})
    service.run_maintenance()
    service.stop()
    again = Service(service.settings, clock=front.clock)
    assert [person.user for person in again.engine.advisor.newcomers] == [5556]
    again.stop()


def test_old_questions_are_history_not_work(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001, at=(NOW - 72 * 3_600_000) / 1000)
    assert front.suggestions() == []
    assert front.service.engine.advisor.history.records.question_at(90_001) >= 0


def test_weak_evidence_asks_nobody(make_front: Make) -> None:
    front = make_front(policy={"least_confidence": 0.99})
    front.ask(90_001)
    (found,) = front.suggestions()
    assert found["people"] == []
    assert "below 99.0%" in found["abstains"]


def test_shadow_is_the_default() -> None:
    assert Rules().mode == "shadow"


NIGHT = {"hours": "16:00-18:00", "escalate_hours": 24.0}  # it is 14:13


def test_nobody_free_at_night_is_asked_in_the_morning(make_front: Make, database_url: str) -> None:
    front = make_front(database_url, policy={**NIGHT, "mode": "automatic"})

    def later(hours: float) -> None:
        front.clock.pass_hours(hours)
        front.service.run_maintenance()

    front.ask(90_001)
    later(1)
    (found,) = front.suggestions()
    assert (found["people"], found["sent_ms"]) == ([], None)
    later(0.9)  # it is 16:07, but the last attempt was less than an hour ago
    assert asked(front, 90_001) == []
    later(0.2)
    (found,) = front.suggestions()
    assert (found["round"], found["state"]) == (0, "proposed")
    assert (found["people"] != [], found["sent_ms"]) == (True, front.clock.now)
    assert found["abstains"] == ""
    later(2)
    assert asked(front, 90_001) == [person["user"] for person in found["people"]]
    later(24)  # silence: others are asked, as soon as somebody may be asked again
    (second, first) = front.suggestions()
    assert first["people"] == found["people"]
    assert (second["round"], second["people"]) == (1, [])
    later(22)
    (second, first) = front.suggestions()
    assert second["round"] == 1
    assert len(second["people"]) == 3
    assert second["sent_ms"] == front.clock.now
    again = {person["user"] for person in second["people"]}
    assert not again & {person["user"] for person in first["people"]}


def test_in_approve_mode_the_card_shows_them_in_the_morning(make_front: Make) -> None:
    front = make_front(policy={**NIGHT, "mode": "approve"})
    front.ask(90_001)
    front.clock.pass_hours(2)
    front.service.run_maintenance()
    (found,) = front.suggestions()
    assert (found["people"] != [], found["sent_ms"]) == (True, None)
    front.clock.pass_hours(1)
    front.service.run_maintenance()
    assert front.suggestions() == [found]


def test_what_is_not_tried_again(make_front: Make) -> None:
    front = make_front(policy={**NIGHT, "mode": "automatic", "expire_days": 3.0})
    front.ask(90_001)
    front.ask(90_002)
    front.ask(90_003)
    answer = {"id": 95_001, "question": 90_001, "user": 3, "at": front.clock.now / 1000}
    assert front.call("POST", "/v1/answers", answer).status_code == 202
    closed = {"question": 90_002, "state": "closed", "at": front.clock.now / 1000}
    assert front.call("POST", "/v1/closures", closed).status_code == 202
    front.service.apply_all()
    front.clock.pass_hours(73.8)  # 16:01, three days later
    front.service.run_maintenance()
    assert [(row["state"], row["people"]) for row in front.suggestions()] == [
        ("expired", []), ("withdrawn", []), ("answered", []),
    ]  # fmt: skip


def test_weak_evidence_is_not_tried_again(make_front: Make) -> None:
    front = make_front(policy={**NIGHT, "mode": "automatic", "least_confidence": 0.99})
    front.ask(90_001)
    assert front.suggestions()[0]["abstains"].startswith("None of the best 20 may be asked now")
    front.clock.pass_hours(2)
    front.service.run_maintenance()
    assert front.suggestions()[0]["abstains"].startswith("None of the best 20 may be asked now")


def test_what_nobody_could_be_asked_in_the_trial_run_is_not_asked_later(make_front: Make) -> None:
    front = make_front(policy={**NIGHT, "mode": "shadow"})
    front.ask(90_001)
    front.service.engine.set_mode("automatic", "test")
    front.clock.pass_hours(2)
    front.service.run_maintenance()
    assert asked(front, 90_001) == []
