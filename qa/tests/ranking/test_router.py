from __future__ import annotations

import json

import numpy as np
import pytest

from atpgraph_qa.ranking.names import GROUPS, NAMES
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question
from atpgraph_qa.timeline.records import Records
from qa.tests.conftest import SMALL


def test_json_there_and_back(latest: History, router: Router) -> None:
    again = Router.from_json(json.loads(json.dumps(router.to_json())))
    query = Query.now(latest, Question(latest.records.titles[3], asker=5))
    scores = router.score(query, latest.users)
    np.testing.assert_array_equal(again.score(query, latest.users), scores)
    assert again.confidence(scores).sum() == pytest.approx(router.calibration_.reach)
    data = router.to_json()
    for bad in ({"features": ["answers"]}, {"model": {"mean": [0], "scale": [1], "weight": [2]}}):
        with pytest.raises(ValueError, match="it "):
            Router.from_json({**data, **bad})


def test_people_nobody_knows_get_one_score(latest: History, router: Router) -> None:
    query = Query.now(latest, Question(latest.records.titles[3]))
    scores = router.score(query, np.array([10**9, 2 * 10**9]))
    assert scores[0] == scores[1]


def test_groups_can_be_left_out(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[400]))
    bare = Router("all", plan=SMALL, without=("tags", "asker")).fit(history)
    weight = dict(zip(NAMES, bare.model_.weight.tolist(), strict=True))
    assert not any(weight[name] for group in ("tags", "asker") for name in GROUPS[group])
    assert weight["fading_15"]
