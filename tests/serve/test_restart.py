"""Events are the truth: restarts, crashes, two processes, a database that goes away."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from atpgraph.cqa import Advisor, Question
from atpgraph.serve.service import Service
from atpgraph.serve.settings import Settings
from atpgraph.serve.store import events
from atpgraph.serve.store.database import Database, DatabaseGoneError, NotInChargeError
from atpgraph.serve.store.tables import METADATA
from tests.serve.conftest import NOW, Front, Make
from tests.serve.receiver import receiver


def stream(n: int, seed: int = 0, users: int = 60) -> Iterator[tuple[str, dict[str, Any]]]:
    """Questions, answers, acceptances and votes as a site would send them, some late."""
    rng = random.Random(seed)
    asked: list[int] = []
    given: list[tuple[int, int]] = []
    for number in range(n):
        at = (NOW + 60_000 * (number - rng.choice([0, 0, 0, 5]))) / 1000
        kind = rng.choices(["questions", "answers", "acceptances", "votes"], [4, 4, 1, 1])[0]
        if kind == "questions" or not asked:
            tag = rng.choice(["tomatoes", "compost", "pruning", "new"])
            words = " ".join(rng.choices(["leaf", "soil", "prune", "water", "bean", "frost"], k=4))
            asked.append(800_000 + number)
            yield "questions", {"id": asked[-1], "title": f"{tag} {words}", "tags": [tag],
                                "asker": rng.randrange(users), "at": at}  # fmt: skip
        elif kind == "answers" or not given:
            given.append((900_000 + number, rng.choice(asked)))
            yield "answers", {"id": given[-1][0], "question": given[-1][1],
                              "user": rng.randrange(users + 5), "at": at}  # fmt: skip
        elif kind == "acceptances":
            answer, question = rng.choice(given)
            yield "acceptances", {"question": question, "answer": answer, "at": at}
        else:
            answer = rng.choice(given)[0]
            yield "votes", {"id": f"v{number}", "answer": answer, "value": 1, "at": at}


QUESTIONS = [
    Question("Why do tomato leaves curl?", tags=["tomatoes"], asker=7),
    Question("compost smells of frost", tags=["compost", "new"]),
    Question("prune a bean in water"),
]


def ranked(advisor: Advisor) -> list[list[tuple[int, float, str]]]:
    """What an advisor says, in full."""
    return [
        [(p.user, round(p.score, 9), p.reasons[0].text if p.reasons else "") for p in found.people]
        for found in (advisor.ask(question, top=20) for question in QUESTIONS)
    ]


def send(front: Front, items: list[tuple[str, dict[str, Any]]]) -> None:
    for kind, body in items:
        answer = front.call("POST", f"/v1/{kind}", body)
        assert answer.status_code == 202, answer.text


def test_a_restart_is_the_snapshot_and_the_events_since(
    make_front: Make, database_url: str
) -> None:
    front = make_front(database_url)
    items = list(stream(120))
    send(front, items[:60])
    front.service.settle()
    front.service.snapshots.write()
    for item in items[60:]:  # one by one
        send(front, [item])
        front.service.settle()
    before, rows = ranked(front.service.desk.current()), front.suggestions(limit=100)
    applied = front.service.desk.seq
    assert applied > front.service.snapshots.written_seq + 50
    settings, model = front.service.settings, front.service.model_path
    front.service.desk.seq = front.service.snapshots.written_seq  # so that stopping writes nothing
    front.service.ready = False
    front.service.stop()
    again = Service(settings, model, clock=front.clock)
    try:
        assert again.desk.seq == applied
        assert ranked(again.desk.current()) == before
        again.settle()
        with again.database.read() as connection:
            from atpgraph.serve.store.suggestions import page_of

            assert len(page_of(connection, limit=100).rows) == len(rows)
    finally:
        again.stop()


def test_one_by_one_is_the_same_as_all_at_once(make_front: Make) -> None:
    """2,000 events through the service, against the same history taken in at once."""
    front = make_front()
    front.clock.pass_hours(1000)  # history only: questions are too old to be routed
    items = list(stream(2000, seed=3))
    service = front.service
    from atpgraph.serve import contract

    kinds = {"questions": contract.QuestionIn, "answers": contract.AnswerIn,
             "acceptances": contract.AcceptanceIn, "votes": contract.VoteIn}  # fmt: skip
    arrivals = [kinds[kind].model_validate(body).arrival() for kind, body in items]
    service.desk.append(arrivals)
    service.settle()  # questions one by one, what is between them together
    base = Advisor.open(service.model_path)
    last, dated = base.history.last_ms - 1, []
    for arrival in arrivals:  # what comes late counts from when it came
        event = replace(arrival.event, at_ms=max(arrival.event.at_ms, last))
        if type(event).__name__ in ("Asked", "Answered"):
            last = event.at_ms
        dated.append(event)
    at_once = base.observe(dated)
    assert ranked(service.desk.current()) == ranked(at_once)
    # And as if trained on it: what is written and opened again has nothing of how it grew.
    saved = Advisor.open(at_once.save(service.folder / "whole"))
    assert [[p[0] for p in row] for row in ranked(saved)] == [
        [p[0] for p in row] for row in ranked(service.desk.current())
    ]


def test_two_processes_do_not_both_act(make_front: Make, database_url: str) -> None:
    front = make_front(database_url)
    with pytest.raises(NotInChargeError, match="Another process"):
        Service(front.service.settings, front.service.model_path)
    # One that lost its lock without noticing is kept out by the epoch.
    with front.service.database.write() as connection:
        from atpgraph.serve.store.database import put_meta

        put_meta(connection, "epoch", "99")
    with pytest.raises(NotInChargeError, match="taken over"):
        front.service.desk.expire()
    answer = front.call("POST", "/v1/suggestions/1/feedback", {"verdict": "accepted"})
    assert answer.status_code == 503
    front.service.ready = False


def test_the_database_goes_away_and_comes_back(make_front: Make) -> None:
    front = make_front()
    front.call("GET", "/v1/people/3")
    file = Path(front.service.settings.store.folder) / "service.sqlite"
    hidden = file.with_name("hidden")
    front.service.database.engine.dispose()
    file.rename(hidden)
    file.mkdir()  # nothing can be opened there
    body = {"id": 90_001, "title": "tomatoes", "at": NOW / 1000}
    answer = front.call("POST", "/v1/questions", body)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert front.client.get("/readyz").status_code == 503
    assert front.client.get("/livez").status_code == 200
    assert "atp_database_up 0" in front.call("GET", "/metrics").text
    route = front.call("POST", "/v1/route", {"title": "tomatoes"})
    assert route.status_code == 200  # ranking needs no database
    with pytest.raises(DatabaseGoneError):
        front.service.desk.apply()
    file.rmdir()
    hidden.rename(file)
    assert front.call("POST", "/v1/questions", body).status_code == 202
    front.service.settle()
    assert len(front.suggestions()) == 1


def test_postgres_goes_away_and_comes_back(make_front: Make, cluster: str) -> None:
    import psycopg

    from tests.serve.conftest import new_database

    url = new_database(cluster)
    front = make_front(url)
    name = url.rpartition("/")[2]
    with psycopg.connect(f"{cluster}/postgres", autocommit=True) as control:
        control.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        control.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        body = {"id": 90_001, "title": "tomatoes", "at": NOW / 1000}
        answer = front.call("POST", "/v1/questions", body)
        assert answer.status_code == 503
        assert front.client.get("/readyz").status_code == 503
        control.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert front.call("POST", "/v1/questions", body).status_code == 202
    front.service.settle()
    assert len(front.suggestions()) == 1


def test_events_that_do_not_fit_are_refused_once_and_for_all(make_front: Make) -> None:
    front = make_front()
    body = {"id": 95_001, "question": 123_456, "user": 3, "at": NOW / 1000}
    assert front.call("POST", "/v1/answers", body).status_code == 202
    front.service.settle()
    assert front.service.desk.seq == 1
    with front.service.database.read() as connection:
        assert events.after(connection, 0, 10) == []
    front.ask(123_456)  # now the question is there, and so the answer counts
    front.service.settle()
    assert front.suggestions()[0]["outcome"] == 3


def test_the_migrations_make_the_tables_that_queries_use(
    make_front: Make, database_url: str
) -> None:
    from sqlalchemy import inspect

    front = make_front(database_url)
    found = inspect(front.service.database.engine)
    for table in METADATA.sorted_tables:
        columns = {column["name"] for column in found.get_columns(table.name)}
        assert columns == {column.name for column in table.columns}, table.name
    with front.service.database.write() as connection:
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (99)")
    with pytest.raises(ValueError, match="use the newer atpgraph"):
        front.service.database.migrate()


def start(folder: Path, model: Path, hook: str) -> tuple[subprocess.Popen[str], str, str]:
    """The service as a process of its own; its address and, at the first time, its token."""
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ, "PYTHONPATH": str(root / "src"), "ATP_SERVE_POLICY_SHADOW": "false",
        "ATP_SERVE_POLICY_STALE_HOURS": "1000000", "ATP_SERVE_POLICY_INACTIVE_DAYS": "100000",
        "ATP_SERVE_POLICY_PER_DAY": "100000", "ATP_SERVE_POLICY_PER_WEEK": "100000",
        "ATP_SERVE_POLICY_REST_HOURS": "0", "ATP_SERVE_POLICY_LEAST_CONFIDENCE": "0",
        "ATP_SERVE_DELIVER_ADAPTERS": "webhook", "ATP_SERVE_DELIVER_WEBHOOK_URL": hook,
        "ATP_SERVE_DELIVER_WEBHOOK_SECRETS": "whsec_c2VjcmV0",
        "ATP_SERVE_DELIVER_ALLOW_PRIVATE": "127.0.0.1", "ATP_SERVE_LIMITS_PER_SECOND": "100000",
        "ATP_SERVE_STORE_SNAPSHOT_EVENTS": "40", "ATP_SERVE_LIMITS_BURST": "100000",
    }  # fmt: skip
    command = [sys.executable, "-m", "atpgraph", "serve", str(model), "--folder", str(folder),
               "--port", "0", "--json", "--quiet"]  # fmt: skip
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert started.stdout is not None
    import json

    said = json.loads(started.stdout.readline())
    return started, said["url"], said["token"] or ""


def crash(folder: Path, model: Path, kills: int, per_life: int, seed: int = 0) -> dict[str, Any]:
    """Kill the service again and again while events come in; what was acknowledged and sent."""
    import time

    rng, taken, items = random.Random(seed), [], stream(10**6, seed)
    token, longest = "", 0.0
    with receiver(200) as to:
        for life in range(kills + 1):
            began = time.monotonic()
            process, url, given = start(folder, model, f"{to.url}/hook")
            token = given or token
            try:
                with httpx.Client(
                    base_url=url, headers={"authorization": f"Bearer {token}"}, trust_env=False
                ) as client:
                    while client.get("/readyz").status_code != 200:
                        time.sleep(0.01)
                    longest = max(longest, time.monotonic() - began)
                    for _ in range(rng.randrange(1, per_life) if life < kills else 5):
                        kind, body = next(items)
                        answer = client.post(f"/v1/{kind}", json=body)
                        assert answer.status_code == 202
                        taken.append(answer.json()["name"])
                    if life == kills:
                        _wait_until_idle(client)
            finally:
                process.kill() if life < kills else process.terminate()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()
        database = Database(f"sqlite:///{folder / 'service.sqlite'}")
        from sqlalchemy import select

        from atpgraph.serve.store import tables

        with database.read() as connection:
            stored = list(connection.execute(select(tables.events.c.name)).scalars())
            made = connection.execute(select(tables.suggestions)).all()
            out = connection.execute(select(tables.outbox)).all()
        database.close()
        return {
            "taken": taken, "stored": stored, "suggestions": made, "outbox": out,
            "got": [got.json["data"]["suggestion"] for got in to.got],
            "ids": [got.headers["webhook-id"] for got in to.got], "longest": longest,
        }  # fmt: skip


def _wait_until_idle(client: httpx.Client) -> None:
    import time

    for _ in range(600):
        text = client.get("/metrics").text
        if "atp_events_waiting 0" in text and 'state="waiting"' not in text:
            return
        time.sleep(0.05)
    raise AssertionError("the service does not come to rest")


def check_crash(found: dict[str, Any]) -> None:
    assert set(found["taken"]) <= set(found["stored"]), "an acknowledged event was lost"
    assert len(found["stored"]) == len(set(found["stored"]))
    rounds = [(row.question, row.round) for row in found["suggestions"]]
    assert len(rounds) == len(set(rounds))
    per_suggestion: dict[int, set[str]] = {}
    for suggestion, name in zip(found["got"], found["ids"], strict=True):
        per_suggestion.setdefault(suggestion, set()).add(name)
    # A message may come twice if the process died before it knew of the answer, but always under
    # one id, by which a receiver knows it again.
    assert all(len(names) == 1 for names in per_suggestion.values())
    asked = {row.id for row in found["suggestions"] if row.people != "[]"}
    cancelled = {row.suggestion for row in found["outbox"] if row.state == "cancelled"}
    assert asked - cancelled <= set(per_suggestion)
    assert found["longest"] < 60


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")
def test_kill_9_at_random_moments(model: Path, tmp_path: Path) -> None:
    # benchmarks/serve.py --kills 100 is the long form.
    check_crash(crash(tmp_path / "work", model, kills=1, per_life=12))


def test_graceful_shutdown_keeps_everything(model: Path, tmp_path: Path) -> None:
    settings = Settings().changed("store", {"folder": str(tmp_path / "w")}, "test")
    service = Service(settings, model, clock=lambda: NOW)
    service.start()
    from atpgraph.serve import contract

    for kind, body in stream(20):
        made = contract.QuestionIn if kind == "questions" else None
        if made is not None:
            service.desk.append([made.model_validate(body).arrival()])
    service.stop()
    again = Service(settings, None, clock=lambda: NOW)
    try:
        assert again.desk.seq == again.snapshots.written_seq > 0
        assert np.all(again.desk.current().history.questions.id[-1] >= 800_000)
    finally:
        again.stop()
