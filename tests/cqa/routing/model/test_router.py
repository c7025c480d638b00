from __future__ import annotations

import json

import numpy as np
import pytest

from atpgraph.cqa.routing.features.names import NAMES
from atpgraph.cqa.routing.model.router import Router
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.query import Query, Question
from atpgraph.cqa.routing.timeline.records import Records
from tests.cqa.routing.conftest import SMALL


def test_json_there_and_back(latest: History, router: Router) -> None:
    again = Router.from_json(json.loads(json.dumps(router.to_json())))
    query = Query.now(latest, Question(latest.records.texts.titles[3], asker=5))
    scores = router.score(query, latest.users)
    moved = again.over(router.space_.structure)
    np.testing.assert_array_equal(moved.score(query, latest.users), scores)
    assert moved.confidence(scores).sum() == pytest.approx(router.calibration_.reach)
    assert list(router.weights()) == list(NAMES)
    data = router.to_json()
    for bad in ({"features": ["answers"]}, {"model": {"mean": [0], "scale": [1], "weight": [2]}}):
        with pytest.raises(ValueError, match="it "):
            Router.from_json({**data, **bad})


def test_people_nobody_knows_get_one_score(latest: History, router: Router) -> None:
    query = Query.now(latest, Question(latest.records.texts.titles[3]))
    scores = router.score(query, np.array([10**9, 2 * 10**9]))
    assert scores[0] == scores[1]


def test_without_atp_no_graph_is_embedded(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[400]))
    bare = Router("all", plan=SMALL, without=("atp",)).fit(history)
    assert bare.space_.structure is None
    assert not any(bare.weights()[name] for name in ("atp_score", "level", "level_gap"))
