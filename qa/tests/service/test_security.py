"""Tokens, scopes, secrets, injection, and that a forgotten person leaves no trace."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select

from atpgraph_qa import Advisor
from atpgraph_qa.service import run, tables, tokens
from atpgraph_qa.service.database import Database, DatabaseGoneError
from atpgraph_qa.service.events import Arrival
from atpgraph_qa.service.maintenance import backup
from atpgraph_qa.service.tables import METADATA
from atpgraph_qa.service.tokens import SCOPES
from atpgraph_qa.timeline.events import Answered
from qa.tests.service.cluster import Cluster
from qa.tests.service.conftest import NOW, Front, Make

# What anybody may see: health, the form to log in, style and script; hooks have signatures.
OPEN = {"/livez", "/readyz", "/login", "/static/{name}", "/", "/v1/hooks/{source}",
        "/opt-out/{person}/{code}"}  # fmt: skip


def routes(front: Front) -> list[tuple[str, str, str | None]]:
    """Method, path and scope of every route of the application."""
    found = []
    for route in _walk(front.client.app.routes):  # type: ignore[attr-defined]
        scopes = [
            getattr(part.call, "scope", None)
            for part in route.dependant.dependencies
            if getattr(part.call, "scope", None)
        ]
        scope = scopes[0] if scopes else None
        found += [(method, route.path, scope) for method in sorted(route.methods or ())]
    return found


def _walk(given: Any) -> Any:
    for route in given:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from _walk(route.original_router.routes)
        elif hasattr(route, "routes"):
            yield from _walk(route.routes or ())


def filled(path: str) -> str:
    values = {"source": "generic", "name": "app.css", "message": "msg_0"}
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], "1"), path)


def test_no_route_without_a_token_but_health(make_front: Make) -> None:
    front = make_front()
    seen = routes(front)
    assert len(seen) > 40
    for method, path, scope in seen:
        answer = front.client.request(method, filled(path), json={})
        if path in OPEN:
            assert answer.status_code != 403, path
        elif path == "/metrics":
            assert answer.status_code == 401
        else:
            assert scope in SCOPES, f"{method} {path} has no scope"
            away = answer.status_code == 303 and answer.headers["location"] == "/login"
            assert away or answer.status_code == 401, f"{method} {path}: {answer.status_code}"


def test_scopes_hold_on_every_route(make_front: Make) -> None:
    front = make_front()
    with front.service.database.write() as connection:
        for mine in SCOPES:  # nobody logs in who may not read
            secret = tokens.create_token(connection, mine, {"read", mine}, NOW)[1]
            front.tokens[f"page {mine}"] = secret
    seen = {True: 0, False: 0}
    for method, path, scope in routes(front):
        if scope is None:
            continue
        page = not path.startswith(("/v1", "/openapi"))
        for mine in SCOPES:
            allowed = mine in (scope, "admin") or (page and scope == "read")
            if page:
                answer = as_visitor(front, f"page {mine}", method, filled(path))
            else:
                answer = front.call(method, filled(path), {}, scope=mine)
            # Not any refusal will do: one for another reason would hide a scope that is not asked.
            refused = answer.status_code == 403 and "lacks the scope" in answer.text
            assert refused != allowed, f"{mine}: {method} {path} is {answer.status_code}"
            seen[allowed] += 1
    assert min(seen.values()) > 50


def as_visitor(front: Front, scope: str, method: str, path: str) -> Any:
    front.client.cookies.clear()
    front.client.post("/login", content=f"token={front.tokens[scope]}")
    answer = front.client.request(method, path, content="")
    front.client.cookies.clear()
    return answer


def test_forms_from_elsewhere_are_refused(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/inbox").text
    token = re.search(r'name="csrf" value="([^"]+)"', page)
    assert token
    path, sent = "/inbox/1/feedback", f"verdict=accepted&csrf={token[1]}"
    assert front.client.post(path, content="verdict=accepted").status_code == 403
    assert front.client.post(path, content="verdict=accepted&csrf=x").status_code == 403
    elsewhere = {"origin": "https://evil.example"}
    assert front.client.post(path, content=sent, headers=elsewhere).status_code == 403
    assert front.client.post(path, content=sent).status_code == 303
    assert front.suggestions()[0]["state"] == "accepted"
    # A cookie is no token: the API does not look at it.
    assert front.client.get("/v1/suggestions").status_code == 401


NASTY = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["'; DROP TABLE events; --", "<script>alert(1)</script>", "{{ 7*7 }}", "\"><img src=x>",
         "%s %(x)s ?", "\\'; --", "\x00", "\ud800", "𝕏" * 40, "' OR '1'='1", "</title><b>"]
    ),
)  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=NASTY, tag=NASTY, handle=NASTY, note=NASTY)
def test_injection(make_front: Make, title: str, tag: str, handle: str, note: str) -> None:
    front = make_front.shared() if hasattr(make_front, "shared") else _shared(make_front)  # type: ignore[attr-defined]
    number = front.clock.now = front.clock.now + 1
    tags = [tag] if tag.strip() and tag.isprintable() else []
    body = {"id": number, "title": title, "tags": tags, "asker": 7, "at": NOW / 1000}
    raw = json.dumps(body).encode()
    sent = {"authorization": f"Bearer {front.tokens['admin']}", "content-type": "application/json"}
    answer = front.client.post("/v1/questions", content=raw, headers=sent)
    assert answer.status_code in (202, 422), answer.text
    front.client.patch("/v1/people/3", content=json.dumps({"handle": handle}), headers=sent)
    front.service.apply_all()
    for path in ("/inbox", "/people", "/shadow", "/quality"):
        page = front.client.get(path)
        assert page.status_code == 200
        for text in (title, tag, handle):
            if "<" in text:
                assert text not in page.text
        assert "<script>alert" not in page.text
    assert front.call("GET", "/v1/suggestions").status_code == 200


def _shared(make_front: Any) -> Front:
    front = make_front()
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    make_front.shared = lambda: front
    return front


def test_pages_carry_their_policy_and_load_nothing_from_elsewhere(make_front: Make) -> None:
    front = make_front()
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    for path in ("/inbox", "/settings", "/try"):
        page = front.client.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page.text)
        assert " style=" not in page.text
        assert not re.search(r"\son\w+=", page.text)
    cookie = front.client.post("/login", content=f"token={front.tokens['read']}").headers
    assert "HttpOnly" in cookie["set-cookie"]
    assert "samesite=strict" in cookie["set-cookie"].lower()


def test_secrets_and_people_are_not_in_logs_or_pages(make_front: Make) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(run.JsonLines())
    logger = logging.getLogger("atpgraph.serve")
    logger.addHandler(handler)
    logger.setLevel("DEBUG")
    try:
        front = make_front(
            hooks={"discourse_secret": "S3CRET-in", "generic_secrets": ["S3CRET-gen"]},
            deliver={"slack_url": "https://hooks.slack.example/S3CRET-slack"},
        )
        front.ask(90_001, title="PRIVATE words", asker=4711)
        front.call("PATCH", "/v1/people/4712", {"handle": "PRIVATE-name"})
        front.call("GET", "/v1/people/4712")
        front.call("POST", "/v1/questions", {"id": "PRIVATE"})
        front.client.get("/v1/people/4712?x=PRIVATE")
        front.client.post("/login", content=f"token={front.tokens['admin']}")
        pages = "".join(front.client.get(path).text for path in ("/settings", "/people"))
        front.client.get("/v1/PRIVATE")
    finally:
        logger.removeHandler(handler)
        logger.setLevel("NOTSET")
    said = stream.getvalue()
    assert '"route": "/v1/people/{person}"' in said
    for line in said.splitlines():
        json.loads(line)
    for word in ("PRIVATE", "S3CRET", "4711", "4712", "atp_"):
        assert word not in said
    assert "S3CRET" not in pages
    assert front.tokens["read"] not in pages


def test_only_digests_of_tokens_are_stored(make_front: Make) -> None:
    front = make_front()
    front.call("GET", "/v1/people/3", scope="read")
    made = {"name": "new", "scopes": ["read"]}
    new = front.call("POST", "/v1/tokens", made, **{"idempotency-key": "k"}).json()["token"]
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    session = front.client.cookies["atp_session"]
    raw = b"".join(path.read_bytes() for path in folder_of(front).rglob("*") if path.is_file())
    for secret in (*front.tokens.values(), new, session, front.service.first_token):
        assert secret
        assert secret.encode() not in raw


def test_an_admin_token_is_made_once_whatever_other_tokens_there_are(make_front: Make) -> None:
    front = make_front()
    database = front.service.database
    with database.write() as connection:
        connection.execute(tables.tokens.delete())
        tokens.create_token(connection, "forum", ["write"], NOW)
    front.service.first_token = ""
    front.service._first_token()
    with database.read() as connection:
        found = tokens.find_token(connection, front.service.first_token)
    assert found is not None
    assert found.may("admin")
    with database.write() as connection:
        tokens.revoke_token(connection, found.id, NOW, "test")
    front.service.first_token = ""
    front.service._first_token()  # who revoked it did so on purpose
    assert front.service.first_token == ""


def folder_of(front: Front) -> Path:
    return Path(front.service.settings.store.folder)


def everything(database: Database) -> str:
    """All rows of all tables as text."""
    with database.read() as connection:
        return json.dumps(
            {
                table.name: [list(row) for row in connection.execute(select(table))]
                for table in METADATA.sorted_tables
            }
        )


def test_a_forgotten_person_leaves_no_trace(
    make_front: Make, database_url: str, request: pytest.FixtureRequest
) -> None:
    front = make_front(
        database_url, policy={"mode": "automatic", "people": 5},
        deliver={"adapters": ["webhook"], "webhook_url": "http://127.0.0.1:9/",
                 "webhook_secrets": ["whsec_eA=="]},
    )  # fmt: skip
    user, handle = 700_123, "Zebulon"
    front.call("PATCH", f"/v1/people/{user}", {"handle": handle, "topics": ["tomatoes"]})
    front.ask(90_001, title="Xylocarp in my own words", body="by Zebulon", asker=user)
    for number in range(95_001, 95_004):
        body = {"id": number, "question": 90_001 if number == 95_001 else 90_002,
                "user": user, "at": NOW / 1000}  # fmt: skip
        front.ask(90_002, title="Thanks @Zebulon for the tomato leaves", asker=5)
        front.call("POST", "/v1/answers", body)
    front.service.apply_all()
    front.service.run_maintenance()
    front.ask(90_003, title="Xylocarp tomato leaves again", asker=5)
    front.call("POST", f"/v1/people/{user}/asks", {"kind": "mail"}, **{"idempotency-key": "z"})
    found = front.suggestions(question=90_003)[0]
    assert user in [entry["person"] for entry in found["ranking"]]
    front.call("POST", f"/v1/suggestions/{found['id']}/feedback",
               {"verdict": "reassigned", "person": user})  # fmt: skip
    front.service.snapshots.write()
    assert str(user) in everything(front.service.database)

    answer = front.call("DELETE", f"/v1/people/{user}", **{"idempotency-key": "d"})
    assert answer.status_code == 200, answer.text
    removed = answer.json()["removed"]
    assert removed["events"] == 4
    assert removed["settings"] == removed["questions"] == removed["history"] == 1
    assert removed["asks"] >= 2
    # The answer that is kept for a repetition of the request tells of numbers only.
    rows = everything(front.service.database)
    for word in (str(user), handle, "in my own words"):
        assert word not in rows
    for path in folder_of(front).rglob("*"):
        raw = path.read_bytes() if path.is_file() else b""
        for word in (f"user:{user}", handle, handle.lower(), "in my own words"):
            assert word.encode() not in raw, path
            assert word.encode("utf-16-le") not in raw, path
            assert word.encode("utf-32-le") not in raw, path
        assert user.to_bytes(8, "little") not in raw, path
    if database_url:
        for path in request.getfixturevalue("cluster").files():
            raw = path.read_bytes()
            for word in (f": {user},", handle, "in my own words"):
                assert word.encode() not in raw, path
    backup(front.service.settings, folder_of(front) / "later.zip")
    with zipfile.ZipFile(folder_of(front) / "later.zip") as archive:
        for name in archive.namelist():
            raw = archive.read(name)
            for word in (f"user:{user}", f": {user},", handle, "in my own words"):
                assert word.encode() not in raw, name
    (snapshot,) = (folder_of(front) / "snapshots").iterdir()
    advisor = Advisor.load(snapshot)
    assert advisor.history.codes([user])[0] < 0
    records = advisor.history.records
    theirs = records.question_at(90_001)
    assert records.titles[theirs] == ""
    assert records.meaning is None or not records.meaning.vectors[theirs].any()
    assert front.call("GET", f"/v1/people/{user}").status_code == 404

    # Nothing brings them back: neither a late event nor the old model.
    body = {"id": 95_900, "question": 90_002, "user": user, "at": NOW / 1000}
    front.call("POST", "/v1/answers", body)
    front.service.apply_all()
    front.call("PATCH", f"/v1/people/{user}", {"handle": handle})
    assert str(user) not in everything(front.service.database)
    assert front.service.engine.advisor.history.codes([user])[0] < 0
    # The others keep what they know.
    assert front.call("POST", "/v1/route", {"title": "tomato leaves"}).json()["people"]


def test_somebody_who_only_has_a_name_is_forgotten_as_well(make_front: Make) -> None:
    """They never posted, but others mention them."""
    front = make_front()
    front.call("PATCH", "/v1/people/700123", {"handle": "Zebulon"})
    front.ask(90_001, title="Ask @Zebulon about tomato leaves", asker=5)
    answer = front.call("DELETE", "/v1/people/700123").json()["removed"]
    assert (answer["history"], answer["settings"], answer["mentions"]) == (0, 1, 2)
    for path in folder_of(front).rglob("*"):
        assert not path.is_file() or b"zebulon" not in path.read_bytes().lower(), path


def test_the_name_of_a_person_may_be_a_word(make_front: Make) -> None:
    """A word that many use stays: it tells of nobody, and answers are found by it."""
    front = make_front()
    corpus = front.service.engine.advisor.history.corpus
    uses = corpus.counts.getnnz(axis=0)
    common = next(w for w, code in corpus.vocabulary.items() if w.isalpha() and uses[code] > 20)
    front.call("PATCH", "/v1/people/700123", {"handle": common})
    front.call("DELETE", "/v1/people/700123")
    assert common in front.service.engine.advisor.history.corpus.vocabulary


def test_a_person_of_the_first_model_does_not_come_back(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    best = front.suggestions()[0]["people"][0]["user"]
    assert front.call("DELETE", f"/v1/people/{best}").status_code == 200
    front.service.stop()
    for path in (folder_of(front) / "snapshots").iterdir():  # lost: only the old model is left
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    from atpgraph_qa.service.service import Service

    again = Service(front.service.settings, front.service.model_path, clock=front.clock)
    try:
        assert again.engine.advisor.history.codes([best])[0] < 0
    finally:
        again.stop()
    front.service.ready = False


@pytest.mark.parametrize("cookie", ["", "x", "a" * 500, "é".encode("latin-1").decode("latin-1")])
def test_made_up_cookies(make_front: Make, cookie: str) -> None:
    front = make_front()
    headers = {"cookie": f"atp_session={cookie}".encode("latin-1")}
    answer = front.client.get("/inbox", headers=headers)
    assert answer.status_code == 303


def test_an_event_that_comes_while_somebody_is_forgotten(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = make_front()
    front.ask(90_001)
    database, engine = front.service.database, front.service.engine
    write = database.write

    @contextlib.contextmanager
    def after_forgetting(**how: Any) -> Iterator[Any]:
        monkeypatch.undo()
        front.service.forget(3, "test")
        with write(**how) as connection:
            yield connection

    monkeypatch.setattr(database, "write", after_forgetting)
    engine.append([Arrival.of(Answered(9001, 90_001, 3, front.clock.now))])
    front.service.apply_all()
    assert engine.advisor.history.codes([3])[0] < 0
    with database.read() as connection:
        query = select(tables.events.c.person).order_by(tables.events.c.seq)
        persons = list(connection.execute(query).scalars())
    assert persons == [7, None]


def test_large_tables_are_vacuumed_without_a_deadline(cluster: Cluster) -> None:
    database = Database(cluster.empty_database())

    def hurry(connection: Any, _: Any) -> None:
        connection.execute("SET statement_timeout = 200")
        connection.commit()

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(database))
        database.migrate()
        event.listen(database.engine, "connect", hurry)
        database.engine.dispose()
        blocker = stack.enter_context(contextlib.closing(Database(f"{cluster.url}/atp")))
        with blocker.engine.connect() as other:
            other.exec_driver_sql("LOCK TABLE events")
            timer = threading.Timer(1.0, other.rollback)
            timer.start()
            database.erase_deleted()
            timer.join()
        with pytest.raises(DatabaseGoneError), database.read() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(1)")
