"""Shadow, approve, automatic; edited, closed and deleted questions; who did what; opting out."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from sqlalchemy import event, select

from atpgraph_qa.service import tables
from atpgraph_qa.service.database import DatabaseGoneError
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
    wrong = send("/settings/tokens", "name=&scope=write")
    assert "<option selected>write</option>" in wrong.text


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


def test_a_note_to_moderators_asks_nobody(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(
            make_front, to, deliver={"adapters": ["slack"], "slack_url": f"{to.url}/slack"}
        )
        front.ask(90_001, tags=["tomatoes"])
        assert front.service.sender.run() == 1
        assert front.suggestions()[0]["state"] == "proposed"  # the moderators know, nobody else
        change(front, "edits", title="When to prune roses?", tags=["roses"])
        assert front.suggestions()[0]["notes"][0] == "Renewed: the question was edited."


def test_what_was_tried_is_not_sent_later(make_front: Make) -> None:
    front = make_front(policy={"mode": "shadow"})
    front.ask(90_001)
    front.service.engine.set_mode("automatic", "test")
    front.clock.pass_hours(25)
    front.service.run_maintenance()
    assert len(front.suggestions()) == 1  # its first people were never asked


def test_an_edit_in_the_trial_run_does_not_ask_again(make_front: Make) -> None:
    front = make_front(policy={"mode": "shadow", "rest_hours": 4.0})
    front.ask(90_001)
    (before,) = front.suggestions()
    change(front, "edits", title="Why do my tomato leaves curl up in the greenhouse?")
    (after,) = front.suggestions()
    assert after["people"] == before["people"]
    with front.service.database.read() as connection:
        asked = list(connection.execute(select(tables.asks.c.person)).scalars())
    assert len(asked) == len(before["people"])


def test_who_was_named_is_not_asked_twice(make_front: Make) -> None:
    front = make_front(policy={"mode": "approve", "people": 1, "escalate_people": 19})
    front.ask(90_001)
    (found,) = front.suggestions()
    second = found["ranking"][1]["person"]
    assert decide(front, 1, "reassigned", 422, person=7)["detail"] == (
        "This person asked the question."
    )
    decide(front, 1, "reassigned", person=second)
    front.clock.pass_hours(25)
    front.service.run_maintenance()
    wider = [person["user"] for person in front.suggestions()[0]["people"]]
    assert len(wider) > 5
    assert second not in wider


def test_two_moderators_decline(make_front: Make) -> None:
    front = make_front(policy={"mode": "approve"})
    front.ask(90_001)
    decide(front, 1, "declined")
    front.service.run_maintenance()
    assert len(front.suggestions()) == 2
    decide(front, 1, "declined")  # in Slack, where the buttons stay
    front.service.run_maintenance()
    assert len(front.suggestions()) == 2
    front.clock.pass_hours(1)
    decide(front, 1, "accepted")  # somebody disagrees, then gives in
    decide(front, 1, "declined")
    front.service.run_maintenance()
    assert len(front.suggestions()) == 2


def test_who_may_not_be_asked_is_not_listed_as_asked(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(make_front, to)
        front.ask(90_001)
        first, second = (person["user"] for person in front.suggestions()[0]["people"])
        front.call("PATCH", f"/v1/people/{first}", {"opted_out": True, "handle": "ada"})
        after = decide(front, 1, "accepted")
        assert [person["user"] for person in after["people"]] == [second]
        assert f"User {first} was not asked: does not want to be asked." in after["notes"]
        front.service.forget(first, "test")
        assert not any(str(first) in note for note in front.suggestions()[0]["notes"])


def test_a_page_that_was_open_does_not_undo_an_opt_out(make_front: Make) -> None:
    front = make_front()
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/people/3").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf
    code = front.service.suggester.opt_out_code(3)
    front.client.post(f"/opt-out/3/{code}", content="choice=stop")

    def send(form: str) -> bool:
        front.client.post("/people/3", content=f"csrf={csrf[1]}&handle=ada{form}")
        return front.service.engine.directory[3].opted_out

    assert "was_opted_out" not in page
    assert send("&topics=roses")  # it did not know of the link
    assert 'name="was_opted_out"' in front.client.get("/people/3").text
    wrong = f"csrf={csrf[1]}&handle=ada&was_opted_out=yes&hours=never"  # shown again as typed
    shown = front.client.post("/people/3", content=wrong).text
    assert 'name="was_opted_out"' in shown
    assert not re.search(r'name="opted_out"[^>]* checked', shown)
    assert not send("&was_opted_out=yes")  # the moderator took the check mark away
    assert send("&opted_out=yes")


def test_settings_that_change_at_once_are_all_kept(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})
    engine, started, result = front.service.engine, threading.Event(), []
    write = tables.save

    def slow(connection: Any, table: Any, **values: Any) -> None:
        write(connection, table, **values)
        if values.get("opted_out") and not started.is_set():
            started.set()
            other.join(0.5)  # it comes while the first is being stored

    def rename() -> None:
        started.wait(10)
        result.append(discourse(front, "post_created", post(70_002, 1, 2, 3)).status_code)

    monkeypatch.setattr(tables, "save", slow)
    other = threading.Thread(target=rename)
    other.start()
    assert front.call("PATCH", "/v1/people/3", {"opted_out": True}).status_code == 200
    other.join(30)
    assert result == [202]
    assert (engine.directory[3].opted_out, engine.directory[3].handle) == (True, "name3")
    with front.service.database.read() as connection:
        row = tables.find_one(connection, tables.people, 3)
    assert row is not None
    assert (row["opted_out"], row["handle"]) == (True, "name3")


def test_the_mode_stays_if_it_cannot_be_stored(make_front: Make) -> None:
    front = make_front()
    database, engine = front.service.database, front.service.engine

    def gone(_: Any) -> None:
        raise DatabaseGoneError(503, "The database does not answer.", wait=5)

    event.listen(database.engine, "commit", gone)
    with pytest.raises(DatabaseGoneError):
        engine.set_mode("automatic", "test")
    event.remove(database.engine, "commit", gone)
    assert engine.mode == "shadow"


def test_a_name_or_an_id(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    for user, handle in ((3, "ada"), (4, "bob5"), (9, "eve"), (11, "Eve")):
        front.call("PATCH", f"/v1/people/{user}", {"handle": handle})
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/inbox/1").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf

    def named(text: str) -> Any:
        sent = f"csrf={csrf[1]}&verdict=reassigned&person={text}"
        answer = front.client.post("/inbox/1/feedback", content=sent)
        if answer.status_code != 303:
            return answer.text
        assert answer.headers["location"] == "/inbox?said=saved"  # in the trial run nobody is asked
        return front.call("GET", "/v1/suggestions/1").json()["feedback"][-1]["person"]

    assert named("5") == 5  # not bob5
    assert named("bob5") == 4
    assert "Eve (11), eve (9). Type the full name or the id." in named("eve")
    assert named("11") == 11


def test_an_edit_of_a_deleted_question_brings_no_text_back(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001, title="Xylocarp among tomato leaves", body="unheard words")
    change(front, "closures", state="deleted")
    change(front, "edits", title="Xylocarp among leaves")  # it was sent before, and was late
    assert "Xylocarp" not in everything(front.service.database)


def test_the_page_does_not_say_that_somebody_is_asked(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    for user in front.service.engine.advisor.history.users.tolist():
        front.call("PATCH", f"/v1/people/{user}", {"opted_out": True})
    front.ask(90_002)
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/inbox/1").text
    assert "suggested, place 1" in page
    assert "happened</a> <a" in page
    empty = front.client.get("/inbox/2").text
    assert "may be asked now: 20 opted out." in empty
    assert "Suggest again" in empty


def test_only_those_who_were_shown_are_asked(make_front: Make) -> None:
    with receiver(200) as to:
        front = approving(
            make_front, to, hooks={"slack_secret": "s"},
            deliver={"adapters": ["slack", "webhook"], "slack_url": f"{to.url}/slack"},
        )  # fmt: skip
        tags = sorted(front.service.engine.advisor.history.tags.names)
        front.ask(90_001, tags=[tags[0]])
        front.client.post("/login", content=f"token={front.tokens['admin']}")
        page = front.client.get("/inbox").text
        shown, csrf = (re.search(f'name="{n}" value="([^"]+)"', page) for n in ("shown", "csrf"))
        assert shown
        assert csrf
        front.service.sender.run()
        change(front, "edits", title="When to prune roses?", tags=[tags[-1]], body="In winter.")
        front.service.sender.run()

        def press(message: int) -> int:
            button = to.got[message].json["blocks"][1]["elements"][0]
            content = {"type": "block_actions", "actions": [button], "user": {"username": "mo"}}
            return int(slack(front, content, front.clock.now // 1000).status_code)

        sent = f"csrf={csrf[1]}&verdict=accepted&shown={shown[1]}"
        answer = front.client.post("/inbox/1/feedback", content=sent)
        assert answer.status_code == 409
        assert "Other people are suggested by now" in answer.text
        assert press(0) == 409  # the first message in the channel
        assert front.suggestions()[0]["state"] == "proposed"
        assert press(1) == 202
        assert front.suggestions()[0]["state"] == "accepted"
