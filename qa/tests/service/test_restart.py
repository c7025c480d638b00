"""Events are the truth: restarts, crashes, two processes, a database that goes away."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from atpgraph_qa import Advisor
from atpgraph_qa.ranking.weekly import WEEKS
from atpgraph_qa.service import events
from atpgraph_qa.service.database import DatabaseGoneError, NotInChargeError
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.tables import METADATA
from atpgraph_qa.timeline.records import monday
from qa.tests.service.cluster import Cluster
from qa.tests.service.conftest import NOW, Front, Make
from qa.tests.service.crash import crash, ranked, stream


def send(front: Front, items: list[tuple[str, dict[str, Any]]]) -> None:
    for kind, body in items:
        answer = front.call("POST", f"/v1/{kind}", body)
        assert answer.status_code == 202, answer.text


def test_a_restart_is_the_snapshot_and_the_events_since(
    make_front: Make, database_url: str
) -> None:
    front = make_front(database_url)
    items = list(stream(120, NOW))
    send(front, items[:60])
    front.service.apply_all()
    front.service.snapshots.write()
    for item in items[60:]:  # one by one
        send(front, [item])
        front.service.apply_all()
    before, rows = ranked(front.service.engine.advisor), front.suggestions(limit=100)
    applied = front.service.engine.seq
    assert applied > front.service.snapshots.written_seq + 50
    settings, model = front.service.settings, front.service.model_path
    front.service.engine.seq = (
        front.service.snapshots.written_seq
    )  # so that stopping writes nothing
    front.service.ready = False
    front.service.stop()
    again = Service(settings, model, clock=front.clock)
    try:
        assert again.engine.seq == applied
        assert ranked(again.engine.advisor) == before
        again.apply_all()
        with again.database.read() as connection:
            from atpgraph_qa.service.suggestions import list_suggestions

            assert len(list_suggestions(connection, 100)[0]) == len(rows)
    finally:
        again.stop()


def test_one_by_one_is_the_same_as_all_at_once(make_front: Make) -> None:
    """2,000 events through the service, against the same history taken in at once."""
    front = make_front()
    front.clock.pass_hours(1000)  # history only: questions are too old to be routed
    items = list(stream(2000, NOW, seed=3))
    service = front.service
    from atpgraph_qa.service import schemas

    kinds = {"questions": schemas.QuestionIn, "answers": schemas.AnswerIn,
             "acceptances": schemas.AcceptanceIn, "votes": schemas.VoteIn}  # fmt: skip
    arrivals = [kinds[kind].model_validate(body).arrival() for kind, body in items]
    service.engine.append(arrivals)
    service.apply_all()  # questions one by one, what is between them together
    base = Advisor.load(service.model_path)
    last, dated = base.history.last_ms - 1, []
    for arrival in arrivals:  # what comes late counts from when it came
        event = replace(arrival.event, at_ms=max(arrival.event.at_ms, last))
        if type(event).__name__ in ("Asked", "Answered"):
            last = event.at_ms
        dated.append(event)
    now = service.engine.advisor.history.now
    at_once = base.observe(dated).later(now)
    assert ranked(service.engine.advisor) == ranked(at_once)
    # And as if trained on it: what is written and opened again has nothing of how it grew.
    saved = Advisor.load(at_once.save(service.folder / "whole"))
    assert [[p[0] for p in row] for row in ranked(saved.later(now))] == [
        [p[0] for p in row] for row in ranked(service.engine.advisor)
    ]


def test_two_processes_do_not_both_act(make_front: Make, database_url: str) -> None:
    front = make_front(database_url)
    with pytest.raises(NotInChargeError, match="Another process"):
        Service(front.service.settings, front.service.model_path)
    # One that lost its lock without noticing is kept out by the epoch.
    with front.service.database.write() as connection:
        from atpgraph_qa.service.tables import put_meta

        put_meta(connection, "epoch", "99")
    with pytest.raises(NotInChargeError, match="taken over"):
        front.service.suggester.expire()
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
    auth = front.client.app.state.auth  # type: ignore[attr-defined]
    auth._known = {digest: (token, 0.0) for digest, (token, _) in auth._known.items()}  # long ago
    route = front.call("POST", "/v1/route", {"title": "tomatoes"})
    assert route.status_code == 200  # ranking needs no database
    assert front.call("POST", "/v1/route", {"title": "a"}, scope="route").status_code == 503
    with pytest.raises(DatabaseGoneError):
        front.service.engine.apply()
    file.rmdir()
    hidden.rename(file)
    assert front.call("POST", "/v1/questions", body).status_code == 202
    front.service.apply_all()
    assert len(front.suggestions()) == 1


def test_a_wrong_statement_is_a_bug_not_a_lost_database(front: Front) -> None:
    with pytest.raises(DBAPIError, match="nowhere"), front.service.database.read() as connection:
        connection.execute(text("SELECT * FROM nowhere"))


def test_postgres_goes_away_and_comes_back(make_front: Make, cluster: Cluster) -> None:
    import psycopg

    url = cluster.empty_database()
    front = make_front(url)
    name = url.rpartition("/")[2]
    with psycopg.connect(f"{cluster.url}/postgres", autocommit=True) as control:
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
    front.service.apply_all()
    assert len(front.suggestions()) == 1


def test_events_that_do_not_fit_are_refused_once_and_for_all(make_front: Make) -> None:
    front = make_front()
    body = {"id": 95_001, "question": 123_456, "user": 3, "at": NOW / 1000}
    assert front.call("POST", "/v1/answers", body).status_code == 202
    front.service.apply_all()
    assert front.service.engine.seq == 1
    with front.service.database.read() as connection:
        assert events.after(connection, 0, 10) == []
    front.ask(123_456)  # now the question is there, and so the answer counts
    front.service.apply_all()
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


def test_an_older_schema_is_brought_up_to_date(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy import inspect, select

    from atpgraph_qa.service import database, tables
    from atpgraph_qa.service.database import Database

    store = Database(database_url or f"sqlite:///{tmp_path / 'old.sqlite'}")
    known = database.migrations()
    monkeypatch.setattr(database, "migrations", lambda: known[:2])
    assert store.migrate() == 2
    people = '[{"user": 7, "score": 1.0, "confidence": 0.3, "reasons": [{"kind": "similar", '
    people += '"text": "x", "questions": [31]}]}]'
    ranking = '[{"person": 7, "confidence": 0.3}, {"person": 8, "confidence": 0.03}]'
    values = f"5, 0, {NOW}, false, 'm', 'answered', '{people}', '{ranking}', '[]', '[]', '[]'"
    with store.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO suggestions (question, round, created_ms, shadow, model, state, people, "
            "ranking, baseline, decisions, notes, confidence, abstains, candidates, changed_ms, "
            f"outcome, place, resolved_ms) VALUES ({values}, "
            f"0.3, '', 9, {NOW}, 7, 1, {NOW})"
        )
    monkeypatch.undo()
    try:
        assert store.migrate() == known[-1][0] > 2
        assert "outbox_suggestion" in [
            i["name"] for i in inspect(store.engine).get_indexes("outbox")
        ]
        with store.read() as connection:
            row = connection.execute(select(tables.suggestions)).one()
            quoted = connection.execute(select(tables.quotes.c.question)).scalars().all()
            bins = connection.execute(select(tables.calibration)).all()
        assert (row.asked, row.asked_answered) == (1, True)
        assert quoted == [31]
        assert sorted((b.bin, b.people, b.observed) for b in bins) == [(1, 1, 0), (4, 1, 1)]
    finally:
        store.close()


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")
def test_kill_9_at_random_moments(model: Path, tmp_path: Path) -> None:
    # benchmarks/serve.py --kills 100 is the long form.
    crash(tmp_path / "work", model, kills=1).check()


def test_graceful_shutdown_keeps_everything(model: Path, tmp_path: Path) -> None:
    settings = Settings().changed("store", {"folder": str(tmp_path / "w")}, "test")
    service = Service(settings, model, clock=lambda: NOW)
    service.start()
    from atpgraph_qa.service import schemas

    for kind, body in stream(20, NOW):
        made = schemas.QuestionIn if kind == "questions" else None
        if made is not None:
            service.engine.append([made.model_validate(body).arrival()])
    service.stop()
    again = Service(settings, None, clock=lambda: NOW)
    try:
        assert again.engine.seq == again.snapshots.written_seq > 0
        assert np.all(again.engine.advisor.history.questions.id[-1] >= 800_000)
    finally:
        again.stop()


def test_no_older_snapshot_comes_after_somebody_was_forgotten(make_front: Make) -> None:
    front = make_front()
    service, done = front.service, threading.Event()

    def forget() -> None:
        service.forget(3, "test")
        done.set()

    thread = threading.Thread(target=forget)
    with service.snapshots.writing:  # as if one were being written
        thread.start()
        assert not done.wait(0.3)
        service.snapshots.write()  # which has the person
        assert not done.is_set()
    thread.join(60)
    assert done.is_set()
    (left,) = service.snapshots.folder.iterdir()
    assert int(Advisor.load(left).history.codes([3])[0]) < 0


def test_a_new_week_is_ready_before_anybody_asks(make_front: Make) -> None:
    front = make_front()
    for number, hours in ((90_001, 0.0), (90_002, 24 * 7)):
        front.clock.pass_hours(hours)
        body = {"id": number, "title": "tomatoes", "at": front.clock.now / 1000}
        front.call("POST", "/v1/questions", body)
        front.service.apply_all()
        records = front.service.engine.advisor.history.records
        start = monday(front.clock.now)
        # Would be computed now if it were not there.
        assert records.memo.get(WEEKS, start, lambda: None) is not None  # type: ignore[arg-type, return-value]
