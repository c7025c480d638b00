"""Suggestions: the ranking is right, the reasons are true, newcomers are reached."""

from __future__ import annotations

import copy
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa import Site
from atpgraph.cqa.routing import (
    Dispatcher,
    Newcomer,
    Policy,
    Question,
    Records,
    Router,
    place,
    read_newcomers,
    suggest,
    welcome,
)
from atpgraph.cqa.routing._sums import (
    add_term,
    few_matching_answers,
    matching_answers,
    sum_by_owner,
)
from atpgraph.cqa.routing.history import History
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import InputError

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """The benchmark, which has the plain twins of the kernels and the brute-force ranking."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import route
    finally:
        sys.path.remove(str(BENCHMARKS))
    return route


def latest(records: Records) -> History:
    return records.at(records.at().last_ms)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 8))
def test_kernels_do_what_plain_sums_do(bench, seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.sort(rng.integers(-1, people, answers))
    weight = rng.random(answers)
    found, plain = np.zeros((2, people))
    sum_by_owner(owner, weight, found)
    bench.plain_sums(owner, weight, plain)
    np.testing.assert_allclose(found, plain)
    indptr = np.searchsorted(owner, np.arange(people + 1))
    indptr -= indptr[0]
    known = owner[owner >= 0]
    questions = 7
    arguments = (
        indptr,
        rng.integers(0, questions, len(known)).astype(np.int32),
        rng.random(len(known)) < 0.5,
        rng.random(len(known)),
        rng.random(questions) * (rng.random(questions) < 0.6),
    )
    found, plain = np.zeros((2, 4, people))
    matching_answers(*arguments, found)
    bench.plain_matching(*arguments, plain)
    np.testing.assert_allclose(found, plain)
    arguments = (
        rng.permutation(known) - (rng.random(len(known)) < 0.2),
        arguments[1].astype(np.int64),
        arguments[2],
        rng.permutation(len(known)),
        *arguments[3:],
    )
    found, plain = np.zeros((2, 4, people))
    few_matching_answers(*arguments, found)
    bench.plain_few_matching(*arguments, plain)
    np.testing.assert_allclose(found, plain)
    rows = np.flatnonzero(rng.random(questions) < 0.5).astype(np.int32)
    arguments = (
        rows,
        rng.integers(1, 5, len(rows)).astype(np.float64),
        rng.random(questions) < 0.7,
        rng.random(questions) * 50,
        *rng.random(4).tolist(),
    )
    found, plain = np.zeros((2, questions))
    add_term(*arguments, found)
    bench.plain_term(*arguments, plain)
    np.testing.assert_allclose(found, plain)


def test_ranking_is_the_brute_force_one(bench, records: Records, router: Router) -> None:
    history = latest(records)
    rng = np.random.default_rng(0)
    for number in range(30):
        like = int(rng.integers(len(records.titles)))
        question = replace(
            records.question(like, history), asked_ms=history.last_ms + number * 1_000_000
        )
        found = [person.user for person in suggest(router, question, top=200).people]
        assert len(found) > 50
        assert found == bench.brute_force(router, question, len(found))
        few = [person.user for person in suggest(router, question, top=5).people]
        assert few == found[:5]


def test_matches_by_person_and_by_date_agree(records: Records) -> None:
    history = records.at(int(records.questions.created_ms[400]))
    rng = np.random.default_rng(1)
    fresh = rng.random(len(history.by_person.answer))
    weight = np.zeros(history.n_questions)
    chosen = np.unique(rng.integers(0, history.n_questions, 20))
    weight[chosen] = rng.random(len(chosen))
    by_person, by_date = history.matching(weight, fresh), history.few_matching(weight, fresh)
    assert by_person[0].any()
    np.testing.assert_array_equal(by_person[:3], by_date[:3])
    np.testing.assert_array_equal(by_person[0], history.over_answers(chosen, weight))
    np.testing.assert_allclose(by_date[3], history.matching(weight**3, fresh)[0])


def number(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", text)]


@given(
    st.integers(0, 599), st.integers(0, 200), st.lists(st.integers(0, 15), max_size=3, unique=True)
)
def test_every_count_in_a_reason_is_true(
    site: Site, records: Records, router: Router, like: int, asker: int, tags: list[int]
) -> None:
    """Recounted from the tables of the site, post by post."""
    history = latest(records)
    names = tuple(records.tag_names[tag] for tag in tags)
    question = Question(history, history.last_ms, asker, records.titles[like], "", names)
    kinds = set()
    for person in suggest(router, question, top=3).people:
        mine = [
            (int(q), int(a))
            for a, q in enumerate(site.answers.question)
            if site.answers.owner[a] == person.user
        ]
        answered = {int(site.questions.id[q]) for q, _ in mine}
        won = {q for q, a in mine if site.questions.accepted[q] == a}
        for reason in person.reasons:
            kinds.add(reason.kind)
            assert set(reason.questions) <= answered
            if reason.kind == "accepted":
                decided = sum(1 for q, _ in mine if site.questions.accepted[q] >= 0)
                assert number(reason.text)[:2] == [len(won), decided]
            elif reason.kind == "tags":
                tag = reason.text.split(" tagged ")[1].split(",")[0]
                assert tag in names
                under = [q for q, _ in mine if tag in site.tags.of(q)]
                accepted = [q for q in under if q in won]
                counts = number(reason.text.replace(tag, ""))
                assert counts == [len(under), len(accepted)]
            elif reason.kind == "recent":
                age = [
                    (history.last_ms - int(site.answers.created_ms[a])) / DAY_MS for _, a in mine
                ]
                said = number(reason.text)
                # Within the hour to which the time of a question is rounded.
                assert said[0] in {sum(1 for d in age if d <= 30 + h) for h in (0, 1 / 24)}
                if "today" not in reason.text:
                    assert abs(said[2] - min(age)) <= 1 + 1 / 24
            elif reason.kind == "asker":
                theirs = {q for q, _ in mine if site.questions.asker[q] == asker}
                assert number(reason.text) == [len(theirs)]
            elif reason.kind == "similar":
                shown = re.findall(r"#(\d+)(?: “([^”]*)”)?( \(accepted\))?", reason.text)
                assert tuple(int(found[0]) for found in shown) == reason.questions
                for found, title, accepted in shown:
                    at = int(np.flatnonzero(site.questions.id == int(found))[0])
                    full = site.titles([at])[0]
                    assert full.startswith(title.rstrip("…"))
                    assert bool(accepted) == (at in won)
                assert number(reason.text)[0] >= len(shown)
            elif reason.kind == "level":
                level, top = number(reason.text)
                assert 0 < level <= top
    assert {"accepted", "recent"} <= kinds


@pytest.mark.parametrize(
    ("title", "tags", "asker", "notes"),
    [
        ("", (), -1, 0),
        ("zzzz qqqq", ("no-such-tag",), -1, 2),
        ("", (), 999_999, 1),
        ("?", (), 7, 1),
    ],
)
def test_little_is_known(
    records: Records, router: Router, title: str, tags: tuple[str, ...], asker: int, notes: int
) -> None:
    history = latest(records)
    found = suggest(router, Question(history, history.last_ms, asker, title, "", tags))
    assert len(found.people) == 5
    assert all(np.isfinite(person.score) for person in found.people)
    assert len(found.notes) == notes


def test_asker_with_one_question(records: Records, router: Router) -> None:
    history = latest(records)
    asked = np.bincount(records.asker[records.asker >= 0], minlength=len(records.users))
    once = int(records.users[np.flatnonzero(asked == 1)[0]])
    found = suggest(router, Question(history, history.last_ms, once, records.titles[0]), top=400)
    assert once not in {person.user for person in found.people}
    assert len(found.people) == found.candidates


def test_weak_evidence_is_said(records: Records, router: Router) -> None:
    history = latest(records)
    found = suggest(router, Question(history, history.last_ms), least_confidence=1.1)
    assert "evidence is weak" in found.abstains


def topic_tags(dump: Path) -> list[list[str]]:
    described = json.loads((dump / "truth.json").read_text(encoding="utf-8"))
    return [topic["tags"] for topic in described["topics"]]


def test_newcomers_get_questions_of_what_they_declare(
    dump: Path, records: Records, router: Router
) -> None:
    topics = topic_tags(dump)
    people = [Newcomer(10_000 + n, tags=(names[0],)) for n, names in enumerate(topics)]
    made, history = welcome(router, latest(records), people)
    assert history.n_users == len(records.users) + len(topics)
    for n, names in enumerate(topics):
        keeper = Dispatcher(Policy(newcomer_share=0.2, newcomer_answers=0))
        question = Question(history, history.last_ms, -1, "", "", tuple(names[:2]))
        scores = made.score(question, np.array([person.user for person in people]))
        assert int(np.argmax(scores)) == n
        found = suggest(made, question, dispatcher=keeper)
        assert [p.user for p in found.people if p.user >= 10_000] == [people[n].user]
    every = suggest(made, question, top=1000).people
    mine = next(person for person in every if person.user == people[-1].user)
    assert [reason.kind for reason in mine.reasons] == ["declared"]
    assert topics[-1][0] in mine.reasons[0].text
    known = set(records.questions.id.tolist())
    assert len(mine.reasons[0].questions) == 3
    assert set(mine.reasons[0].questions) <= known


def test_newcomers_change_nothing_for_the_others(records: Records, router: Router) -> None:
    before = latest(records)
    silent = int(before.users[int(np.flatnonzero(before.n_given == 0)[0])])
    arriving = [Newcomer(silent), Newcomer(1), Newcomer(77_777, text="nonsense qqq")]
    made, after = welcome(router, before, arriving)
    people = before.users
    first = router.score(Question(before, before.last_ms, 5, records.titles[3]), people)
    second = made.score(Question(after, after.last_ms, 5, records.titles[3]), people)
    np.testing.assert_allclose(first, second, atol=1e-9)
    assert not len(after.newcomers[77_777].questions)
    named = suggest(made, Question(after, after.last_ms, 5, records.titles[3]), top=1000).people
    assert 77_777 not in {person.user for person in named}


def test_newcomers_of_an_earlier_moment(records: Records, router: Router) -> None:
    """What comes later is gone, and the graph may be older."""
    then = records.at(int(records.questions.created_ms[300]))
    tag = (records.tag_names[0],)
    old = copy.copy(router).update(records.at(int(records.questions.created_ms[250])))
    made, history = welcome(old, then, [Newcomer(10_000, tags=tag)])
    assert (history.n_questions, history.n_answers) == (300, then.n_answers + 3)
    assert len(history.records.questions) == 300
    np.testing.assert_array_equal(np.delete(history.n_won, history.codes([10_000])), then.n_won)
    question = Question(history, history.last_ms, -1, records.titles[5], "", tag)
    assert 10_000 in {person.user for person in suggest(made, question, top=1000).people}
    placed = place(old.space_.structure, latest(records), Newcomer(10_000, tags=tag))
    assert len(placed.questions) == 3


def test_vectors_of_a_newcomer(records: Records, router: Router) -> None:
    history, structure = latest(records), router.space_.structure
    assert structure is not None
    assert structure.atp is not None
    placed = place(structure, history, Newcomer(10_000, tags=(records.tag_names[0],)))
    assert placed.source.shape == placed.target.shape == (structure.settings.n_components,)
    # Above the questions that stand for them: those point at the newcomer more than back.
    nodes = structure.question_node[placed.questions]
    there = structure.atp.source_[nodes] @ placed.target
    back = structure.atp.target_[nodes] @ placed.source
    assert (there > back).all()
    assert placed.level > structure.atp.levels_[nodes].max()


def test_first_answers_count(records: Records, router: Router) -> None:
    history = latest(records)
    unresolved = np.flatnonzero(history.best_answer < 0)[-2:]
    ids = tuple(history.question_id[unresolved].tolist())
    made, after = welcome(router, history, [Newcomer(10_000, answered=ids, accepted=ids[:1])])
    code = int(after.codes([10_000])[0])
    assert after.n_given[code] == 2
    assert after.n_won[code] == 1
    assert after.newcomers[10_000].level > 0
    question = replace(records.question(int(unresolved[0])), history=after, asked_ms=after.last_ms)
    found = suggest(made, question, top=1000).people
    mine = next(person for person in found if person.user == 10_000)
    assert mine.reasons[0].text == "newcomer, 2 first answers"
    assert set(mine.reasons[0].questions) == set(ids)


def test_newcomers_that_cannot_be(records: Records, router: Router, tmp_path: Path) -> None:
    history = latest(records)
    busy = int(history.users[int(np.argmax(history.n_given))])
    with pytest.raises(InputError, match="is no newcomer"):
        welcome(router, history, [Newcomer(busy)])
    with pytest.raises(InputError, match="does not have"):
        welcome(router, history, [Newcomer(10_000, answered=(987_654_321,))])
    with pytest.raises(InputError, match="twice"):
        welcome(router, history, [Newcomer(10_000), Newcomer(10_000)])
    path = tmp_path / "people.json"
    good = [{"user": 9, "tags": ["a"], "text": "b", "answered": [1], "accepted": []}]
    path.write_text(json.dumps(good))
    assert read_newcomers(path) == [Newcomer(9, ("a",), "b", (1,), ())]
    for bad in ("[", "{}", "[3]", '[{"tags": []}]', '[{"user": 1, "tags": "a"}]',
                '[{"user": 1, "name": "x"}]', '[{"user": 1, "text": 4}]',
                '[{"user": true}]'):  # fmt: skip
        path.write_text(bad)
        with pytest.raises(InputError, match=re.escape(str(path))):
            read_newcomers(path)
    with pytest.raises(InputError, match="Cannot read"):
        read_newcomers(tmp_path / "none.json")
