"""The API as a caller sees it, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from atpgraph_qa.service import schemas
from qa.tests.service.conftest import NOW, Front, Make


def test_a_question_becomes_a_suggestion_once(front: Front) -> None:
    first, again = front.ask(90_001), front.ask(90_001)
    assert not first["duplicate"]
    assert again["duplicate"]
    assert again["seq"] is None
    (found,) = front.suggestions(question=90_001)
    schemas.SuggestionOut.model_validate(found)
    assert found["state"] == "proposed"
    assert found["shadow"]
    assert len(found["people"]) == 2
    assert found["people"][0]["reasons"]
    assert found["ranking"]
    assert found["baseline"]
    asked = [d["person"] for d in found["decisions"] if d["rule"] == "asked"]
    assert asked == [person["user"] for person in found["people"]]
    assert 7 not in asked


def test_an_answer_closes_it_and_says_where_the_person_stood(front: Front) -> None:
    front.ask(90_001)
    (found,) = front.suggestions()
    second = found["ranking"][1]["person"]
    at = NOW / 1000
    body = {"id": 95_001, "question": 90_001, "user": second, "at": at}
    assert front.call("POST", "/v1/answers", body).status_code == 202
    accept = {"question": 90_001, "answer": 95_001, "at": at}
    assert front.call("POST", "/v1/acceptances", accept).status_code == 202
    vote = {"id": "v1", "answer": 95_001, "value": 1, "at": at}
    assert front.call("POST", "/v1/votes", vote).status_code == 202
    front.service.apply_all()
    (found,) = front.suggestions(state="answered")
    assert found["place"] == 2
    assert found["outcome"] == second
    assert found["answers"] == 1
    quality = front.call("GET", "/v1/metrics/quality").json()
    schemas.QualityOut.model_validate(quality)
    assert quality["mrr"] == 0.5
    assert quality["answered"] == 1
    assert quality["coverage"] == 1.0
    assert quality["calibration"]
    assert quality["load"]["asks"] == 2


def test_route_stores_nothing(front: Front) -> None:
    answer = front.call("POST", "/v1/route", {"title": "tomato leaves", "tags": ["tomatoes"]})
    assert answer.status_code == 200
    found = schemas.RouteOut.model_validate(answer.json())
    assert len(found.people) == 2
    assert found.people[0].reasons
    assert found.decisions
    assert front.suggestions() == []
    assert front.call("POST", "/v1/route", {"title": "  "}).status_code == 422


def test_people_are_read_changed_and_listed(front: Front) -> None:
    front.ask(90_001)
    (found,) = front.suggestions()
    best = found["people"][0]["user"]
    path = f"/v1/people/{best}"
    view = schemas.PersonOut(**front.call("GET", path).json())
    assert view.answers > 0
    assert view.asked_week == 1
    assert view.may_be_asked
    change = {"opted_out": True, "topics": ["roses"], "capacity": 3, "hours": "09:00-17:00"}
    view = schemas.PersonOut(**front.call("PATCH", path, change).json())
    assert view.opted_out
    assert view.topics == ["roses"]
    assert view.capacity == 3
    assert not view.may_be_asked
    assert "not want" in view.why_not
    front.ask(90_002)
    latest = front.suggestions(question=90_002)[0]
    assert best not in [person["user"] for person in latest["people"]]
    assert {"person": best, "rule": "opted-out"}.items() <= latest["decisions"][0].items()
    listed = front.call("GET", "/v1/people?limit=1").json()
    schemas.Page[schemas.PersonOut].model_validate(listed)
    more = front.call("GET", f"/v1/people?limit=50&cursor={listed['cursor']}").json()
    assert best in [p["id"] for p in listed["items"] + more["items"]]
    assert front.call("GET", "/v1/people/123456789").status_code == 404


def test_pages_by_cursor(front: Front) -> None:
    for number in range(5):
        front.ask(90_001 + number)
    seen, cursor = [], ""
    while True:
        page = front.call("GET", f"/v1/suggestions?limit=2&cursor={cursor}").json()
        schemas.Page[schemas.SuggestionOut].model_validate(page)
        seen += [item["question"] for item in page["items"]]
        cursor = page["cursor"]
        if not cursor:
            break
    assert seen == [90_005, 90_004, 90_003, 90_002, 90_001]
    assert front.call("GET", "/v1/suggestions?cursor=nonsense").status_code == 422


@pytest.mark.parametrize("verdict", ["accepted", "declined"])
def test_feedback(front: Front, verdict: str) -> None:
    front.ask(90_001)
    (found,) = front.suggestions()
    path = f"/v1/suggestions/{found['id']}/feedback"
    answer = front.call("POST", path, {"verdict": verdict, "note": "<b>so</b>"})
    after = schemas.SuggestionOut.model_validate(answer.json())
    assert after.state == verdict
    assert after.feedback[0].note == "<b>so</b>"
    assert (
        front.call("POST", "/v1/suggestions/9999/feedback", {"verdict": verdict}).status_code == 404
    )


def test_reassigning_asks_somebody_else(front: Front) -> None:
    front.ask(90_001)
    (found,) = front.suggestions()
    path = f"/v1/suggestions/{found['id']}/feedback"
    assert front.call("POST", path, {"verdict": "reassigned"}).status_code == 422
    assert front.call("POST", path, {"verdict": "reassigned", "person": 3}).status_code == 200
    assert front.call("GET", "/v1/people/3").json()["asked_day"] == 1


def test_an_acceptance_counts_from_midnight_without_a_post(front: Front) -> None:
    front.ask(90_001)
    at = front.clock.now / 1000
    front.call("POST", "/v1/answers", {"id": 95_001, "question": 90_001, "user": 3, "at": at})
    front.call("POST", "/v1/acceptances", {"question": 90_001, "answer": 95_001, "at": at})
    front.service.apply_all()

    def won() -> float:
        history = front.service.engine.advisor.history
        return float(history.n_won[history.codes([3])[0]])

    before, last = won(), front.service.engine.last_post_ms
    front.clock.pass_hours(9)
    front.service.run_maintenance()
    assert won() == before
    front.clock.pass_hours(1)
    front.service.run_maintenance()
    assert won() == before + 1
    assert front.service.engine.last_post_ms == last


def test_a_repeated_request_has_one_effect(front: Front) -> None:
    front.ask(90_001)
    (found,) = front.suggestions()
    path = f"/v1/suggestions/{found['id']}/feedback"
    key = {"idempotency-key": "k1"}
    first = front.call("POST", path, {"verdict": "comment", "note": "a"}, **key)
    again = front.call("POST", path, {"verdict": "comment", "note": "a"}, **key)
    assert first.json() == again.json()
    assert len(again.json()["feedback"]) == 1
    # Another token may use the same key.
    mine = front.call("POST", path, {"verdict": "comment", "note": "b"}, scope="write", **key)
    assert len(mine.json()["feedback"]) == 2
    for _ in range(2):
        asked = front.call("POST", "/v1/people/3/asks", {"kind": "mail"}, **key)
        assert asked.status_code == 201
    assert front.call("GET", "/v1/people/3").json()["asked_day"] == 1


def problem(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:atpgraph:problem:")
    detail: str = body["detail"]
    return detail


def test_errors_are_problem_details(front: Front) -> None:
    problem(front.client.get("/v1/suggestions"), 401)
    problem(front.client.get("/v1/suggestions", headers={"authorization": "Bearer x"}), 401)
    problem(front.call("GET", "/v1/suggestions", scope="route"), 403)
    problem(front.call("GET", "/v1/nothing"), 404)
    problem(front.call("PUT", "/v1/route", {}), 405)
    said = problem(front.call("POST", "/v1/questions", {"id": -1, "title": "secret words"}), 422)
    assert "body.id" in said
    assert "secret" not in said
    sent = {"authorization": f"Bearer {front.tokens['admin']}", "content-type": "application/json"}
    problem(front.client.post("/v1/route", content=b"{not json", headers=sent), 422)


def test_requests_are_limited(make_front: Make) -> None:
    front = make_front(limits={"body_bytes": 2048, "burst": 5, "per_second": 0.5})
    big = front.call("POST", "/v1/route", {"title": "x", "body": "y" * 3000})
    assert "2048" in problem(big, 413)

    def parts() -> Any:
        yield b'{"title": "'
        yield b"x" * 3000

    sent = {"authorization": f"Bearer {front.tokens['admin']}"}
    problem(front.client.post("/v1/route", content=parts(), headers=sent), 413)
    for _ in range(5):
        front.call("GET", "/v1/people/3", scope="read")
    late = front.call("GET", "/v1/people/3", scope="read")
    problem(late, 429)
    assert int(late.headers["retry-after"]) >= 1
    assert front.call("GET", "/v1/people/3", scope="admin").status_code == 200


def test_a_full_queue_refuses_routes_and_still_takes_events(make_front: Make) -> None:
    front = make_front(limits={"queue_routes": 2})
    pool, hold = front.service.engine.limiter, threading.Event()

    async def fill() -> Any:
        held = [asyncio.create_task(pool.run(hold.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        try:
            refused = await asyncio.to_thread(front.call, "POST", "/v1/route", {"title": "a"})
            body = {"id": 90_001, "title": "tomatoes", "at": NOW / 1000}
            taken = await asyncio.to_thread(front.call, "POST", "/v1/questions", body)
        finally:
            hold.set()
        await asyncio.gather(*held)
        return refused, taken

    refused, taken = asyncio.run(fill())
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert taken.status_code == 202
    assert front.call("POST", "/v1/route", {"title": "a"}).status_code == 200


def test_tokens_are_made_and_revoked(front: Front) -> None:
    made = front.call("POST", "/v1/tokens", {"name": "forum", "scopes": ["write", "read"]})
    token = schemas.TokenOut.model_validate(made.json())
    assert token.scopes == ["read", "write"]
    front.tokens["new"] = token.token
    assert front.call("GET", "/v1/people/3", scope="new").status_code == 200
    assert front.call("DELETE", f"/v1/tokens/{token.id}").status_code == 200
    assert front.call("GET", "/v1/people/3", scope="new").status_code == 401
    assert front.call("DELETE", f"/v1/tokens/{token.id}").status_code == 404


def test_health_needs_no_token_and_metrics_do(front: Front) -> None:
    assert front.client.get("/livez").json() == {"status": "alive"}
    assert front.client.get("/readyz").json() == {"status": "ready"}
    problem(front.client.get("/metrics"), 401)
    front.ask(90_001)
    text = front.call("GET", "/metrics", scope="read").text
    assert "atp_events_applied 1.0\n" in text
    assert 'atp_suggestions{state="proposed"} 1.0' in text
    assert 'method="POST",route="/v1/questions",status="202"} 1.0' in text


def test_the_openapi_document_has_examples(front: Front) -> None:
    document = front.call("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.")
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("In"):
            assert schema["examples"], name
    problem(front.client.get("/openapi.json"), 401)


def test_no_origin_is_allowed_by_default(make_front: Make) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    closed = make_front()
    answer = closed.client.options("/v1/route", headers=headers)
    assert "access-control-allow-origin" not in answer.headers
    opened = make_front(folder="other", server={"cors_origins": ["https://site.example"]})
    headers["origin"] = "https://site.example"
    answer = opened.client.options("/v1/route", headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://site.example"


def test_the_asker_has_no_place_in_the_ranking(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    best = front.suggestions()[0]["ranking"][0]["person"]
    front.ask(90_002, asker=best)
    ranked = [entry["person"] for entry in front.suggestions()[0]["ranking"]]
    assert ranked
    assert best not in ranked
