"""Shadow, approve, automatic; edited, closed and deleted questions; who did what; opting out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select

from atpgraph_qa.service import tables
from atpgraph_qa.service.service import Service
from qa.tests.service.conftest import Front, Make
from qa.tests.service.receiver import Receiver, receiver
from qa.tests.service.test_adapters import SECRET, discourse, post, slack, topic
from qa.tests.service.test_security import everything

KEY = "whsec_c2VjcmV0"


def approving(make_front: Make, to: Receiver, url: str = "", **more: Any) -> Front:
    deliver = {"adapters": ["webhook"], "webhook_url": to.url, "webhook_secrets": [KEY],
               "allow_private": ["127.0.0.1"], **more.pop("deliver", {})}  # fmt: skip
    policy = {"mode": "approve", **more.pop("policy", {})}
    return make_front(
        url, policy=policy, deliver=deliver, server={"public_url": "https://who.example"}, **more
    )


def decide(front: Front, number: int, verdict: str, status: int = 200, **more: Any) -> Any:
    path = f"/v1/suggestions/{number}/feedback"
    answer = front.call("POST", path, {"verdict": verdict, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def change(front: Front, path: str, **body: Any) -> None:
    front.clock.now += 1000
    sent = {"question": 90_001, "at": front.clock.now / 1000, **body}
    answer = front.call("POST", f"/v1/{path}", sent)
    assert answer.status_code == 202, answer.text
    front.service.apply_all()


def test_nothing_is_sent_until_somebody_accepts(make_front: Make, database_url: str) -> None:
    with receiver(200) as to:
        front = approving(make_front, to, database_url)
        front.ask(90_001)
        (found,) = front.suggestions()
        assert (found["state"], found["mode"], found["sent_ms"]) == ("proposed", "approve", None)
        first = found["people"][0]["user"]
        assert front.call("GET", f"/v1/people/{first}").json()["asked_week"] == 0
        assert front.service.sender.run() == 0
        front.clock.pass_hours(200)
        front.service.run_maintenance()
        assert len(front.suggestions()) == 1  # nobody was asked, so nobody was silent

        after = decide(front, found["id"], "accepted")
        assert after["feedback"][0]["given_by"].startswith("admin (token ")
        assert after["sent_ms"] == front.clock.now
        decide(front, found["id"], "accepted")  # pressed twice
        assert front.service.sender.run() == 1
        assert front.service.sender.run() == 0
        (got,) = to.got
        assert got.json["type"] == "suggestion.created"
        assert [p["user"] for p in got.json["data"]["people"]] == [
            person["user"] for person in found["people"]
        ]
        assert front.call("GET", f"/v1/people/{first}").json()["asked_week"] == 1
        # Then silence counts, and the next ones wait for approval again, more of them.
        front.clock.pass_hours(25)
        front.service.run_maintenance()
        second, _ = front.suggestions()
        assert (second["round"], second["state"], second["sent_ms"]) == (1, "proposed", None)
        assert len(second["people"]) == 3
        assert front.service.sender.run() == 0


def test_accepting_keeps_to_the_rules_of_that_moment(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(make_front, to)
        front.ask(90_001)
        (found,) = front.suggestions()
        users = [person["user"] for person in found["people"]]
        front.call("PATCH", f"/v1/people/{users[0]}", {"opted_out": True, "handle": "ada"})
        decide(front, found["id"], "accepted")
        front.service.sender.run()
        assert [p["user"] for p in to.got[0].json["data"]["people"]] == users[1:]
        said = decide(front, found["id"], "reassigned", 409, person=users[0])["detail"]
        assert said == "ada may not be asked now: does not want to be asked."
        assert decide(front, found["id"], "reassigned", 422, person=999_999)
        front.ask(90_002)
        latest = front.suggestions(question=90_002)[0]
        for person in latest["people"]:
            front.call("PATCH", f"/v1/people/{person['user']}", {"capacity": 0})
        said = decide(front, latest["id"], "accepted", 409)["detail"]
        assert said.startswith("None of these people may be asked now: ")
        assert front.suggestions(question=90_002)[0]["state"] == "proposed"


def test_somebody_else_is_asked(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(make_front, to)
        front.ask(90_001)
        after = decide(front, 1, "reassigned", person=3)
        assert after["state"] == "reassigned"
        front.service.sender.run()
        assert [p["user"] for p in to.got[0].json["data"]["people"]] == [3]
        decide(front, 1, "declined")
        front.service.run_maintenance()
        assert front.suggestions()[0]["round"] == 1


def test_the_mode_is_switched_and_who_did_it_is_known(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(make_front, to, policy={"mode": "shadow"})
        front.ask(90_001)
        decide(front, 1, "accepted")
        assert front.service.sender.run() == 0  # shadow: nobody is asked
        for mode in ("approve", "automatic"):
            assert front.call("POST", "/v1/mode", {"mode": mode}).status_code == 200
        assert front.call("POST", "/v1/mode", {"mode": "loud"}).status_code == 422
        assert front.call("POST", "/v1/mode", {"mode": "shadow"}, scope="write").status_code == 403
        front.ask(90_002)
        assert front.service.sender.run() == 1
        entries = front.call("GET", "/v1/audit").json()
        assert [e["what"] for e in entries if e["what"].startswith("mode")] == [
            "mode: approve → automatic", "mode: shadow → approve",
        ]  # fmt: skip
        assert all(e["who"].startswith("admin") and e["at_ms"] == front.clock.now for e in entries)
        settings = front.service.settings
        front.service.stop()
        again = Service(settings, None, clock=front.clock)
        assert again.engine.mode == "automatic"  # as switched, not as the file says
        again.stop()
        again = Service(settings.changed("policy", {"mode": "approve"}, "t"), clock=front.clock)
        assert again.engine.mode == "approve"  # the file names another one since
        again.stop()
        front.service.ready = False


def test_an_edited_question_is_routed_again(make_front: Make, database_url: str) -> None:
    with receiver(200) as to:
        front = approving(make_front, to, database_url)
        tags = sorted(front.service.engine.advisor.history.tags.names)
        front.ask(90_001, tags=[tags[0]])
        (before,) = front.suggestions()
        change(front, "edits", title="When to prune roses?", tags=[tags[-1]], body="In winter.")
        (after,) = front.suggestions()
        assert (after["id"], after["state"]) == (before["id"], "proposed")
        assert (after["title"], after["tags"], after["body"]) == (
            "When to prune roses?", [tags[-1]], "In winter.",
        )  # fmt: skip
        assert after["ranking"] != before["ranking"]
        assert after["notes"][0] == "Renewed: the question was edited."
        change(front, "edits")  # of nothing: later events are not held up
        decide(front, after["id"], "accepted")
        change(front, "edits", title="When to prune old roses?")
        (kept,) = front.suggestions()
        assert kept["people"] == after["people"]  # they were asked: it stays as it is
        assert kept["title"] == "When to prune old roses?"


@pytest.mark.parametrize("state", ["closed", "deleted"])
def test_a_closed_question_ends_its_suggestion(make_front: Make, state: str) -> None:
    with receiver(500) as to:
        front = approving(make_front, to, policy={"mode": "automatic"})
        front.ask(90_001, title="Xylocarp among tomato leaves", body="unheard words")
        front.service.sender.run()  # fails, and would be tried again
        change(front, "closures", state=state)
        (found,) = front.suggestions()
        assert found["state"] == "withdrawn"
        front.clock.pass_hours(48)
        front.service.run_maintenance()
        assert front.service.sender.run() == 0
        assert len(front.suggestions()) == 1
        assert decide(front, found["id"], "accepted", 409)
        text = everything(front.service.database)
        titles = front.service.engine.advisor.history.records.titles
        for word in ("Xylocarp", "unheard words"):
            assert (word in text) == (state == "closed")
        assert any("Xylocarp" in title for title in titles) == (state == "closed")
        if state == "closed":
            change(front, "closures", state="open")
            (found,) = front.suggestions()
            assert found["state"] == "proposed"
            assert found["sent_ms"] == front.clock.now


def test_a_change_may_come_before_its_question(make_front: Make) -> None:
    front = make_front()
    change(front, "closures", state="closed")
    front.ask(90_001)
    front.service.apply_all()
    assert [row["state"] for row in front.suggestions()] == ["withdrawn"]


def test_topics_of_discourse_change(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET, "discourse_instance": ""})

    def told(event: str, content: dict[str, Any]) -> int:
        answer = discourse(front, event, content)
        assert answer.status_code == 202, answer.text
        front.service.apply_all()
        return int(answer.json()["events"])

    told("topic_created", topic(90_001))
    told("post_created", post(70_001, 90_001, 1, 7))
    assert told("topic_edited", topic(90_001, title="Why do leaves curl?")) == 1
    assert told("post_edited", post(70_001, 90_001, 1, 7, cooked="<p>New text.</p>",
                                    topic_title=None)) == 1  # fmt: skip
    (found,) = front.suggestions()
    assert (found["title"], found["body"]) == ("Why do leaves curl?", "<p>New text.</p>")
    closed = topic(90_001, closed=True)
    assert told("topic_closed_status_updated", closed) == 1
    assert front.suggestions()[0]["state"] == "withdrawn"
    assert told("topic_status_updated", topic(90_001, closed=False)) == 1
    assert front.suggestions()[0]["state"] == "proposed"
    assert told("topic_closed_status_updated", closed) == 0  # an old message, sent again
    assert told("topic_closed_status_updated", topic(90_001, closed=True, posts_count=3)) == 1
    assert front.suggestions()[0]["state"] == "withdrawn"  # closed once more
    assert told("topic_destroyed", topic(90_001, closed=True, posts_count=3)) == 1
    (found,) = front.suggestions()
    assert (found["state"], found["title"]) == ("withdrawn", "")


def test_moderators_approve_in_slack(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(
            make_front, to, hooks={"slack_secret": "s"},
            deliver={"adapters": ["slack", "webhook"], "slack_url": f"{to.url}/slack"},
        )  # fmt: skip
        front.ask(90_001, title="*bold* <!channel> & co", url="https://site.example/q/1")
        assert front.service.sender.run() == 1
        (asked,) = to.got
        assert asked.path == "/slack"
        section, actions = asked.json["blocks"]
        assert "&lt;!channel&gt; &amp; co" in section["text"]["text"]
        assert "<https://site.example/q/1|Question>" in section["text"]["text"]
        assert [button["text"]["text"] for button in actions["elements"]] == [
            "Ask them",
            "Not these",
        ]
        press = {"action_id": "accepted", "value": "1"}
        content = {"type": "block_actions", "actions": [press], "user": {"username": "mo"}}
        assert slack(front, content).json()["feedback"] == 1
        assert front.service.sender.run() == 1
        assert to.got[-1].json["data"]["suggestion"] == 1
        (found,) = front.suggestions()
        assert found["state"] == "accepted"
        said = front.call("GET", "/v1/suggestions/1").json()["feedback"]
        assert [entry["given_by"] for entry in said] == ["Slack: mo"]


def test_somebody_opts_out_by_the_link_in_their_message(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(make_front, to, policy={"mode": "automatic", "people": 1})
        front.ask(90_001)
        front.service.sender.run()
        person = to.got[0].json["data"]["people"][0]
        assert person["opt_out"].startswith(f"https://who.example/opt-out/{person['user']}/")
        path = person["opt_out"].removeprefix("https://who.example")
        page = front.client.get(path)
        assert page.status_code == 200
        assert "Do not ask me again" in page.text
        assert not front.service.engine.directory[
            person["user"]
        ].opted_out  # a look changes nothing
        done = front.client.post(path, content="choice=stop")
        assert "will not be asked again" in done.text
        assert front.service.engine.directory[person["user"]].opted_out
        front.client.post(path, content="choice=ask")
        assert not front.service.engine.directory[person["user"]].opted_out
        wrong = path.replace(f"/{person['user']}/", "/3/")
        assert front.client.post(wrong, content="choice=stop").status_code == 404
        who = [entry["who"] for entry in front.call("GET", "/v1/audit").json()]
        assert who == ["opt-out link"] * 2


def test_later_rounds_ask_wider_groups(make_front: Make) -> None:
    policy = {"groups": ["staff"], "escalate_groups": ["helpers"], "least_confidence": 0.0}
    front = make_front(policy=policy)
    history = front.service.engine.advisor.history
    staff, helper = history.users[history.n_given > 2][:2].tolist()
    front.call("PATCH", f"/v1/people/{staff}", {"groups": ["staff"]})
    front.call("PATCH", f"/v1/people/{helper}", {"groups": ["helpers"]})
    front.ask(90_001)
    front.clock.pass_hours(25)
    front.service.run_maintenance()
    second, first = front.suggestions()
    assert [person["user"] for person in first["people"]] == [staff]
    assert [person["user"] for person in second["people"]] == [helper]


def test_tags_without_experts(make_front: Make) -> None:
    front = make_front()
    for number in range(3):
        front.ask(90_001 + number, tags=["unheard-of"])
    found = {entry["tag"]: entry for entry in front.call("GET", "/v1/metrics/tags").json()}
    assert found["unheard-of"] == {
        "tag": "unheard-of", "questions": 3, "unanswered": 3, "experts": 0
    }  # fmt: skip
    assert "tomatoes" not in found


def test_the_audit_log_does_not_name_who_was_forgotten(make_front: Make) -> None:
    front = make_front()
    front.call("PATCH", "/v1/people/700123", {"handle": "Zebulon"})
    front.call("DELETE", "/v1/people/700123")
    entries = front.call("GET", "/v1/audit").json()
    assert [entry["what"] for entry in entries] == ["forgot a person", "changed a person"]
    assert [entry["person"] for entry in entries] == [None, None]


def test_pages_keep_what_was_typed(make_front: Make) -> None:
    front = make_front(policy={"mode": "approve"})
    front.ask(90_001, body="<p>Some <b>text</b> of it.</p>", url="https://site.example/q/1")
    front.call("PATCH", "/v1/people/3", {"handle": "ada"})
    front.call("PATCH", "/v1/people/4", {"handle": "adam"})
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/inbox/1").text
    assert "Some text of it." in page
    assert 'href="https://site.example/q/1"' in page
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf

    def send(path: str, more: str) -> Any:
        return front.client.post(path, content=f"csrf={csrf[1]}&{more}")

    wrong = send("/people/3", "hours=late&topics=roses%2C+beans&handle=ada")
    assert wrong.status_code == 422
    assert "text/html" in wrong.headers["content-type"]
    assert 'value="late"' in wrong.text
    assert 'value="roses, beans"' in wrong.text
    assert "Write working hours like 09:00-17:00" in wrong.text
    wrong = send("/inbox/1/feedback", "verdict=reassigned&person=zorro")
    assert wrong.status_code == 422
    assert 'value="zorro"' in wrong.text
    wrong = send("/inbox/1/feedback", "verdict=reassigned&person=da")
    assert "Several people match" in wrong.text
    assert send("/inbox/1/feedback", "verdict=reassigned&person=ADA").status_code == 303
    assert front.suggestions()[0]["state"] == "reassigned"
    with front.service.database.read() as connection:
        (asked,) = connection.execute(select(tables.asks.c.person)).scalars()
    assert asked == 3
    missing = front.client.get("/inbox/999")
    assert missing.status_code == 404
    assert "text/html" in missing.headers["content-type"]
    assert "There is no such suggestion." in missing.text
    assert front.client.get("/people/find?q=ad").json() == ["ada", "adam"]
    assert send("/settings/mode", "mode=automatic").status_code == 303
    assert front.service.engine.mode == "automatic"
    assert send("/settings/mode", "mode=loud").status_code == 422


def test_an_old_history_is_announced(make_front: Make) -> None:
    front = make_front(policy={"inactive_days": 180.0})
    front.clock.pass_hours(24 * 400)
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/inbox").text
    assert "401 days ago" in page
    assert "hardly anybody may be asked" in page
    front.ask(90_001)
    (found,) = front.suggestions()
    assert "the newest answer known here is 401 days old" in found["abstains"]
