"""Features of meaning: the kernels against plain sums, and what they say of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.baselines.simple import open_places
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.features import AT, Features
from atpgraph_qa.ranking.names import AXES, FEW, MEANING
from atpgraph_qa.ranking.weekly import weekly_stats
from atpgraph_qa.timeline.meaning import UNIT, Meaning
from atpgraph_qa.timeline.query import FEW_ANSWERS, Query, candidates
from atpgraph_qa.timeline.records import Records
from qa.tests.twins import plain_columns


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


@pytest.mark.parametrize("position", [60, 200, 450, 599])
@pytest.mark.parametrize("meaning", [True, False])
def test_features_are_what_plain_sums_give(about: Records, position: int, meaning: bool) -> None:
    query = Query.again(about if meaning else replace(about, meaning=None), position)
    codes = np.arange(query.history.n_users)
    expected = plain_columns(query)
    np.testing.assert_allclose(Features(query).columns(codes), expected, rtol=2e-5, atol=2e-5)
    weight = np.random.default_rng(position).normal(size=len(expected))
    scores = Features(query).scores(codes, weight)
    np.testing.assert_allclose(scores, weight @ expected, atol=1e-3)


def test_training_and_serving_use_the_same_numbers(about: Records) -> None:
    """One feature at a time: the score of a person is the number that training sees, bit by bit."""
    features = Features(Query.again(about, 450))
    codes = np.arange(0, len(about.users), 3)
    columns = features.columns(codes)
    for place, one in enumerate(np.eye(len(columns))):
        np.testing.assert_array_equal(features.scores(codes, one), columns[place])


@given(st.integers(0, 2**32 - 1))
def test_closeness_of_vectors(seed: int) -> None:
    vectors = np.random.default_rng(seed).integers(-127, 128, (7, 5)).astype(np.int8)
    found = Meaning(None, vectors).closeness(vectors[0], 6)  # type: ignore[arg-type]
    products = vectors[:6].astype(int) @ vectors[0].astype(int)
    np.testing.assert_array_equal(found, products.astype(np.float32) * np.float32(1 / UNIT**2))


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
    columns = Features(query).columns(np.arange(history.n_users))
    found = {name: columns[AT[name]] for name in MEANING}
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
    week = weekly_stats(query.history)
    person = int(np.argmax(week.known.n_given))
    unit = about.meaning.vectors[:, : len(AXES)].astype(np.float64) / UNIT  # type: ignore[union-attr]
    mine = unit[week.known.answers.question[week.known.answers_by(person)]]
    profile = mine.sum(axis=0) / (len(mine) + 5.0)
    np.testing.assert_allclose(week.profiles[week.row[person]], profile, rtol=1e-5)
    columns = Features(query).columns(np.array([person]))
    found = columns[AT[AXES[0]] : AT[AXES[-1]] + 1, 0]
    np.testing.assert_allclose(found, profile * unit[450], rtol=1e-4, atol=1e-7)


def test_vectors_of_ones_own_have_no_shared_axes(about: Records) -> None:
    assert about.meaning is not None
    own = replace(about, meaning=Meaning(about.meaning.model, about.meaning.vectors))
    assert not own.meaning.is_shared  # type: ignore[union-attr]
    columns = Features(Query.again(own, 450)).columns(np.arange(len(own.users)))
    assert not columns[[AT[name] for name in AXES]].any()
    assert columns[AT["meaning_max"]].any()


def test_few_features_are_for_few(about: Records) -> None:
    query = Query.again(about, 450)
    columns = Features(query).columns(np.arange(query.history.n_users))
    given = query.history.n_given
    for name in FEW:
        most = 10 if name.startswith("few10") else 3
        plain = columns[AT[name.split("_", 1)[1]]] if "_" in name else np.ones(len(given))
        np.testing.assert_array_equal(columns[AT[name]], np.where(given <= most, plain, 0.0))


def test_words_alone_have_no_meaning(records: Records) -> None:
    plain = replace(records, meaning=None)
    query = Query.again(plain, 450)
    assert not len(query.closeness)
    columns = Features(query).columns(np.arange(len(plain.users)))
    assert not columns[[AT[name] for name in (*MEANING, *AXES)]].any()
    assert weekly_stats(query.history).profiles.shape[1] == 0


def test_newcomers_have_posted_and_answered_little(about: Records) -> None:
    query = Query.again(about, 450)
    people = candidates(query, "new")
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
