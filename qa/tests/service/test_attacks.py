"""What an attacker tried against the service, and what must come of it."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import logging
import os
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from select import select as readable
from typing import Any

import pytest
import uvicorn
from sqlalchemy import event, select, update

from atpgraph.errors import InputError
from atpgraph_qa.service import run, tables
from atpgraph_qa.service.adapters.base import plain_markdown
from atpgraph_qa.service.maintenance import backup, repair, restore
from atpgraph_qa.service.outbox import is_public
from atpgraph_qa.service.run import address_of, config_of, create_app, listen
from atpgraph_qa.service.service import Service
from qa.tests.service.conftest import NOW, Front, Make
from qa.tests.service.test_adapters import SECRET, discourse, post, slack, topic
from qa.tests.service.test_security import everything, folder_of

DAY_MS = 86_400_000


def test_forged_hooks_do_not_use_up_the_rate_of_real_ones(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET}, limits={"per_second": 0.001, "burst": 3})
    wrong = {"x-discourse-event-signature": "sha256=" + "0" * 64}
    for _ in range(20):
        assert discourse(front, "topic_created", topic(1), **wrong).status_code == 401
    assert discourse(front, "topic_created", topic(1)).status_code == 202


FUTURE = "2199-06-01T00:00:00Z"


def test_events_dated_in_the_future_are_refused(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})
    body = {"id": 1, "title": "x", "at": FUTURE}
    answer = front.call("POST", "/v1/questions", body)
    assert answer.status_code == 422
    assert "2199-06-01" in answer.json()["detail"]
    late = post(70_002, 90_001, 2, 3, created_at=FUTURE)
    assert discourse(front, "post_created", late).status_code == 422
    body["at"] = (NOW + DAY_MS - 1000) / 1000  # clocks may differ by a time zone
    assert front.call("POST", "/v1/questions", body).status_code == 202


def test_a_store_with_an_event_in_the_future_is_repaired(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    front.clock.now += 150 * 365 * DAY_MS  # as an earlier version took it
    front.ask(90_002)
    front.clock.now = NOW
    with front.service.database.write() as connection:
        change = update(tables.events).values(received_ms=NOW)
        connection.execute(change.where(tables.events.c.question == 90_002))
    ready = front.client.get("/readyz")
    assert ready.status_code == 503
    assert "repair" in ready.json()["detail"]
    with pytest.raises(Exception, match="stop it first"):
        repair(front.service.settings, NOW)
    front.service.stop()
    assert repair(front.service.settings, NOW) == {"events": 1, "questions": 1, "suggestions": 1}
    assert repair(front.service.settings, NOW)["events"] == 0
    with pytest.raises(InputError, match="name a model"):
        Service(front.service.settings, clock=front.clock)
    again = Service(front.service.settings, front.service.model_path, clock=front.clock)
    try:
        assert again.engine.dated_ahead() == ""
        records = again.engine.advisor.history.records
        assert records.question_at(90_001) >= 0
        assert records.question_at(90_002) < 0
    finally:
        again.stop()
    front.service.ready = False


def test_titles_that_came_with_the_model_are_forgotten(make_front: Make) -> None:
    """Questions asked before the service started are quoted as reasons."""
    front = make_front(
        policy={"mode": "automatic", "people": 5},
        deliver={"adapters": ["webhook"], "webhook_url": "http://127.0.0.1:9/",
                 "webhook_secrets": ["whsec_eA=="]},
    )  # fmt: skip
    records = front.service.engine.advisor.history.records
    for number in range(90_001, 90_006):
        front.ask(number)
    rows = everything(front.service.database)
    titles = records.titles
    quoted = next(
        q for q in range(len(titles)) if f"#{records.questions.id[q]} " in rows and titles[q]
    )
    title, user = titles[quoted], int(records.ids(records.questions.asker[quoted]))
    front.call("PATCH", f"/v1/people/{user}", {"handle": "Zebulon"})
    front.service.database.read()
    with front.service.database.write() as connection:
        part = {"asker": 5, "title": "thanks @zeBULON"}
        connection.execute(
            tables.topic_parts.insert().values(topic=1, at_ms=NOW, received_ms=NOW, payload=part)
        )
    front.ask(90_010, title="Is @zebulon there? And @ZEBULON, not @zebulon2", asker=5)
    assert front.call("DELETE", f"/v1/people/{user}").status_code == 200
    rows = everything(front.service.database)
    assert json.dumps(title)[1:40] not in rows
    assert "zebulon" not in rows.lower().replace("zebulon2", "")
    assert "zebulon2" in rows
    for path in folder_of(front).rglob("*"):
        if path.is_file():
            assert title.encode() not in path.read_bytes(), path


def test_a_backup_does_not_hold_the_key_of_its_digests(make_front: Make, tmp_path: Path) -> None:
    front = make_front()
    front.call("DELETE", "/v1/people/3")
    key = (folder_of(front) / "forget.key").read_bytes()
    assert len(key) == 64
    backup(front.service.settings, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        for name in archive.namelist():
            assert key not in archive.read(name), name
    assert key.decode() not in everything(front.service.database)


@pytest.fixture
def served(make_front: Make, request: pytest.FixtureRequest) -> Iterator[tuple[Front, str, int]]:
    """A service on a real port, with few connections and deadlines of a second, or of `param`."""
    seconds = getattr(request, "param", 1.0)
    limits = {"header_seconds": seconds, "body_seconds": seconds, "connections": 20}
    front = make_front(limits=limits)
    bound = listen("127.0.0.1", 0)
    config = config_of(front.service, create_app(front.service, background=False))
    config.lifespan = "off"
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield front, address_of(bound), bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def test_half_requests_are_closed(served: tuple[Front, str, int]) -> None:
    _, _, port = served
    halves = [b"GET /livez HTT", b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: ", b""]
    body = b"POST /v1/route HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in (*halves, body)]
    try:
        for made, sent in zip(opened, (*halves, body), strict=True):
            made.settimeout(10)
            made.sendall(sent)
        assert all(_rest(made) == b"" for made in opened[:-1])
        assert b" 408 " in _rest(opened[-1])
    finally:
        for made in opened:
            made.close()


def test_a_second_request_has_a_deadline_too_and_slow_readers_none(
    served: tuple[Front, str, int],
) -> None:
    _, _, port = served
    with socket.create_connection(("127.0.0.1", port)) as made:
        made.settimeout(10)
        for _ in range(2):  # a connection may wait between requests
            made.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while b"alive" not in answer:  # headers and body may come apart
                part = made.recv(4000)
                assert part, f"closed after {answer!r}"
                answer += part
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(1.2)
        made.sendall(b"GET /livez HTT")
        assert _rest(made) == b""


@pytest.mark.parametrize("served", [600.0], indirect=True)  # no deadline closes any of them
def test_connections_are_limited(served: tuple[Front, str, int]) -> None:
    _, _, port = served
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    try:
        closed: set[socket.socket] = set()
        give_up = time.monotonic() + 30
        while len(closed) < 10 and time.monotonic() < give_up:
            closed |= {*readable(opened, [], [], 0.2)[0]}  # nothing is sent: an end is read
        assert len(closed) == 10
        assert all(_rest(made) == b"" for made in closed)
    finally:
        for made in opened:
            made.close()


def _rest(made: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    try:
        while part := made.recv(4000):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def test_a_login_with_many_fields_or_from_elsewhere(make_front: Make) -> None:
    front = make_front()
    fields = "&".join(f"f{n}=1" for n in range(60))
    assert front.client.post("/login", content=fields).status_code == 422
    right = f"token={front.tokens['admin']}"
    elsewhere = {"origin": "https://evil.example"}
    assert front.client.post("/login", content=right, headers=elsewhere).status_code == 403
    here = {"origin": "http://testserver"}
    assert front.client.post("/login", content=right, headers=here).status_code == 303


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/tmp"])
def test_a_snapshot_with_a_strange_name_is_not_restored(
    make_front: Make, tmp_path: Path, name: str
) -> None:
    front = make_front()
    backup(front.service.settings, tmp_path / "b.zip")
    with (
        zipfile.ZipFile(tmp_path / "b.zip") as old,
        zipfile.ZipFile(tmp_path / "c.zip", "w") as new,
    ):
        for member in old.namelist():
            raw = old.read(member)
            if member == "tables/meta.jsonl":
                kept = json.loads(next(line for line in raw.splitlines() if b'"snapshot"' in line))
                real = json.loads(kept["value"])["name"]
                raw = raw.replace(real.encode(), name.encode())
            new.writestr(member, raw)
    target = front.service.settings.changed("store", {"folder": str(tmp_path / "new")}, "test")
    with pytest.raises(InputError, match="damaged"):
        restore(target, tmp_path / "c.zip")
    assert not list((tmp_path / "new").glob("*.npz"))


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_files_are_private(make_front: Make, tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        front = make_front()
        front.ask(90_001)
        front.service.snapshots.write()
        backup(front.service.settings, tmp_path / "b.zip")
    finally:
        os.umask(old)
    for path in (*folder_of(front).rglob("*"), tmp_path / "b.zip"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_titles_of_strangers_are_plain_text_in_messages() -> None:
    nasty = "[Claim](https://evil.example) **now** <b>x</b> @admins ![i](http://a) www.evil.example"
    made = plain_markdown(nasty)
    for markup in ("](", "**", "<b>", "@admins", "https://", "www.evil", "!["):
        assert markup not in made.replace("\\", "\0")
    assert plain_markdown("Why do leaves curl?") == "Why do leaves curl?"


@pytest.mark.parametrize(
    "address",
    ["64:ff9b:1::7f00:1", "64:ff9b::7f00:1", "fec0::1", "::127.0.0.1", "::1", "fe80::1", "fc00::1",
     "2002:7f00:1::", "::ffff:10.0.0.1", "169.254.169.254", "100.64.0.1"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


def test_a_press_in_slack_counts_once(make_front: Make) -> None:
    front = make_front(hooks={"slack_secret": "s"})
    front.ask(90_001)
    press = {"action_id": "accepted", "value": "1"}
    content = {"type": "block_actions", "actions": [press]}
    assert slack(front, content).json()["feedback"] == 1
    assert slack(front, content).json() == {
        "events": 0, "duplicates": 1, "forgotten": 0, "feedback": 0
    }  # fmt: skip


def test_an_old_message_about_a_user_changes_nothing(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})

    def user(name: str, **more: Any) -> Any:
        return discourse(front, "user_updated", {"user": {"id": 3, "username": name, **more}})

    user("old")
    user("new")
    front.clock.pass_hours(24 * 30)
    front.service.run_maintenance()
    assert user("old").json()["duplicates"] == 1
    assert front.service.engine.directory[3].handle == "new"


def test_a_wrong_token_costs_no_write(make_front: Make) -> None:
    front = make_front(limits={"failures_per_minute": 5})
    begun: list[str] = []
    event.listen(
        front.service.database.engine, "before_cursor_execute",
        lambda *given: begun.append(given[2]),
    )  # fmt: skip
    front.tokens["wrong"] = "atp_nobody"
    statuses = [front.call("GET", "/v1/people/3", scope="wrong").status_code for _ in range(10)]
    assert statuses == [401] * 5 + [429] * 5
    assert not [statement for statement in begun if "IMMEDIATE" in statement.upper()]


def test_quality_does_not_read_every_suggestion(make_front: Make) -> None:
    front = make_front()
    for number in range(90_001, 90_007):
        front.ask(number)
    for number in (90_001, 90_002):
        body = {"id": number + 5000, "question": number, "user": 3, "at": NOW / 1000}
        front.call("POST", "/v1/answers", body)
    front.service.apply_all()
    seen: list[str] = []
    event.listen(
        front.service.database.engine, "before_cursor_execute",
        lambda *given: seen.append(given[2]),
    )  # fmt: skip
    found = front.call("GET", "/v1/metrics/quality").json()
    assert (found["questions"], found["answered"], found["coverage"]) == (6, 2, 1.0)
    assert found["load"]["asks"] == 12
    assert sum(entry["people"] for entry in found["calibration"]) == 40
    with front.service.database.read() as connection:
        rows = connection.execute(select(tables.suggestions.c.place)).scalars()
        places = [place for place in rows if place]
    assert found["mrr"] == pytest.approx(sum(1 / place for place in places) / 2)
    assert not [text for text in seen if "suggestions.ranking" in text or ".people," in text]


def test_a_proxy_that_is_named_is_trusted(make_front: Make) -> None:
    given = {"behind_proxy": True, "trusted_proxies": ["172.16.0.0/12", "127.0.0.1"]}
    front = make_front(server=given)
    config = config_of(front.service, create_app(front.service, background=False))
    assert config.proxy_headers
    assert config.forwarded_allow_ips == ["172.16.0.0/12", "127.0.0.1"]


def test_a_line_about_a_bug_keeps_its_time() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(run.JsonLines())
    record = logging.LogRecord("atpgraph.serve", logging.ERROR, "", 0, "bug", None, None)
    record.facts = {"kind": "ValueError", "at": "parse:7", "what": "x"}
    handler.emit(record)
    line = json.loads(stream.getvalue())
    assert line["at"].startswith("20")
    assert line["what"] == "bug"


def test_signatures_are_compared_over_the_raw_body(make_front: Make) -> None:
    front = make_front(hooks={"discourse_secret": SECRET})
    body = json.dumps(topic(1)).encode()
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    sent = {"x-discourse-event": "topic_created", "x-discourse-event-signature": f"sha256={mac}"}
    other = front.client.post("/v1/hooks/discourse", content=body + b" ", headers=sent)
    assert other.status_code == 401
