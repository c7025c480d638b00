"""What goes out: signed, retried, stopped, never to private addresses, never twice."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from atpgraph.errors import InputError
from atpgraph_qa.service import outbox, tables
from atpgraph_qa.service.adapters import base as signing
from atpgraph_qa.service.database import DatabaseGoneError
from atpgraph_qa.service.outbox import Sender, checked_address, is_public
from atpgraph_qa.service.problems import ProblemError
from qa.tests.service.conftest import NOW, Front, Make
from qa.tests.service.receiver import Receiver, receiver

OLD, NEW = (f"whsec_{base64.b64encode(name * 8).decode()}" for name in (b"old!", b"new!"))


def webhook(make_front: Make, to: Receiver, url: str = "", **deliver: Any) -> Front:
    given = {
        "adapters": ["webhook"], "webhook_url": f"{to.url}/in?x=1", "webhook_secrets": [NEW, OLD],
        "allow_private": ["127.0.0.1"], **deliver,
    }  # fmt: skip
    return make_front(url, policy={"mode": "automatic"}, deliver=given)


def states(front: Front) -> list[str]:
    with front.service.database.read() as connection:
        query = select(tables.outbox.c.state).order_by(tables.outbox.c.created_ms)
        return list(connection.execute(query).scalars())


def test_a_signed_webhook(make_front: Make, database_url: str) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to, database_url)
        front.ask(90_001)
        assert states(front) == ["waiting"]
        assert front.service.sender.run() == 1
        assert front.service.sender.run() == 0
        (got,) = to.got
        assert (got.method, got.path) == ("POST", "/in?x=1")
        for key in (OLD, NEW):  # a receiver that knows either key takes it
            signing.verify([key], got.headers, got.body, NOW)
        with pytest.raises(ProblemError):
            signing.verify([OLD], got.headers, got.body + b" ", NOW)
        with pytest.raises(ProblemError):
            signing.verify([OLD], got.headers, got.body, NOW + 301_000)
        sent = got.json
        assert sent["type"] == "suggestion.created"
        assert sent["data"]["question"]["id"] == 90_001
        assert sent["data"]["people"][0]["reasons"]
        assert states(front) == ["sent"]
        assert front.suggestions()[0]["state"] == "delivered"


def test_shadow_mode_sends_nothing(make_front: Make) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to)
        front.service.engine.set_mode("shadow", "test")
        front.ask(90_001)
        assert states(front) == []
        assert front.service.sender.run() == 0


def test_failures_are_tried_again_for_days_with_the_same_id(make_front: Make) -> None:
    with receiver(500) as to:
        front = webhook(make_front, to)
        front.ask(90_001)
        started, attempts = front.clock.now, 0
        while "waiting" in states(front):
            attempts += front.service.sender.run()
            with front.service.database.read() as connection:
                due = connection.execute(select(tables.outbox.c.next_ms)).scalar_one()
            front.clock.now = max(due, front.clock.now + 1)
        assert attempts == len(outbox.BACKOFF) + 1
        assert front.clock.now - started > 2.5 * 86_400_000
        assert len({got.headers["webhook-id"] for got in to.got}) == 1
        assert states(front) == ["dead"]
        listed = front.call("GET", "/v1/messages").json()["items"][0]
        assert listed["last"]["status"] == 500
        to.answers = [200]
        again = front.call("POST", f"/v1/messages/{listed['id']}/redeliver")
        assert again.status_code == 202
        front.service.sender.run()
        assert states(front) == ["sent"]
        assert to.got[-1].headers["webhook-id"] == to.got[0].headers["webhook-id"]
        assert front.call("POST", "/v1/messages/msg_0/redeliver").status_code == 404


def test_a_receiver_that_is_gone_is_switched_off(make_front: Make) -> None:
    with receiver(410) as to:
        front = webhook(make_front, to)
        front.ask(90_001)
        front.service.sender.run()
        assert states(front) == ["dead"]
        front.ask(90_002)
        assert front.service.sender.run() == 0
        off = front.call("GET", "/v1/messages").json()["switched_off"]
        assert [entry["adapter"] for entry in off] == ["webhook"]


def test_a_receiver_that_hangs_does_not_hold_us(make_front: Make) -> None:
    with receiver(200) as to:
        to.hangs = True
        front = webhook(make_front, to, timeout_seconds=0.2)
        front.ask(90_001)
        front.service.sender.run()
        listed = front.call("GET", "/v1/messages").json()["items"][0]
        assert listed["last"]["error"] == "No answer in time."
        assert states(front) == ["waiting"]


def test_redirects_are_not_followed(make_front: Make) -> None:
    with receiver(200) as inner, receiver(302) as outer:
        outer.location = f"{inner.url}/secret"
        front = webhook(make_front, outer)
        front.ask(90_001)
        front.service.sender.run()
        assert inner.got == []
        assert states(front) == ["dead"]


def test_private_addresses_are_refused_whatever_the_name(make_front: Make) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to, allow_private=[])
        front.ask(90_001)
        front.service.sender.run()
        assert to.got == []
        listed = front.call("GET", "/v1/messages").json()["items"][0]
        assert "private address" in listed["last"]["error"]
        port = to.url.rpartition(":")[2]
        front = make_front(
            folder="named", policy={"mode": "automatic"},
            deliver={"adapters": ["webhook"], "webhook_secrets": [NEW],
                     "webhook_url": f"http://hooks.example:{port}/"},
            resolver=lambda host, port: ["93.184.216.34", "127.0.0.1"],
        )  # fmt: skip
        front.ask(90_001)
        front.service.sender.run()
        assert to.got == []


def test_we_connect_to_the_address_that_was_checked(make_front: Make) -> None:
    asked: list[str] = []

    def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with receiver(200) as to:
        port = to.url.rpartition(":")[2]
        front = make_front(
            policy={"mode": "automatic"}, resolver=once,
            deliver={"adapters": ["webhook"], "webhook_secrets": [NEW],
                     "webhook_url": f"http://hooks.example:{port}/",
                     "allow_private": ["hooks.example"]},
        )  # fmt: skip
        front.ask(90_001)
        front.service.sender.run()
        assert asked == ["hooks.example"]
        assert to.got[0].headers["host"] == f"hooks.example:{port}"


@pytest.mark.parametrize(
    "address",
    ["10.1.2.3", "127.0.0.1", "169.254.169.254", "192.168.0.1", "0.0.0.0", "100.64.0.1", "::1",
     "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "url", ["ftp://x.example/", "http://", "file:///etc/passwd", "http://a:b/"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError):
        checked_address(url, lambda host, port: ["93.184.216.34"])


def test_an_answer_stops_messages(make_front: Make) -> None:
    with receiver(500) as to:
        front = webhook(make_front, to)
        front.ask(90_001)
        front.service.sender.run()
        body = {"id": 95_001, "question": 90_001, "user": 3, "at": NOW / 1000}
        front.call("POST", "/v1/answers", body)
        front.service.apply_all()
        assert states(front) == ["cancelled"]


def test_after_a_crash_only_repeatable_messages_go_again(make_front: Make) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to, adapters=["webhook", "slack"], slack_url=f"{to.url}/slack")
        front.ask(90_001)
        with front.service.database.write() as connection:  # killed while sending
            connection.execute(update(tables.outbox).values(state="sending", attempts=1))
        sender = Sender(front.service.database, front.service.settings, front.clock)
        sender.recover()
        with front.service.database.read() as connection:
            assert set(connection.execute(select(tables.outbox.c.attempts)).scalars()) == {0}
        sender.run()
        assert [got.path for got in to.got] == ["/in?x=1"]
        assert sorted(states(front)) == ["sent", "uncertain"]


def test_the_database_goes_away_while_a_message_is_out(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to)
        front.ask(90_001)
        front.ask(90_002)
        sender, settle = front.service.sender, outbox.settle

        def gone(*_: Any, **__: Any) -> str:
            raise OperationalError("", {}, Exception())

        monkeypatch.setattr(outbox, "settle", gone)
        sender.run()
        assert states(front) == ["sending", "sending"]
        with pytest.raises(DatabaseGoneError):
            sender.run()
        monkeypatch.setattr(outbox, "settle", settle)
        assert sender.run() == 0
        assert states(front) == ["sent", "sent"]
        assert len(to.got) == 2  # once each


_BODY = st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))


@given(body=_BODY, other=st.one_of(_BODY, st.binary(max_size=60)), late=st.integers(-400, 400))
def test_signatures_hold_for_their_body_and_time_only(body: bytes, other: bytes, late: int) -> None:
    headers = signing.sign([OLD], "msg_1", 1000, body)
    if other == body and abs(late) <= signing.TOLERANCE_S:
        signing.verify([NEW, OLD], headers, other, 1000 * (1000 + late))
    else:
        with pytest.raises(ProblemError):
            signing.verify([NEW, OLD], headers, other, 1000 * (1000 + late))
    with pytest.raises(ProblemError):
        signing.verify([NEW], headers, body, 1_000_000)


def test_an_answer_comes_while_a_message_is_sent(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(500) as to:
        front = webhook(make_front, to)
        front.ask(90_001)
        send = Sender._send

        async def answered(sender: Sender, request: Any) -> int:
            body = {"id": 9001, "question": 90_001, "user": 3, "at": front.clock.now / 1000}
            assert front.call("POST", "/v1/answers", body).status_code == 202
            front.service.apply_all()
            return await send(sender, request)

        monkeypatch.setattr(Sender, "_send", answered)
        assert front.service.sender.run() == 1
        assert states(front) == ["cancelled"]  # it failed, and is not tried again
        front.clock.pass_hours(24)
        assert front.service.sender.run() == 0


def opt_out(front: Front, user: int, way: str) -> None:
    if way == "api":
        assert front.call("PATCH", f"/v1/people/{user}", {"opted_out": True}).status_code == 200
    elif way == "link":
        code = front.service.suggester.opt_out_code(user)
        front.client.post(f"/opt-out/{user}/{code}", content="choice=stop")
    else:
        front.client.post("/login", content=f"token={front.tokens['admin']}")
        page = front.client.get(f"/people/{user}").text
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        front.client.post(f"/people/{user}", content=f"csrf={csrf}&opted_out=yes")
    assert front.service.engine.directory[user].opted_out


@pytest.mark.parametrize("way", ["api", "link", "page"])
@pytest.mark.parametrize("tried", [False, True])
def test_who_opted_out_gets_no_message_that_waits(
    make_front: Make, database_url: str, way: str, tried: bool
) -> None:
    with receiver(500) as to:
        front = webhook(make_front, to, database_url)
        front.ask(90_001)
        first, second = (person["user"] for person in front.suggestions()[0]["people"])
        if tried:
            assert front.service.sender.run() == 1
        opt_out(front, first, way)
        to.got.clear()
        front.clock.pass_hours(1)
        assert front.service.sender.run() == 1
        (got,) = to.got
        assert [person["user"] for person in got.json["data"]["people"]] == [second]
        opt_out(front, second, way)
        front.clock.pass_hours(1)
        assert front.service.sender.run() == 0
        assert states(front) == ["cancelled"]
        again = front.call("GET", "/v1/messages").json()["items"][0]["id"]
        assert front.call("POST", f"/v1/messages/{again}/redeliver").status_code == 202
        assert front.service.sender.run() == 0
        assert len(to.got) == 1


def test_moderators_still_see_who_opted_out(make_front: Make) -> None:
    with receiver(200) as to:
        front = webhook(make_front, to, adapters=["slack"], slack_url=to.url)
        front.ask(90_001)
        users = [person["user"] for person in front.suggestions()[0]["people"]]
        opt_out(front, users[0], "api")
        assert front.service.sender.run() == 1
        button = to.got[0].json["blocks"][1]["elements"][0]
        assert button["value"].split()[1:] == [str(user) for user in users]
