"""A service that ranks in other processes, and corrects its confidence by what happened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from atpgraph_qa import Advisor
from atpgraph_qa.service.database import DatabaseGoneError
from atpgraph_qa.service.tables import calibration
from atpgraph_qa.timeline.query import Question
from qa.tests.service.conftest import DAY_MS, Make

TOMATOES = Question("Why do my tomato leaves curl in the greenhouse?", tags=("tomatoes",), asker=7)


def test_readers_route_as_the_service_does(make_front: Make) -> None:
    front = make_front(server={"readers": 1})
    engine = front.service.engine
    assert engine.readers is not None

    def check() -> None:
        used = engine.readers
        routed = engine.route(TOMATOES)
        engine.readers = None
        assert engine.route(TOMATOES) == routed
        engine.readers = used

    front.call("PATCH", "/v1/people/5555", {"topics": ["tomatoes"]})
    engine.place_newcomers()
    check()
    front.ask(9001)
    person = engine.route(TOMATOES).people[0].user
    body = {"id": 9002, "question": 9001, "user": person, "at": front.clock.now / 1000}
    assert front.call("POST", "/v1/answers", body).status_code == 202
    front.service.apply_all()
    check()
    front.service.forget(person, "test")
    check()
    front.call("PATCH", "/v1/people/5555", {"topics": []})
    engine.place_newcomers()
    check()
    assert person not in {p.user for p in engine.route(TOMATOES, top=20).people}


def test_the_service_goes_on_while_new_readers_start(
    make_front: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = make_front(server={"readers": 1})
    service, engine = front.service, front.service.engine
    assert engine.readers is not None
    front.call("PATCH", "/v1/people/5555", {"topics": ["tomatoes"]})
    engine.place_newcomers()
    start, old = engine.readers.started, engine.readers._readers

    def started(advisor: Advisor) -> Any:
        found = start(advisor)
        with ThreadPoolExecutor(1) as other:  # the lock is free, and events come in
            other.submit(front.ask, 9003).result(30)
            other.submit(service.apply_all).result(30)
        return found

    front.ask(9001)
    service.apply_all()
    monkeypatch.setattr(engine.readers, "started", started)
    service.snapshots.write()
    assert engine.readers._readers is old  # so little is not worth a restart
    monkeypatch.setattr("atpgraph_qa.service.maintenance.MANY_RECENT", 1)
    service.snapshots.write()
    assert engine.readers._readers is not old
    assert engine.advisor.history.records.n_recent == 1  # what came meanwhile
    assert engine.advisor.history.records.question_at(9003) >= 0
    routed = engine.route(TOMATOES)
    monkeypatch.setattr(engine, "readers", None)
    assert engine.route(TOMATOES) == routed


def test_confidence_is_corrected_by_outcomes(make_front: Make) -> None:
    front = make_front()
    engine, day = front.service.engine, front.clock.now // DAY_MS
    stated = engine.route(TOMATOES).people[0].confidence

    def happen(on: int) -> None:
        with front.service.database.write() as connection:
            for number, people in enumerate((100, 200)):
                row = {"day": on, "shadow": True, "bin": 4 + number, "people": people}
                row |= {"stated": 0.46 * people, "observed": round(0.16 * people)}
                connection.execute(calibration.insert().values(**row))

    happen(day)
    engine.recalibrate()  # today is not over
    assert engine.route(TOMATOES).people[0].confidence == stated
    front.clock.pass_hours(24)
    engine.recalibrate()
    corrected = engine.advisor.router.calibration_
    log_odds = corrected.shift + corrected.slope * np.log(0.46 / 0.54)
    assert abs(1 / (1 + np.exp(-log_odds)) - 0.16) < 0.03
    engine.recalibrate()  # what was learned from is not learned from again
    assert engine.advisor.router.calibration_ == corrected


def test_readers_that_are_not_used_end(make_front: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    front = make_front(server={"readers": 1})
    service, engine = front.service, front.service.engine
    assert engine.readers is not None
    front.ask(9001)
    monkeypatch.setattr("atpgraph_qa.service.maintenance.MANY_RECENT", 1)

    def gone(*_: Any) -> None:
        raise DatabaseGoneError(503, "The database does not answer.", wait=5)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "_continued", gone)
        with pytest.raises(DatabaseGoneError):
            service.snapshots.write()
    assert not service.snapshots.due()  # it was written

    def ended(_: Any) -> None:
        raise EOFError

    with monkeypatch.context() as patched:
        patched.setattr("atpgraph_qa.advisor.readers._Reader.receive", ended)
        with pytest.raises(EOFError):
            engine.readers.started(engine.advisor)
    # That no process is left is checked after every test.
