from __future__ import annotations

import numpy as np
import pytest

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.weekly import moment_columns, weekly_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_activity_is_that_of_a_pass_over_all_answers(records: Records, share: float) -> None:
    position = int(len(records.questions) * share)
    query = Query.again(records, position)
    history = query.history
    week = weekly_stats(history)
    start, everybody = week.known, np.arange(history.n_users)
    assert 0 <= history.now - start.now < 7 * DAY_MS
    found = moment_columns(query, week, everybody, everybody.astype(np.int32))
    given = history.answers.given_ms
    for code in range(0, history.n_users, 7):
        mine = np.flatnonzero(history.answers.owner == code)
        away = (query.asked_ms - given[mine]) / DAY_MS
        for name, half_life in (("fading_3", 3), ("fading_60", 60), ("fading_365", 365)):
            expected = np.log(np.sum(0.5 ** (away / half_life)) + 0.02)
            assert found[name][code] == pytest.approx(expected, abs=1e-5)
        won = mine[mine < start.n_answers]
        won = won[start.is_accepted[won]]
        away_won = (query.asked_ms - given[won]) / DAY_MS
        expected = np.log(np.sum(0.5 ** (away_won / 60)) + 0.02)
        assert found["accepted_60"][code] == pytest.approx(expected, abs=1e-5)
        if len(mine):
            assert found["days_since"][code] == pytest.approx(-np.log(away.min() + 0.05), abs=1e-5)
            assert found["tenure"][code] == pytest.approx(np.log1p(away.max()), abs=1e-5)
    whole = Query.again(records, position, History(records))
    either = moment_columns(whole, weekly_stats(whole.history), everybody, everybody[:0])
    assert set(either) == set(found)
