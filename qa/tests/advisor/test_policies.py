"""Rules hold whatever the ranking says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph_qa.advisor.policies import AskLog, Dispatcher, Policy, best
from atpgraph_qa.data.site import DAY_MS, QuestionTags
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question
from atpgraph_qa.timeline.records import Records
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    QuestionTable,
    VoteTable,
)


def people_who_answered(n: int) -> History:
    """Person i gave i answers to one question, the last of them on day 10 i."""
    owner = np.repeat(np.arange(n), np.arange(n))
    given_ms = np.maximum(owner * 10 * DAY_MS, 1)
    order = np.argsort(given_ms, kind="stable")
    nothing = np.zeros(0, dtype=np.int64)
    one = np.zeros(1, dtype=np.int64)
    return History(
        Records(
            users=np.arange(n),
            questions=QuestionTable(one, one, one - 1, np.ones(1, np.bool_)),
            answers=AnswerTable(given_ms[order], 0 * owner, owner[order], 100 + order),
            acceptances=AcceptanceTable(nothing, nothing),
            votes=VoteTable(nothing, nothing, nothing),
            tags=QuestionTags([], np.zeros(2, dtype=np.int64), nothing),
            titles=[""],
            corpus=Corpus.of([""], [""], [[]]),
        )
    )


def ask(known: History, now: int, asker: int = -1) -> Query:
    return Query(known, now, Question(asker=asker))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(1, 4)), max_size=40),
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.integers(0, 6)),
    st.sets(st.integers(0, 9), max_size=4),
    st.floats(0, 3),
    st.floats(0, 1),
    st.one_of(st.none(), st.floats(1, 100)),
    st.integers(0, 1000),
    st.booleans(),
)
@settings(max_examples=150)
def test_policies_hold(
    stream: list[tuple[int, int, int]],
    per_day: int | None,
    per_week: int | None,
    opted_out: set[int],
    spread: float,
    newcomers: float,
    inactive: float | None,
    seed: int,
    restart: bool,
) -> None:
    policy = Policy(frozenset(opted_out), inactive, per_day, per_week, spread, newcomers)
    dispatcher = Dispatcher(policy)
    rng = np.random.default_rng(seed)
    people = np.arange(10)
    now, asked = 95 * DAY_MS, []
    known = people_who_answered(10)
    for asker, hours, top in stream:
        now += hours * DAY_MS // 24
        if restart:  # as a program that keeps the record in a file between questions
            stored = json.loads(json.dumps(dispatcher.log.to_json()))
            dispatcher = Dispatcher(policy, AskLog.from_json(stored))
        choice = dispatcher.choose(ask(known, now, asker), people, rng.normal(size=10), top)
        assert choice.allowed[choice.positions].all()
        chosen = people[choice.positions]
        assert len(chosen) <= top
        assert len(set(chosen.tolist())) == len(chosen)
        assert asker not in chosen
        assert not opted_out & set(chosen.tolist())
        if inactive is not None:
            assert (known.last_answer_ms[chosen] > now - inactive * DAY_MS).all()
        asked += [(person, now) for person in chosen.tolist()]
    for limit, days in ((per_day, 1), (per_week, 7)):
        if limit is not None:
            for person, moment in asked:
                window = [
                    t for p, t in asked if p == person and moment - days * DAY_MS < t <= moment
                ]
                assert len(window) <= limit


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.floats(0, 1), st.integers(0, 1000))
def test_newcomers_get_their_share(tops: list[int], share: float, seed: int) -> None:
    """With newcomers enough for every question, never less than the share, rounded down."""
    dispatcher = Dispatcher(Policy(newcomer_share=share, newcomer_answers=7))
    rng = np.random.default_rng(seed)
    people, known = np.arange(16), people_who_answered(16)
    places = fresh = 0
    for number, top in enumerate(tops):
        scores = rng.normal(size=16) + people  # newcomers tend to score low
        choice = dispatcher.choose(ask(known, 95 * DAY_MS + number), people, scores, top)
        chosen = choice.positions
        assert choice.newcomers == int((known.n_given[chosen] <= 7).sum())
        places += len(chosen)
        fresh += int((known.n_given[chosen] <= 7).sum())
        assert fresh >= int(places * share)
        # Nobody who scores lower than somebody of the same kind is asked instead.
        for kind in (known.n_given <= 7, known.n_given > 7):
            mine = [i for i in chosen.tolist() if kind[i]]
            best = sorted(np.flatnonzero(kind).tolist(), key=lambda i: -scores[i])
            assert sorted(mine) == sorted(best[: len(mine)])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 35))
def test_best_is_the_head_of_the_full_order(scores: list[int], count: int) -> None:
    people = np.random.default_rng(0).permutation(len(scores))
    places = np.arange(len(scores))[::2]
    full = sorted(places.tolist(), key=lambda i: (-scores[i], people[i]))
    found = best(people, np.array(scores, dtype=np.float64), places, count)
    assert found.tolist() == full[:count]


def test_spread_shares_the_work() -> None:
    people, known = np.arange(4), people_who_answered(4)
    scores = np.array([2.0, 1.9, 1.8, 1.7])
    counts = {}
    for spread in (0.0, 1.0):
        dispatcher = Dispatcher(Policy(spread=spread))
        asked = [
            int(dispatcher.choose(ask(known, DAY_MS + hour), people, scores, 1).positions[0])
            for hour in range(20)
        ]
        counts[spread] = np.bincount(asked, minlength=4)
    assert counts[0.0].tolist() == [20, 0, 0, 0]
    assert counts[1.0].min() >= 3


def test_bad_policies_and_records_are_refused() -> None:
    for bad in ({"per_day": -1}, {"newcomer_share": 2.0}, {"spread": -0.5}, {"inactive_days": 0.0}):
        with pytest.raises(InputError):
            Policy(**bad)  # type: ignore[arg-type]
    for record in ({}, [], {"asked": {"x": [1]}, "places": 0, "newcomers": 0}):
        with pytest.raises(InputError):
            AskLog.from_json(record)


def test_the_log_goes_on_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "asked.json"
    log = AskLog.read(file)
    log.record([4, 7, 4], now_ms=DAY_MS)
    log.places, log.newcomers = 3, 1
    log.write(file)
    again = AskLog.read(file)
    assert again.to_json() == log.to_json()
    assert again.times_asked(4, DAY_MS + 1, 1.0) == 2
    file.write_text("{")
    with pytest.raises(InputError, match="is not a record of who was asked"):
        AskLog.read(file)


def test_confidence_knows_whom_the_rules_leave_out() -> None:
    idle_and_answers = np.array([[1.0, 20.0, 400.0, 2.0], [9.0, 1.0, 50.0, 3.0]])
    for policy, share in (
        (Policy(), 1.0),
        (Policy(inactive_days=180.0), 0.75),
        (Policy(inactive_days=180.0, least_answers=3), 0.5),
    ):
        assert Dispatcher(policy).expected_share(idle_and_answers) == share
    assert Dispatcher(Policy(inactive_days=1.0)).expected_share(np.zeros((2, 0))) == 1.0
