"""Suggestions: the ranking is right, and what is not known is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atpgraph_qa.advisor.suggest import Ranker, suggest
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question
from qa.tests.twins import brute_force


def test_ranking_is_the_brute_force_one(latest: History, router: Router) -> None:
    rng = np.random.default_rng(0)
    for number in range(30):
        like = Query.again(latest.records, int(rng.integers(latest.n_questions)), latest)
        query = replace(like, asked_ms=latest.last_ms + number * 1_000_000)
        found = [person.user for person in suggest(Ranker(router), query, top=200).people]
        assert len(found) > 50
        assert found == brute_force(router, query, len(found))
        few = [person.user for person in suggest(Ranker(router), query, top=5).people]
        assert few == found[:5]


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
    latest: History, router: Router, title: str, tags: tuple[str, ...], asker: int, notes: int
) -> None:
    found = suggest(Ranker(router), Query.now(latest, Question(title, "", tags, asker)))
    assert len(found.people) == 5
    assert all(np.isfinite(person.score) for person in found.people)
    assert len(found.notes) == notes


def test_asker_with_one_question(latest: History, router: Router) -> None:
    asker = latest.questions.asker
    asked = np.bincount(asker[asker >= 0], minlength=latest.n_users)
    once = int(latest.users[np.flatnonzero(asked == 1)[0]])
    question = Question(latest.records.titles[0], asker=once)
    found = suggest(Ranker(router), Query.now(latest, question), top=400)
    assert once not in {person.user for person in found.people}
    assert len(found.people) == found.candidates


def test_weak_evidence_is_said(latest: History, router: Router) -> None:
    found = suggest(Ranker(router), Query.now(latest, Question()), least_confidence=1.1)
    assert "evidence is weak" in found.abstains
