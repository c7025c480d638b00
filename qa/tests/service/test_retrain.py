"""Learning again: judged on the last questions, kept back if worse."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from unittest.mock import Mock

import pytest

from atpgraph_qa import Advisor
from atpgraph_qa.service.training import judge
from qa.tests.service.conftest import Front, Make


def test_a_child_learns_and_is_judged(make_front: Make) -> None:
    front: Front = make_front(retrain={"least_questions": 20, "most_questions": 40})
    service = front.service
    history = service.engine.advisor.history
    from atpgraph_qa.service.tables import get_meta, put_meta

    with service.database.write() as connection:  # as if the weights were half as old
        put_meta(connection, "trained_ms", str(int(history.questions.asked_ms[150])))
    before = service.engine.model
    assert front.call("POST", "/v1/models/retrain").status_code == 202
    assert front.call("POST", "/v1/models/retrain").status_code == 409
    service.trainer.wait(600)
    found = service.trainer.last
    assert found["questions"] == 40
    better = found["new_mrr"] >= found["old_mrr"]
    assert found["state"] == ("in use" if better else "worse")
    assert (service.engine.model != before) == better
    listed = front.call("GET", "/v1/models").json()
    assert listed["in_use"] == service.engine.model
    assert listed["trained"][0]["state"] == found["state"]
    with service.database.read() as connection:
        moved = int(get_meta(connection, "trained_ms")) == history.last_ms
    assert moved == better
    assert front.call("POST", "/v1/route", {"title": "tomatoes"}).json()["people"]


def test_too_few_questions_to_judge(make_front: Make) -> None:
    front: Front = make_front()
    advisor = Advisor.load(front.service.model_path)
    found = judge(advisor, advisor.history.last_ms, 20, 40)
    assert found == {"verdict": "too few questions", "questions": 0}


def test_worse_weights_are_kept_back(make_front: Make) -> None:
    front: Front = make_front()
    trainer, before = front.service.trainer, front.service.engine.advisor
    trainer.take({"verdict": "worse", "questions": 9, "old_mrr": 0.5, "new_mrr": 0.4})
    assert front.service.engine.advisor is before
    assert trainer.last["state"] == "worse"
    front.clock.pass_hours(1)
    trainer.take({})  # the child died
    assert trainer.last["state"] == "failed"
    front.clock.pass_hours(1)
    trainer.take({"verdict": "too few questions", "questions": 3})
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    assert "too few questions" in front.client.get("/settings").text
    assert front.service.engine.advisor is before


def test_pressed_twice(make_front: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    front: Front = make_front()
    snapshots, started = front.service.snapshots, []
    write, child = snapshots.write, Mock(**{"poll.return_value": None})
    monkeypatch.setattr(snapshots, "write", lambda: (sleep(0.3), write())[1])
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: started.append(1) or child)
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda _: front.call("POST", "/v1/models/retrain"), range(2))
        assert sorted(answer.status_code for answer in answers) == [202, 409]
    assert started == [1]
