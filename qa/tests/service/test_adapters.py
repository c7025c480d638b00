"""Discourse, Slack and signed events, in the formats these tools document."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest

from atpgraph_qa.service import tables
from atpgraph_qa.service.adapters import base as signing
from atpgraph_qa.service.database import DatabaseGoneError
from qa.tests.service.conftest import NOW, Front, Make
from qa.tests.service.receiver import receiver

SECRET, KEY = "forum secret", "whsec_c2VjcmV0IGtleSBvZiBldmVudHM="
FORUM = "https://forum.example.org"
AT = "2026-09-21T14:10:00.000Z"


@pytest.fixture
def forum(make_front: Make, database_url: str) -> Front:
    hooks = {"discourse_secret": SECRET, "discourse_instance": FORUM, "slack_secret": "s",
             "generic_secrets": [KEY], "discourse_categories": ["5"]}  # fmt: skip
    return make_front(database_url, hooks=hooks)


def discourse(front: Front, event: str, content: dict[str, Any], **headers: str) -> Any:
    body = json.dumps(content).encode()
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    sent = {
        "x-discourse-instance": FORUM, "x-discourse-event-id": "17",
        "x-discourse-event-type": event.partition("_")[0], "x-discourse-event": event,
        "x-discourse-event-signature": f"sha256={mac}", "content-type": "application/json",
        **headers,
    }  # fmt: skip
    return front.client.post("/v1/hooks/discourse", content=body, headers=sent)


def topic(number: int, **more: Any) -> dict[str, Any]:
    entry = {
        "id": number, "title": "Why do tomato leaves curl?", "tags": ["tomatoes"],
        "created_at": AT, "archetype": "regular", "category_id": 5, "user_id": 7,
        "created_by": {"id": 7, "username": "seven"}, **more,
    }  # fmt: skip
    return {"topic": entry}


def post(number: int, topic: int, place: int, user: int, **more: Any) -> dict[str, Any]:
    entry = {
        "id": number, "topic_id": topic, "post_number": place, "post_type": 1, "user_id": user,
        "username": f"name{user}", "created_at": AT, "cooked": "<p>In the greenhouse.</p>",
        "topic_title": "Why do tomato leaves curl?", "topic_archetype": "regular",
        "category_id": 5, "primary_group_name": "gardeners", **more,
    }  # fmt: skip
    return {"post": entry}


def test_text_that_databases_reject_is_cleaned(forum: Front) -> None:
    odd = topic(90_001, title="Half a \ud83d smile\0", tags=["\udc00tag"])
    assert discourse(forum, "topic_created", odd).status_code == 202
    assert discourse(forum, "post_created", post(70_001, 90_001, 1, 7)).json()["events"] == 1
    forum.service.apply_all()
    (found,) = forum.suggestions()
    assert (found["title"], found["tags"]) == ("Half a ? smile", ["?tag"])


@pytest.mark.parametrize("first", ["topic", "post"])
def test_a_topic_becomes_a_question_of_both_halves(forum: Front, first: str) -> None:
    topic_parts = [("topic_created", topic(90_001)), ("post_created", post(70_001, 90_001, 1, 7))]
    one, two = topic_parts if first == "topic" else topic_parts[::-1]
    assert discourse(forum, *one).json() == {
        "events": 0, "duplicates": 0, "forgotten": 0, "feedback": 0
    }  # fmt: skip
    assert discourse(forum, *one, **{"x-discourse-event-id": "18"}).json()["events"] == 0
    assert discourse(forum, *two).json()["events"] == 1
    assert discourse(forum, *two).json()["events"] == 0  # again, as a retry would
    forum.service.apply_all()
    (found,) = forum.suggestions()
    assert found["question"] == 90_001
    assert found["tags"] == ["tomatoes"]
    assert forum.service.engine.directory[7].handle in ("seven", "name7")


def test_a_post_that_does_not_name_its_topic_keeps_the_title(forum: Front) -> None:
    discourse(forum, "topic_created", topic(90_001))
    discourse(forum, "post_created", post(70_001, 90_001, 1, 7, topic_title=None))
    forum.service.apply_all()
    (found,) = forum.suggestions()
    assert found["title"] == "Why do tomato leaves curl?"


def test_a_lonely_half_is_taken_after_a_while(forum: Front) -> None:
    discourse(forum, "topic_created", topic(90_001))
    forum.service.run_maintenance()
    forum.service.apply_all()
    assert forum.suggestions() == []
    forum.clock.pass_hours(0.1)
    forum.service.run_maintenance()
    forum.service.apply_all()
    assert len(forum.suggestions()) == 1
    assert discourse(forum, "post_created", post(70_001, 90_001, 1, 7)).json()["events"] == 0


def test_posts_solutions_and_likes(forum: Front) -> None:
    discourse(forum, "topic_created", topic(90_001))
    # The answer comes before the question is whole, the solution before the answer is applied.
    assert discourse(forum, "post_created", post(70_002, 90_001, 2, 3)).json()["events"] == 1
    forum.service.apply_all()
    discourse(forum, "post_created", post(70_001, 90_001, 1, 7))
    assert discourse(forum, "accepted_solution", {"solved": post(70_002, 90_001, 2, 3)["post"]})
    like = {"like": {"post": {"id": 70_002, "post_number": 2}, "user": {"id": 8}}}
    assert discourse(forum, "post_liked", like).json()["events"] == 1
    assert discourse(forum, "post_liked", like).json()["duplicates"] == 1
    forum.service.apply_all()
    (found,) = forum.suggestions()
    assert found["state"] == "answered"
    assert found["outcome"] == 3
    history = forum.service.engine.advisor.history
    assert history.records.answer_at(10**9 + 70_002) >= 0
    assert forum.service.engine.directory[3].groups == ("gardeners",)


def test_a_hook_that_failed_half_way_is_taken_again(
    forum: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    discourse(forum, "topic_created", topic(90_001))
    discourse(forum, "post_created", post(70_001, 90_001, 1, 7))
    edited = topic(90_001, title="Another title")

    def gone(*_: Any) -> None:
        raise DatabaseGoneError(503, "The database does not answer.", wait=5)

    with monkeypatch.context() as patched:
        patched.setattr(forum.service.engine, "append", gone)
        assert discourse(forum, "topic_edited", edited).status_code == 503
    assert discourse(forum, "topic_edited", edited).json()["events"] == 1
    assert discourse(forum, "topic_edited", edited).json()["duplicates"] == 1


def test_a_topic_that_moves_to_another_category_is_not_asked_about(forum: Front) -> None:
    discourse(forum, "topic_created", topic(90_001))
    discourse(forum, "post_created", post(70_001, 90_001, 1, 7))
    forum.service.apply_all()
    # A message without a category does not say that the topic moved.
    assert discourse(forum, "topic_edited", topic(90_001, category_id=None)).json()["events"] == 0
    moved = topic(90_001, category_id=9)
    assert discourse(forum, "topic_edited", moved).json()["events"] == 1
    assert discourse(forum, "topic_edited", moved).json()["duplicates"] == 1
    forum.service.apply_all()
    forum.clock.pass_hours(25)
    forum.service.run_maintenance()
    assert [row["state"] for row in forum.suggestions()] == ["withdrawn"]
    discourse(forum, "topic_status_updated", topic(90_001, closed=False))  # moved back, reopened
    forum.service.apply_all()
    assert [row["state"] for row in forum.suggestions()] == ["proposed"]


@pytest.mark.parametrize(
    ("event", "content"),
    [
        ("topic_created", topic(1, archetype="private_message")),
        ("topic_created", topic(1, category_id=9)),
        ("post_created", post(2, 1, 2, 3, topic_archetype="private_message")),
        ("post_created", post(2, 1, 2, 3, post_type=4)),
        ("post_edited", post(2, 1, 2, 3)),
        ("topic_pinned_status_updated", topic(1)),
        ("ping", {"ping": "OK"}),
    ],
)
def test_what_is_nothing_to_us(make_front: Make, event: str, content: dict[str, Any]) -> None:
    hooks = {"discourse_secret": SECRET, "discourse_categories": ["5"]}
    answer = discourse(make_front(hooks=hooks), event, content)
    assert answer.status_code == 202
    assert answer.json()["events"] == 0


def test_forged_hooks_are_refused(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET, "discourse_instance": FORUM})
    wrong = {"x-discourse-event-signature": "sha256=" + "0" * 64}
    assert discourse(front, "topic_created", topic(1), **wrong).status_code == 401
    other = {"x-discourse-instance": "https://evil.example"}
    assert discourse(front, "topic_created", topic(1), **other).status_code == 401
    closed = make_front(folder="closed")  # no secret is set: nobody can sign
    body, empty = b"{}", hmac.new(b"", b"{}", hashlib.sha256).hexdigest()
    sent = {"x-discourse-event-signature": f"sha256={empty}", "x-discourse-event": "ping"}
    assert closed.client.post("/v1/hooks/discourse", content=body, headers=sent).status_code == 401
    for source in ("slack", "generic"):
        assert closed.client.post(f"/v1/hooks/{source}", content=body).status_code == 401
    assert closed.client.post("/v1/hooks/other", content=body).status_code == 404


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"[" * 50_000, b'{"post": 3}', b'{"post": {"topic_id": "x"}}']
)
def test_signed_nonsense_is_refused_politely(make_front: Make, content: bytes) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})
    mac = hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()
    sent = {"x-discourse-event": "post_created", "x-discourse-event-signature": f"sha256={mac}"}
    answer = front.client.post("/v1/hooks/discourse", content=content, headers=sent)
    assert answer.status_code == 422


def test_a_destroyed_user_is_forgotten(forum: Front) -> None:
    assert discourse(forum, "user_destroyed", {"user": {"id": 3}}).json()["forgotten"] == 1
    assert forum.service.engine.advisor.history.codes([3])[0] < 0


def signed(front: Front, content: Any, at_s: int = NOW // 1000, name: str = "msg_1") -> Any:
    body = json.dumps(content).encode()
    headers = signing.sign([KEY], name, at_s, body)
    return front.client.post("/v1/hooks/generic", content=body, headers=headers)


def test_signed_events(forum: Front) -> None:
    data = {"id": 90_001, "title": "Tomatoes?", "tags": ["tomatoes"], "at": NOW / 1000}
    event = {"type": "question.created", "data": data}
    assert signed(forum, event).json()["events"] == 1
    assert signed(forum, event).json()["duplicates"] == 1  # replayed: no effect
    assert signed(forum, event, NOW // 1000 - 301).status_code == 401  # replayed late: refused
    assert signed(forum, {"type": "question.created", "data": {"id": -1}}).status_code == 422
    assert signed(forum, {"type": "nothing"}).status_code == 422
    assert signed(forum, {"type": "person.forgotten", "data": {"id": 3}}).json()["forgotten"] == 1


def slack(front: Front, content: Any, at_s: int = NOW // 1000) -> Any:
    body = urlencode({"payload": json.dumps(content)}).encode()
    mac = hmac.new(b"s", b"v0:%d:%s" % (at_s, body), hashlib.sha256).hexdigest()
    headers = {"x-slack-request-timestamp": str(at_s), "x-slack-signature": f"v0={mac}"}
    return front.client.post("/v1/hooks/slack", content=body, headers=headers)


def test_buttons_in_slack(forum: Front) -> None:
    forum.ask(90_001)
    (found,) = forum.suggestions()
    press = {"action_id": "accepted", "value": str(found["id"])}
    content = {"type": "block_actions", "actions": [press]}
    assert slack(forum, content, NOW // 1000 - 400).status_code == 401
    assert slack(forum, content).json()["feedback"] == 1
    assert forum.suggestions()[0]["state"] == "accepted"


def test_messages_to_slack_and_discourse(make_front: Make) -> None:
    with receiver(200) as to:
        deliver = {
            "adapters": ["slack", "discourse"], "slack_url": f"{to.url}/slack",
            "discourse_url": f"{to.url}/forum/", "discourse_key": "k", "discourse_user": "bot",
            "allow_private": ["127.0.0.1"],
        }  # fmt: skip
        front = make_front(policy={"mode": "automatic"}, deliver=deliver)
        best = front.call("POST", "/v1/route", {"title": "curl", "tags": ["tomatoes"]}).json()
        for person in best["people"]:
            front.call("PATCH", f"/v1/people/{person['user']}", {"handle": f"n{person['user']}"})
        front.ask(90_001, title="Why do <leaves> & stems curl?")
        front.service.sender.run()
        by_path = {got.path: got for got in to.got}
        text = by_path["/slack"].json["blocks"][0]["text"]["text"]
        assert "&lt;leaves&gt; &amp; stems" in text
        buttons = by_path["/slack"].json["blocks"][1]["elements"]
        assert [button["action_id"] for button in buttons] == ["accepted", "declined"]
        letters = [got for got in to.got if got.path == "/forum/posts.json"]
        assert len(letters) == 2  # one for each person: no broadcast
        for got in letters:
            assert got.headers["api-key"] == "k"
            assert got.headers["api-username"] == "bot"
            assert got.json["archetype"] == "private_message"
            assert got.json["target_recipients"].startswith("n")
            assert f"{to.url}/forum/t/90001" in got.json["raw"]


def test_a_topic_is_assigned(make_front: Make) -> None:
    with receiver(200) as to:
        deliver = {"adapters": ["discourse"], "discourse_url": to.url, "discourse_key": "k",
                   "discourse_how": "assign", "allow_private": ["127.0.0.1"]}  # fmt: skip
        front = make_front(policy={"mode": "automatic", "people": 1}, deliver=deliver)
        front.ask(90_001)
        front.service.sender.run()
        assert to.got == []  # nobody knows the handle yet
        user = front.suggestions()[0]["people"][0]["user"]
        front.call("PATCH", f"/v1/people/{user}", {"handle": "anna"})
        front.ask(90_002)
        front.service.sender.run()
        (got,) = to.got
        assert (got.method, got.path) == ("PUT", "/assign/assign.json")
        assert got.json == {"target_id": 90_002, "target_type": "Topic", "username": "anna"}


def test_a_topic_is_closed_by_a_timer(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})
    front.ask(90_001)
    closed = topic(90_001, closed=True)
    assert discourse(front, "topic_autoclosed_status_updated", closed).json()["events"] == 1
    front.service.apply_all()
    assert front.suggestions()[0]["state"] == "withdrawn"


def test_a_topic_dated_in_the_future(forum: Front) -> None:
    late = topic(90_001, created_at="2199-01-01T00:00:00Z")
    answer = discourse(forum, "topic_created", late)
    assert answer.status_code == 422
    assert "check the sender's clock" in answer.json()["detail"]
    forum.clock.pass_hours(0.1)
    forum.service.run_maintenance()


def test_both_halves_come_at_the_same_moment(forum: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    find, both = tables.find_one, threading.Barrier(2)

    def found(connection: Any, table: Any, which: Any) -> Any:
        row = find(connection, table, which)
        if table is tables.topic_parts:
            with contextlib.suppress(threading.BrokenBarrierError):  # one waits for the other
                both.wait(0.5)
        return row

    monkeypatch.setattr(tables, "find_one", found)
    halves = [("topic_created", topic(90_001)), ("post_created", post(70_001, 90_001, 1, 7))]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda half: discourse(forum, *half), halves))
    assert sorted(answer.json()["events"] for answer in answers) == [0, 1]
