"""What the router learns from."""

from __future__ import annotations

import numpy as np

from atpgraph_qa.ranking.training import TrainingPlan, collect, right_answers
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records


def test_votes_teach_where_nobody_accepted(latest: History) -> None:
    accepted, voted = (right_answers(latest, "own", flag) for flag in (False, True))
    assert np.count_nonzero(voted >= 0) > np.count_nonzero(accepted >= 0)
    np.testing.assert_array_equal(voted[accepted >= 0], accepted[accepted >= 0])
    for position in np.flatnonzero((voted >= 0) & (accepted < 0)).tolist():
        answers = np.flatnonzero(latest.answers.question == position)
        owner = latest.answers.owner[answers]
        answers = answers[(owner >= 0) & (owner != latest.questions.asker[position])]
        votes = latest.answer_votes[answers]
        top = voted[position]
        assert latest.answer_votes[top] >= 2
        assert np.count_nonzero(votes >= latest.answer_votes[top]) == 1


def test_examples_know_how_often_the_right_person_was_there(latest: History) -> None:
    examples = collect(latest, "all", TrainingPlan(questions=200, voted=False))
    assert len(examples.position) + len(examples.missed) <= 200
    assert examples.accepted.all()
    assert 0.5 < examples.reach(1.0) <= 1.0
    for position in examples.missed.tolist():
        then = History(latest.records, int(latest.questions.asked_ms[position]))
        owner = latest.answers.owner[latest.best_answer[position]]
        assert then.n_given[owner] == 0 or owner == latest.questions.asker[position]


def test_questions_are_hidden_in_turn_where_time_plays_no_part(records: Records) -> None:
    plan = TrainingPlan(questions=60, folds=3)
    examples = collect(History(records), "own", plan)
    assert len(examples.position) == 60
    assert (np.diff(examples.position) > 0).all()
    people = History(records).answerer_counts(but_asker=True)
    sizes = np.bincount(examples.choices.group)
    assert sizes.tolist() == people[examples.position].tolist()
