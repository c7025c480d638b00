"""Features of meaning: the kernels against plain sums, and what they say of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.baselines.open_places import open_places
from atpgraph.cqa.routing.features.closeness import (
    Fading,
    close,
    close_answers,
    close_asked,
    meaning_features,
)
from atpgraph.cqa.routing.features.names import AXES, FEW, MEANING, NAMES
from atpgraph.cqa.routing.features.profiles import add_products, add_vectors, profiles
from atpgraph.cqa.routing.features.space import FeatureSpace
from atpgraph.cqa.routing.timeline.candidates import FEW_ANSWERS, new_users
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.meaning import UNIT, Meaning, dots
from atpgraph.cqa.routing.timeline.query import Query
from atpgraph.cqa.routing.timeline.records import Records


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
def test_kernels_do_what_plain_sums_do(seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.sort(rng.integers(0, people, answers))
    indptr = np.searchsorted(owner, np.arange(people + 1))
    question = rng.integers(0, 7, answers)
    accepted, faded = rng.random(answers) < 0.5, rng.random((answers, 3)).astype(np.float32)
    closeness = (2 * rng.random(7) - 1).astype(np.float32)
    found, plain = np.zeros((2, 7, people))
    close_answers(indptr, question.astype(np.int32), accepted, faded, closeness, found)
    value = closeness[question].astype(np.float64)
    each = np.maximum(value, 0) ** 2
    for row, part in enumerate((each, each * accepted, *(each * faded.T), value)):
        np.add.at(plain[row], owner, part)
    np.maximum.at(plain[6], owner, value)
    np.testing.assert_allclose(found, plain)
    asker = rng.integers(-1, people, 7)
    found, plain = np.zeros((2, 2, people))
    close_asked(asker, closeness, found)
    for person, near in zip(asker.tolist(), closeness.tolist(), strict=True):
        if person >= 0 and near > 0:
            plain[0, person] += near**2
            plain[1, person] = max(plain[1, person], near)
    np.testing.assert_allclose(found, plain)
    vectors = rng.integers(-127, 128, (7, 5)).astype(np.int8)
    some, total = np.where(rng.random(answers) < 0.2, -1, owner), np.zeros((people, 3))
    add_vectors(some, question, vectors, total)
    expected = np.zeros((people, 3))
    np.add.at(expected, some[some >= 0], vectors[question[some >= 0], :3])
    np.testing.assert_array_equal(total, expected)
    form, along = rng.random(people), rng.random(3)
    before = form.copy()
    add_products(total, along, form)
    np.testing.assert_allclose(form, before + total @ along)
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
    found = meaning_features(query, Fading.at(query), log_given)
    assert tuple(found) == MEANING
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
    found = profiles(week)
    assert found is not None
    person = int(np.argmax(week.n_given))
    unit = about.meaning.vectors[:, : len(AXES)].astype(np.float64) / UNIT  # type: ignore[union-attr]
    mine = unit[week.answers.question[week.answers_by(person)]]
    np.testing.assert_allclose(found[person], mine.sum(axis=0) / (len(mine) + 5.0))
    space, rng = FeatureSpace(), np.random.default_rng(1)
    weight = rng.normal(size=len(NAMES))
    everybody = np.arange(week.n_users)
    rows = space.rows(query, everybody)
    assert rows[:, [NAMES.index(name) for name in AXES]].any(axis=0).sum() > 20
    np.testing.assert_allclose(space.weighted(query, weight), rows @ weight, rtol=1e-8, atol=1e-8)


def test_vectors_of_ones_own_have_no_shared_axes(about: Records) -> None:
    assert about.meaning is not None
    own = replace(about, meaning=Meaning(about.meaning.model, about.meaning.vectors))
    assert not own.meaning.is_shared  # type: ignore[union-attr]
    rows = FeatureSpace().rows(Query.again(own, 450), np.arange(len(own.users)))
    assert not rows[:, [NAMES.index(name) for name in AXES]].any()
    assert rows[:, NAMES.index("meaning_max")].any()


def test_few_features_are_for_few(about: Records) -> None:
    query = Query.again(about, 450)
    columns = FeatureSpace().columns(query)
    given = query.history.n_given
    for name in FEW:
        most = 10 if name.startswith("few10") else 3
        plain = columns[name.split("_", 1)[1]] if "_" in name else np.ones(len(given))
        np.testing.assert_array_equal(columns[name], np.where(given <= most, plain, 0.0))


def test_words_alone_have_no_meaning(records: Records) -> None:
    plain = replace(records, meaning=None)
    query = Query.again(plain, 450)
    assert query.closeness is None
    assert not meaning_features(query, None, np.zeros(plain.users.shape))
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
    fading = Fading.at(again)
    np.testing.assert_allclose(fading.log_month, Fading.at(query).log_month)
    assert query.closeness is not None
    first = close(split, query.closeness, fading.each)
    second = close(query.history, query.closeness, Fading.at(query).each)
    for name in vars(first):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-12)


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
