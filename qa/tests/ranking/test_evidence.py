"""Features of meaning: the kernels against plain sums, and what they say of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.baselines.open_places import open_places
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.evidence import (
    N_ROWS,
    add_forms,
    add_up,
    fetch,
    finish,
    gather,
    span,
    sum_answers,
    sum_asked,
)
from atpgraph_qa.ranking.names import AXES, FEW, MEANING, NAMES
from atpgraph_qa.ranking.profiles import add_vectors, profiles
from atpgraph_qa.ranking.space import FeatureSpace
from atpgraph_qa.timeline.candidates import FEW_ANSWERS, new_users
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import UNIT, Meaning, dots
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records
from qa.tests.twins import (
    listed,
    plain_fetch,
    plain_gather,
    plain_sum_answers,
    plain_sum_asked,
)


class Planted:
    """Stands for a text model of which only the vectors of the past are needed."""

    name = "planted"


@pytest.fixture(scope="module")
def about(records: Records) -> Records:
    """The site with random vectors that count as being on shared axes."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(records.questions), 40))
    vectors *= UNIT / np.linalg.norm(vectors, axis=1, keepdims=True)
    meaning = Meaning(Planted(), np.rint(vectors).astype(np.int8))  # type: ignore[arg-type]
    meaning.__dict__["is_shared"] = True
    return replace(records, meaning=meaning)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 8))
