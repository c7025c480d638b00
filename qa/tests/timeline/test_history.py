from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, active_users
from atpgraph_qa.timeline.records import Records
from atpgraph_qa.timeline.tables import Grouped


def test_sums_by_owner(records: Records) -> None:
    history = History(records)
    weight = np.random.default_rng(0).random(history.n_answers)
    plain, owner = np.zeros(history.n_users), history.answers.owner
    np.add.at(plain, owner[owner >= 0], weight[owner >= 0])
    np.testing.assert_allclose(history.per_user(weight), plain)


@given(st.lists(st.integers(-1, 6), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_an_index_of_a_part_finds_all(keys: list[int], indexed: int, known: int) -> None:
    column = np.array(keys, dtype=np.int64)
    part = column[:indexed]
    index = Grouped.of(part, int(part.max(initial=-1)) + 1)  # later keys may be larger
    for key in range(7):
        expected = np.flatnonzero(column[:known] == key)
        assert index.find([key], column[:known]).tolist() == expected.tolist()
    several = np.flatnonzero(np.isin(column[:known], [1, 3, 4]))
    assert index.find([1, 3, 4], column[:known]).tolist() == several.tolist()


@pytest.mark.parametrize("share", [0.2, 0.7, 1.0])
def test_counts_of_people_one_by_one(records: Records, share: float) -> None:
    moment = int(records.questions.asked_ms[int((len(records.questions) - 1) * share)])
    history = History(records, moment)
    table = records.answers
    for code in range(0, len(records.users), 11):
        mine = [
            a for a in range(len(table)) if table.owner[a] == code and table.given_ms[a] < moment
        ]
        assert history.n_given[code] == len(mine)
        assert history.answers_by(code).tolist() == mine
        assert history.last_answer_ms[code] == max((table.given_ms[a] for a in mine), default=0)
        assert history.n_won[code] == sum(history.best_answer[table.question[a]] == a for a in mine)


def test_answerers_of_every_question(records: Records) -> None:
    history = History(records)
    everybody, others = history.answerer_counts(), history.answerer_counts(but_asker=True)
    for question in range(len(records.questions)):
        people = set(history.answerers(question).tolist())
        assert everybody[question] == len(people)
        assert others[question] == len(people - {int(records.questions.asker[question])})


def test_results_are_kept_until_something_becomes_known(records: Records) -> None:
    asked = int(records.questions.asked_ms[200])
    first = History(records, asked)
    assert first.remember("test", "key", lambda: 1) == 1
    later = History(records, asked + 1)  # the question itself has become known
    assert later.remember("test", "key", lambda: 2) == 2
    quiet = min([int(records.questions.asked_ms[201]), asked + 1000, *_next(records, asked)])
    assert History(records, quiet).remember("test", "key", lambda: 3) == 2


def _next(records: Records, moment: int) -> list[int]:
    times = (records.answers.given_ms, records.acceptances.known_ms, records.votes.known_ms)
    return [int(t[np.searchsorted(t, moment, side="right")]) - 1 for t in times]


def test_active_users(records: Records) -> None:
    query = Query.again(records, 400)
    history = query.history
    everybody = set(active_users(query).tolist())
    owners = history.answers.owner[history.answers.owner >= 0]
    assert everybody == set(records.users[owners].tolist()) - {query.question.asker}
    lately = set(active_users(query, 30.0).tolist())
    assert lately < everybody
    since = history.last_ms - 30 * 86_400_000
    assert all(history.last_answer_ms[records.codes(user)] > since for user in lately)
