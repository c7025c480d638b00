"""Newcomers are reached, by what they declare or by their first answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa.advisor.newcomers import evidence, read_newcomers, welcome
from atpgraph_qa.advisor.policies import Dispatcher, Policy
from atpgraph_qa.advisor.suggest import Ranker, suggest
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.events import Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question


def topic_tags(dump: Path) -> list[list[str]]:
    described = json.loads((dump / "truth.json").read_text(encoding="utf-8"))
    return [topic["tags"] for topic in described["topics"]]


def test_newcomers_get_questions_of_what_they_declare(
    dump: Path, latest: History, router: Router
) -> None:
    topics = topic_tags(dump)
    people = [Newcomer(10_000 + n, tags=(names[0],)) for n, names in enumerate(topics)]
    history = welcome(latest, people)
    assert history.n_users == latest.n_users + len(topics)
    for n, names in enumerate(topics):
        keeper = Dispatcher(Policy(newcomer_share=0.2, newcomer_answers=0))
        query = Query.now(history, Question(tags=tuple(names[:2])))
        scores = router.score(query, np.array([person.user for person in people]))
        assert int(np.argmax(scores)) == n
        found = suggest(Ranker(router), query, keeper)
        assert [p.user for p in found.people if p.user >= 10_000] == [people[n].user]
    every = suggest(Ranker(router), query, top=1000).people
    mine = next(person for person in every if person.user == people[-1].user)
    assert [reason.kind for reason in mine.reasons] == ["declared"]
    assert topics[-1][0] in mine.reasons[0].text
    assert len(mine.reasons[0].questions) == 3
    assert set(mine.reasons[0].questions) <= set(latest.questions.id.tolist())


def test_newcomers_change_nothing_for_the_others(latest: History, router: Router) -> None:
    silent = int(latest.users[int(np.flatnonzero(latest.n_given == 0)[0])])
    arriving = [Newcomer(silent), Newcomer(1), Newcomer(77_777, text="nonsense qqq")]
    after = welcome(latest, arriving)
    question = Question(latest.records.titles[3], asker=5)
    first = router.score(Query.now(latest, question), latest.users)
    second = router.score(Query.now(after, question), latest.users)
    np.testing.assert_allclose(first, second, atol=1e-9)
    assert not len(after.records.newcomers[77_777].questions)
    named = suggest(Ranker(router), Query.now(after, question), top=1000).people
    assert 77_777 not in {person.user for person in named}


def test_newcomers_of_an_earlier_moment(latest: History, router: Router) -> None:
    """What comes later is gone."""
    asked, names = latest.questions.asked_ms, latest.tags.names
    then = History(latest.records, int(asked[300]))
    newcomer = Newcomer(10_000, tags=(names[0],))
    history = welcome(then, [newcomer])
    assert (history.n_questions, history.n_answers) == (300, then.n_answers + 3)
    assert len(history.records.questions) == 300
    np.testing.assert_array_equal(np.delete(history.n_won, history.codes([10_000])), then.n_won)
    query = Query.now(history, Question(latest.records.titles[5], "", (names[0],)))
    assert 10_000 in {person.user for person in suggest(Ranker(router), query, top=1000).people}
    assert len(evidence(latest, newcomer)) == 3


def test_first_answers_count(latest: History, router: Router) -> None:
    unresolved = np.flatnonzero(latest.best_answer < 0)[-2:]
    ids = tuple(latest.questions.id[unresolved].tolist())
    after = welcome(latest, [Newcomer(10_000, answered=ids, accepted=ids[:1])])
    code = int(after.codes([10_000])[0])
    assert after.n_given[code] == 2
    assert after.n_won[code] == 1
    question = Query.again(latest.records, int(unresolved[0])).question
    found = suggest(Ranker(router), Query.now(after, question), top=1000).people
    mine = next(person for person in found if person.user == 10_000)
    assert mine.reasons[0].text == "newcomer, 2 first answers"
    assert set(mine.reasons[0].questions) == set(ids)


def test_newcomers_that_cannot_be(latest: History, tmp_path: Path) -> None:
    busy = int(latest.users[int(np.argmax(latest.n_given))])
    for people, why in (
        ([Newcomer(busy)], "is not a newcomer"),
        ([Newcomer(10_000, answered=(987_654_321,))], "does not have"),
        ([Newcomer(10_000), Newcomer(10_000)], "twice"),
    ):
        with pytest.raises(InputError, match=why):
            welcome(latest, people)
    path = tmp_path / "people.json"
    good = [{"user": 9, "tags": ["a"], "text": "b", "answered": [1], "accepted": []}]
    path.write_text(json.dumps(good))
    assert read_newcomers(path) == [Newcomer(9, ("a",), "b", (1,), ())]
    for bad in ("[", "{}", "[3]", '[{"tags": []}]', '[{"user": 1, "tags": "a"}]',
                '[{"user": 1, "name": "x"}]', '[{"user": 1, "text": 4}]',
                '[{"user": true}]', f'[{{"user": {2**63}}}]',
                f'[{{"user": 1, "answered": [{2**63}]}}]'):  # fmt: skip
        path.write_text(bad)
        with pytest.raises(InputError, match=re.escape(str(path))):
            read_newcomers(path)
    with pytest.raises(InputError, match="Cannot read"):
        read_newcomers(tmp_path / "none.json")