def test_evidence_is_what_plain_sums_give(seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    known, questions = int(rng.integers(0, people + 1)), 7  # some people are not in the index
    owner = np.sort(rng.integers(0, known, answers)) if known else np.zeros(0, dtype=np.int64)
    indptr, codes = np.searchsorted(owner, np.arange(known + 1)), rng.permutation(people)
    question = rng.integers(0, questions, len(owner)).astype(np.int32)
    like = (2 * rng.random((questions, 2)) - 1).astype(np.float32)
    like[:, 1] = np.maximum(like[:, 1], 0.0)
    some = codes[: int(rng.integers(1, people + 1))]
    first, end = span(some, indptr)
    at = listed(some, indptr)[1]
    assert first <= at.min(initial=end)
    assert at.max(initial=first - 1) < end <= len(owner)
    found, plain = np.zeros((2, end - first, 2), dtype=np.float32)
    fetch(question[first:end], like[:-1], found)  # the last question is still to come
    plain_fetch(question[first:end], like[:-1], plain)
    np.testing.assert_array_equal(found, plain)
    accepted, faded = rng.random(len(owner)) < 0.5, rng.random((len(owner), 3)).astype(np.float32)
    one = rng.random((N_ROWS, people))
    two = one.copy()
    answers_of = indptr, accepted, faded, first, found
    sum_answers(some, answers_of, one)
    plain_sum_answers(some, answers_of, two)
    limit = int(rng.integers(0, questions + 1))
    asked = np.concatenate([np.sort(part) for part in np.split(question, indptr[1:-1])])
    asked_by = indptr, asked, first, found
    sum_asked(some, asked_by, limit, one)
    plain_sum_asked(some, asked_by, limit, two)
    np.testing.assert_allclose(one, two)
    nothing = np.zeros(1, dtype=np.int64), asked[:0], 0, found[:0]
    none_late = nothing[0], accepted[:0], faded[:0], 0, found[:0]
    for late in (answers_of, none_late):
        everything = answers_of, late, asked_by, nothing, limit, rng.random(3)
        one, two = one[:, : len(some)].copy(), two[:, : len(some)].copy()
        gather(some, *everything, one)
        plain_gather(some, *everything, two)
        np.testing.assert_allclose(one, two)


def test_from_sums_to_what_logarithms_are_taken_of() -> None:
    rows = np.arange(1.0, N_ROWS + 1)[:, None]
    finish(rows, np.array([0.5, 0.25, 0.125]))
    expected = [
        *(1.02, 2.02, 3 / 2 + 0.02, 1.05),  # words
        *(5.02, 6.02, 7 / 2 + 0.02, 8 / 4 + 0.02, 9 / 8 + 0.02, 5.05),  # meaning
        *(11 / 4 + 0.02, 12.02, 13 + 5.0),  # activity, asked, given
        *(np.sqrt(14), 15, 16 / 18, 17),
    ]
    np.testing.assert_allclose(rows[:, 0], expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_adding_up_is_a_product_of_matrices(seed: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(size=(4, people)), rng.normal(size=(3, 4))
    weight[1:, 2] = 0.0
    n_given, codes = rng.integers(0, 20, 30).astype(np.float64), rng.permutation(30)[:people]
    profile, along = rng.random((9, 3)).astype(np.float32), rng.random(3)
    total = rng.random(people)
    few = n_given[codes]
    expected = total + weight[0] @ rows
    expected += (few <= 10) * (weight[1] @ rows) + (few <= 3) * (weight[2] @ rows)
    expected += profile[np.minimum(codes, 8)] @ along
    add_up(rows, weight, n_given, codes, total)
    add_forms(codes, profile, along, total)
    np.testing.assert_allclose(total, expected, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 8))
def test_products_of_vectors(seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    owner, question = rng.integers(-1, people, answers), rng.integers(0, 7, answers)
    vectors = rng.integers(-127, 128, (7, 5)).astype(np.int8)
    total, expected = np.zeros((2, people, 3))
    add_vectors(owner, question, vectors, total)
    np.add.at(expected, owner[owner >= 0], vectors[question[owner >= 0], :3])
    np.testing.assert_array_equal(total, expected)
    result = np.zeros(7, dtype=np.float32)
    dots(vectors, vectors[0], np.float32(0.5), result)
    np.testing.assert_array_equal(result, vectors.astype(int) @ vectors[0].astype(int) / 2)


def test_features_of_a_person_by_hand(about: Records) -> None:
    query = Query.again(about, 450)
    history = query.history
    person = int(np.argmax(history.n_given))
    mine = history.answers_by(person)
    unit = about.meaning.vectors.astype(np.float64) / UNIT  # type: ignore[union-attr]
    near = unit[history.answers.question[mine]] @ unit[450]
    days = (query.asked_ms - history.answers.given_ms[mine]) / DAY_MS
    squares = np.maximum(near, 0) ** 2
    log_given = np.log(history.n_given + 5.0)
    found = FeatureSpace().columns(query, np.arange(history.n_users), MEANING)
    assert set(MEANING) <= set(found)
    month = np.log(np.sum(squares * 2 ** (-days / 30)) + 0.02)
    asked = unit[:450][history.questions.asker == person] @ unit[450]
    expected = {
        "meaning_sum": np.log(squares.sum() + 0.02),
        "meaning_max": near.max(),
        "meaning_accepted": np.log(squares[history.is_accepted[mine]].sum() + 0.02),
        "meaning_recent": np.log(np.sum(squares * 2 ** (-days / 180)) + 0.02),
        "meaning_share": np.log(squares.sum() + 0.05) - log_given[person],
        "meaning_month": month,
        "meaning_days": np.log(np.sum(squares * 2 ** (-days / 10)) + 0.02),
        "meaning_month_share": month - np.log(np.sum(2 ** (-days / 30)) + 0.02),
        "meaning_mean": near.sum() / (len(mine) + 5.0),
        "meaning_asked": np.log(np.sum(np.maximum(asked, 0) ** 2) + 0.02),
        "meaning_asked_max": max(asked.max(initial=0.0), 0.0),
    }
    for name, value in expected.items():
        assert found[name][person] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def test_profiles_and_their_form(about: Records) -> None:
    query = Query.again(about, 450)
    week = History(about, query.asked_ms)
    profile = profiles(week)
    assert profile is not None
    person = int(np.argmax(week.n_given))
    unit = about.meaning.vectors[:, : len(AXES)].astype(np.float64) / UNIT  # type: ignore[union-attr]
    mine = unit[week.answers.question[week.answers_by(person)]]
    np.testing.assert_allclose(profile[person], mine.sum(axis=0) / (len(mine) + 5.0), rtol=1e-5)
    space, rng = FeatureSpace(), np.random.default_rng(1)
    weight = rng.normal(size=len(NAMES))
    everybody = np.arange(week.n_users)
    rows = space.rows(query, everybody)
    assert rows[:, [NAMES.index(name) for name in AXES]].any(axis=0).sum() > 20
    found = space.weighted(query, weight, everybody)
    np.testing.assert_allclose(found, rows @ weight, rtol=1e-8, atol=1e-8)


def test_vectors_of_ones_own_have_no_shared_axes(about: Records) -> None:
    assert about.meaning is not None
    own = replace(about, meaning=Meaning(about.meaning.model, about.meaning.vectors))
    assert not own.meaning.is_shared  # type: ignore[union-attr]
    rows = FeatureSpace().rows(Query.again(own, 450), np.arange(len(own.users)))
    assert not rows[:, [NAMES.index(name) for name in AXES]].any()
    assert rows[:, NAMES.index("meaning_max")].any()


def test_few_features_are_for_few(about: Records) -> None:
    query = Query.again(about, 450)
    columns = FeatureSpace().columns(query, np.arange(query.history.n_users))
    given = query.history.n_given
    for name in FEW:
        most = 10 if name.startswith("few10") else 3
        plain = columns[name.split("_", 1)[1]] if "_" in name else np.ones(len(given))
        np.testing.assert_array_equal(columns[name], np.where(given <= most, plain, 0.0))


def test_words_alone_have_no_meaning(records: Records) -> None:
    plain = replace(records, meaning=None)
    query = Query.again(plain, 450)
    assert query.closeness is None
    found = FeatureSpace().columns(query, np.arange(len(plain.users)))
    assert not set(found) & {*MEANING, *AXES}
    assert profiles(query.history) is None


def test_late_answers_count_as_others(about: Records) -> None:
    """Those after the index of people, which a live history appends."""
    query = Query.again(about, 450)
    whole = query.history.by_person
    keep = int(whole.indptr[-1]) - 5
    owner = np.repeat(np.arange(len(whole.indptr) - 1), np.diff(whole.indptr))
    late = replace(whole, indptr=np.minimum(whole.indptr, keep), late_owner=owner[keep:])
    split = History(about, query.asked_ms)
    split.__dict__["by_person"] = late
    again = Query(split, query.asked_ms, query.question, query.position)
    space, everybody = FeatureSpace(), np.arange(split.n_users)
    np.testing.assert_allclose(
        space.rows(again, everybody), space.rows(query, everybody), rtol=1e-12
    )


def test_newcomers_have_posted_and_answered_little(about: Records) -> None:
    query = Query.again(about, 450)
    people = new_users(query)
    history = query.history
    codes = history.codes(people)
    assert len(people)
    assert (history.n_given[codes] <= FEW_ANSWERS).all()
    assert query.question.asker not in people
    posted = np.union1d(history.questions.asker, history.answers.owner)
    assert np.isin(codes, posted).all()
    assert (history.n_given[codes] == 0).any()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=14),
    st.integers(1, 5),
)
def test_open_places(people: list[tuple[int, bool]], every: int) -> None:
    scores, few = np.array([float(s) for s, _ in people]), np.array([f for _, f in people])
    waiting = np.argsort(-scores, kind="stable").tolist()
    expected, listed = np.zeros(len(people), dtype=np.int64), 0
    for place in range(1, len(people) + 1):
        fresh = [person for person in waiting if few[person]]
        owed = place % every == 0 and listed < place // every
        person = fresh[0] if owed and fresh else waiting[0]
        listed += int(few[person])
        expected[person] = place
        waiting.remove(person)
    np.testing.assert_array_equal(open_places(scores, few, every), expected)
