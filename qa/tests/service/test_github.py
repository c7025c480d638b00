"""Issues and discussions of GitHub, in the format that GitHub documents, against a real server."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from qa.tests.service.conftest import Front, Make
from qa.tests.service.receiver import Receiver, receiver

SECRET = "It's a Secret to Everybody"
AT = "2026-09-21T14:10:00Z"
REPOSITORY = {"id": 186853002, "full_name": "octo/garden", "private": False}


def told(front: Front, event: str, content: dict[str, Any], **headers: str) -> Any:
    body = json.dumps({"repository": REPOSITORY, "sender": {"id": 1}, **content}).encode()
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    sent = {
        "x-github-event": event, "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-hub-signature-256": f"sha256={mac}", "content-type": "application/json", **headers,
    }  # fmt: skip
    answer = front.client.post("/v1/hooks/github", content=body, headers=sent)
    front.service.apply_all()
    return answer


def user(number: int, login: str, kind: str = "User") -> dict[str, Any]:
    return {"id": number, "login": login, "type": kind}


def issue(number: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "id": 327_883_527 + number, "node_id": "MDU6SXNzdWUzMjc4ODM1Mjc=", "number": number,
        "html_url": f"https://github.com/octo/garden/issues/{number}", "state": "open",
        "title": "Why do tomato leaves curl?", "body": "In the *greenhouse*.",
        "labels": [{"id": 9, "name": "tomatoes"}], "user": user(7, "seven"), "created_at": AT,
        "updated_at": AT, **more,
    }  # fmt: skip


def discussion(**more: Any) -> dict[str, Any]:
    return {
        **issue(5), "id": 3_332_221, "node_id": "D_kwDOCyJFEs4AMr_x",
        "html_url": "https://github.com/octo/garden/discussions/5",
        "category": {"id": 1, "slug": "q-a", "is_answerable": True}, **more,
    }  # fmt: skip


def comment(number: int, who: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "node_id": "x", "user": who, "created_at": AT, "body": "Water."}


def garden(make_front: Make, to: Receiver | None = None, url: str = "", **deliver: Any) -> Front:
    given = {}
    if to is not None:
        given = {"adapters": ["github"], "github_token": "ghp_x", "github_url": to.url,
                 "allow_private": ["127.0.0.1"], **deliver}  # fmt: skip
    return make_front(
        url, hooks={"github_secret": SECRET, "github_repositories": ["octo/garden"]},
        policy={"mode": "automatic"}, deliver=given, server={"public_url": "https://who.example"},
    )  # fmt: skip


def test_an_issue_from_opened_to_closed(make_front: Make, database_url: str) -> None:
    front = garden(make_front, url=database_url)
    opened = {"action": "opened", "issue": issue()}
    assert told(front, "issues", opened).json()["events"] == 1
    assert told(front, "issues", opened).json()["duplicates"] == 1  # redelivered by hand
    (found,) = front.suggestions()
    assert (found["title"], found["tags"]) == ("Why do tomato leaves curl?", ["tomatoes"])
    assert found["url"] == "https://github.com/octo/garden/issues/2"
    assert front.service.engine.directory[7].handle == "seven"
    edited = issue(title="Why do leaves curl?", updated_at="2026-09-21T14:11:00Z")
    assert told(front, "issues", {"action": "edited", "issue": edited}).json()["events"] == 1
    assert front.suggestions()[0]["title"] == "Why do leaves curl?"
    bot = {
        "action": "created",
        "issue": issue(),
        "comment": comment(900_001, user(99, "ci", "Bot")),
    }
    assert told(front, "issue_comment", bot).json()["events"] == 0
    given = {"action": "created", "issue": issue(), "comment": comment(900_002, user(3, "ada"))}
    assert told(front, "issue_comment", given).json()["events"] == 1
    (found,) = front.suggestions()
    assert (found["state"], found["outcome"]) == ("answered", 3)
    other = issue(3)
    told(front, "issues", {"action": "opened", "issue": other})
    closed = {**other, "updated_at": "2026-09-21T14:12:00Z"}
    told(front, "issues", {"action": "closed", "issue": closed})
    assert front.suggestions()[0]["state"] == "withdrawn"


def test_a_discussion_with_an_answer(make_front: Make) -> None:
    front = garden(make_front)
    told(front, "discussion", {"action": "created", "discussion": discussion()})
    (found,) = front.suggestions()
    assert found["tags"] == ["tomatoes", "q-a"]
    for number, who in ((11, user(3, "ada")), (12, user(4, "bob"))):
        said = {"action": "created", "discussion": discussion(), "comment": comment(number, who)}
        assert told(front, "discussion_comment", said).json()["events"] == 1
    answered = {
        "action": "answered",
        "discussion": discussion(),
        "answer": comment(12, user(4, "b")),
    }
    assert told(front, "discussion", answered).json()["events"] == 1
    assert front.suggestions()[0]["outcome"] == 4


@pytest.mark.parametrize(
    ("event", "content"),
    [
        ("ping", {"zen": "Design for failure."}),
        ("issues", {"action": "pinned", "issue": issue()}),
        ("issues", {"action": "opened", "issue": issue(pull_request={"url": "x"})}),
        ("issues", {"action": "opened", "issue": issue(), "repository": {"full_name": "a/b"}}),
        ("push", {"ref": "refs/heads/main"}),
    ],
)
def test_what_is_ignored(make_front: Make, event: str, content: dict[str, Any]) -> None:
    answer = told(garden(make_front), event, content)
    assert answer.status_code == 202
    assert answer.json()["events"] == 0


def test_forged_and_broken_requests(make_front: Make) -> None:
    front = garden(make_front)
    opened = {"action": "opened", "issue": issue()}
    wrong = {"x-hub-signature-256": "sha256=" + "0" * 64}
    assert told(front, "issues", opened, **wrong).status_code == 401
    assert told(front, "issues", {"action": "opened", "issue": {"id": "x"}}).status_code == 422
    assert told(front, "issues", {"action": "opened"}).status_code == 422
    closed = make_front(folder="closed")
    assert told(closed, "issues", opened).status_code == 401


def test_people_are_named_in_a_comment(make_front: Make) -> None:
    with receiver(201) as to:
        front = garden(make_front, to)
        history = front.service.engine.advisor.history
        for number in history.users.tolist():
            front.call("PATCH", f"/v1/people/{number}", {"handle": f"n{number}"})
        told(front, "issues", {"action": "opened", "issue": issue()})
        assert front.service.sender.run() == 1
        (got,) = to.got
        assert (got.method, got.path) == ("POST", "/repos/octo/garden/issues/2/comments")
        assert got.headers["authorization"] == "Bearer ghp_x"
        assert got.headers["accept"] == "application/vnd.github+json"
        text = got.json["body"]
        for person in front.suggestions()[0]["people"]:
            assert f"@n{person['user']}" in text
        assert "opt-out" not in text  # any reader could follow the link
        assert "If you do not want to be asked, tell a moderator." in text


def test_an_issue_is_assigned_and_a_discussion_gets_a_comment(make_front: Make) -> None:
    with receiver(200) as to:
        front = garden(make_front, to, github_how="assign")
        for number in front.service.engine.advisor.history.users.tolist():
            front.call("PATCH", f"/v1/people/{number}", {"handle": f"n{number}"})
        told(front, "issues", {"action": "opened", "issue": issue()})
        told(front, "discussion", {"action": "created", "discussion": discussion()})
        assert front.service.sender.run() == 2
        by_path = {got.path: got.json for got in to.got}
        people = front.suggestions()[-1]["people"]
        assert by_path["/repos/octo/garden/issues/2/assignees"] == {
            "assignees": [f"n{person['user']}" for person in people]
        }
        asked = by_path["/graphql"]
        assert "addDiscussionComment" in asked["query"]
        assert asked["variables"]["id"] == "D_kwDOCyJFEs4AMr_x"
        assert asked["variables"]["body"].startswith("@n")
        assert "who.example" not in asked["variables"]["body"]


def test_labels_that_are_added_in_the_same_second(make_front: Make) -> None:
    front = garden(make_front)
    told(front, "issues", {"action": "opened", "issue": issue(labels=[])})
    names: list[dict[str, Any]] = []
    for name in ("roses", "pruning"):
        names.append({"id": len(names), "name": name})
        content = {"action": "labeled", "issue": issue(labels=list(names)), "label": names[-1]}
        assert told(front, "issues", content).json()["events"] == 1
        assert told(front, "issues", content).json()["duplicates"] == 1  # redelivered
    assert front.suggestions()[0]["tags"] == ["roses", "pruning"]
