from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question, largest
from atpgraph_qa.timeline.records import Records


def test_a_question_is_asked_at_its_own_time(latest: History) -> None:
    assert Query.now(latest, Question()).asked_ms == latest.last_ms
    naive = Query.now(latest, Question(at=datetime(2030, 1, 1)))
    assert naive.asked_ms == 1_893_456_000_000
    away = Question(at=datetime(2030, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert Query.now(latest, away).asked_ms == naive.asked_ms


def test_asked_again_it_sees_what_was_known(records: Records) -> None:
    for position in (5, 250, 599):
        query = Query.again(records, position)
        assert query.history.n_questions <= position
        assert query.question.title == records.titles[position]
        assert list(query.question.tags) == records.tags.of(position)
        assert query.question.id == records.questions.id[position]
        assert query.asker == records.questions.asker[position]
        mine = [
            q
            for q in range(query.history.n_questions)
            if query.asker >= 0 and records.questions.asker[q] == query.asker
        ]
        assert query.earlier_by_asker.tolist() == mine


def test_a_new_question_is_compared_as_if_it_was_there(records: Records) -> None:
    """What the router learns from past questions holds for new ones."""
    for position in (5, 250, 599):
        again = Query.again(records, position)
        known = History(records.until(again.asked_ms), again.asked_ms)
        new = Query(known, again.asked_ms, again.question)
        for ours, theirs in zip(new.terms, again.terms, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(new.worth, again.worth)
        np.testing.assert_array_equal(new.match, again.match)


def test_unknown_askers_tags_and_words(latest: History) -> None:
    query = Query.now(latest, Question("zzqq", tags=("no-such-tag",), asker=10**9))
    assert query.asker == -1
    assert not len(query.tag_codes)
    assert query.terms[0].tolist() == [latest.corpus.tail.n_words + place for place in range(2)]
    assert query.best_match == 0.0
    assert not np.any(query.match)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_largest_in_one_pass(numbers: list[int], count: int) -> None:
    values = np.array(numbers, dtype=np.float32)
    order = np.argsort(-values, kind="stable")
    assert largest(values, count).tolist() == order[:count].tolist()
    assert largest(values, count, 0.0).tolist() == order[values[order] > 0][:count].tolist()
