from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa.routing.features.matching import (
    few_matching,
    few_matching_answers,
    find_largest,
    matching,
    matching_answers,
    matching_some,
)
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.records import Records
from tests.cqa.routing.twins import plain_few_matching, plain_matching


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 8))
def test_kernels_do_what_plain_sums_do(seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    questions = 7
    owner = np.sort(rng.integers(0, people, answers))
    common = (
        rng.random(answers) < 0.5,
        rng.random(answers),
        rng.random(questions) * (rng.random(questions) < 0.6),
    )
    indptr = np.searchsorted(owner, np.arange(people + 1))
    question = rng.integers(0, questions, answers)
    accepted, fresh, weight = common
    found, plain = np.zeros((2, 4, people))
    matching_answers(indptr, question.astype(np.int32), accepted, fresh, weight, found)
    plain_matching(indptr, question, accepted, fresh, weight, plain)
    np.testing.assert_allclose(found, plain)
    some = np.where(rng.random(answers) < 0.2, -1, rng.permutation(owner))
    place = rng.permutation(answers)
    found, plain = np.zeros((2, 4, people))
    few_matching_answers(some, question, accepted, place, fresh, weight, found)
    plain_few_matching(some, question, accepted, place, fresh, weight, plain)
    np.testing.assert_allclose(found, plain)


def test_matches_by_person_and_by_date_agree(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[400]))
    rng = np.random.default_rng(1)
    fresh = rng.random(len(history.by_person.answer))
    weight = np.zeros(history.n_questions)
    chosen = np.unique(rng.integers(0, history.n_questions, 20))
    weight[chosen] = rng.random(len(chosen))
    by_person, by_date = matching(history, weight, fresh), few_matching(history, weight, fresh)
    assert by_person[0].any()
    np.testing.assert_array_equal(by_person[:3], by_date[:3])
    np.testing.assert_array_equal(by_person[0], matching_some(history, chosen, weight))
    np.testing.assert_allclose(by_date[3], matching(history, weight**3, fresh)[0])


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_largest_in_one_pass(numbers: list[int], count: int) -> None:
    values = np.array(numbers, dtype=np.float64)
    best = np.full(count, -1, dtype=np.int64)
    found = find_largest(values, best)
    order = np.argsort(-values, kind="stable")
    assert best[:found].tolist() == order[values[order] > 0][:count].tolist()
