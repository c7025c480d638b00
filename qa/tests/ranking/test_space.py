"""Features: the same with and without what is kept, and true to a count by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atpgraph_qa.ranking.features import AT, Features
from atpgraph_qa.ranking.names import GROUPS, NAMES, names_of
from atpgraph_qa.ranking.user_stats import user_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records


def test_names() -> None:
    assert len(NAMES) == len(set(NAMES)) == 83
    assert names_of(("tags", "asker")) == set(GROUPS["tags"]) | set(GROUPS["asker"])


@pytest.mark.parametrize("position", [200, 450])
def test_scores_are_columns_times_weights(records: Records, position: int) -> None:
    features = Features(Query.again(records, position))
    weight = np.random.default_rng(0).normal(size=len(NAMES))
    codes = np.arange(len(records.users))
    columns = features.columns(codes)
    np.testing.assert_allclose(features.scores(codes, weight), weight @ columns, atol=1e-4)
    some = codes[::3][::-1]
    np.testing.assert_array_equal(features.columns(some), columns[:, some])
    np.testing.assert_array_equal(
        features.scores(some, weight), features.scores(codes, weight)[some]
    )
    assert not features.columns(np.array([-1])).any()
    assert (columns.std(axis=1) > 0).sum() > 25


def test_what_is_kept_changes_nothing(records: Records) -> None:
    """Questions in any order, and at other times in between, get the same features."""
    positions = [420, 300, 421, 300, 550, 420]
    codes = np.arange(len(records.users))

    def rows(of: Records, position: int) -> np.ndarray:
        query = Query.again(of, position)
        return Features(query).columns(codes)

    alone = {q: rows(replace(records), q) for q in set(positions)}
    for q in positions:
        np.testing.assert_array_equal(rows(records, q), alone[q])


def test_user_stats_by_hand(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[500]))
    found = user_stats(history)
    people = np.bincount(history.answers.question, minlength=history.n_questions)
    for code in range(0, history.n_users, 9):
        mine = history.answers_by(code).tolist()
        best = [history.best_answer[history.answers.question[a]] for a in mine]
        matches = [
            (b == a, 1 / people[history.answers.question[a]])
            for a, b in zip(mine, best, strict=True)
            if b >= 0 and people[history.answers.question[a]] > 1
        ]
        expected = sum(won - par for won, par in matches) / np.sqrt(len(matches) + 5.0)
        assert found["win_rate"][code] == pytest.approx(expected, abs=1e-9)
        assert found["answers"][code] == pytest.approx(np.log1p(len(mine)))
        first = [
            a
            for a in mine
            if a == np.flatnonzero(history.answers.question == history.answers.question[a])[0]
        ]
        assert found["first"][code] == pytest.approx((len(first) + 1) / (len(mine) + 2))


def test_rates_are_drawn_to_the_mean_as_far_as_people_are_alike(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[500]))
    found = user_stats(history)
    votes, owner = history.answer_votes, history.answers.owner
    mine = {code: votes[owner == code] for code in range(history.n_users)}
    noise = np.mean(np.concatenate([(v - v.mean()) ** 2 for v in mine.values() if len(v)]))
    seen = [(v.mean() - votes.mean()) ** 2 - noise / len(v) for v in mine.values() if len(v) > 1]
    pull = noise / max(np.mean(seen), 1e-4)
    for code in range(0, history.n_users, 9):
        total = mine[code].sum() + pull * votes.mean()
        expected = np.arcsinh(total / (len(mine[code]) + pull))
        assert found["mean_votes"][code] == pytest.approx(expected)
    decided = np.bincount(
        owner[history.best_answer[history.answers.question] >= 0], minlength=history.n_users
    )
    usual = history.n_won.sum() / decided.sum()
    some = decided > 1
    apart = (history.n_won[some] / decided[some] - usual) ** 2
    noise = usual * (1 - usual)
    pull = max(noise / max(np.mean(apart - noise / decided[some]), 1e-4) - 1, 0.5)
    drawn = (history.n_won + pull * usual) / (decided + pull)
    np.testing.assert_allclose(found["acceptance_rate"], np.log(drawn / (1 - drawn)))


def test_who_helped_the_asker(records: Records) -> None:
    query = next(
        query
        for position in range(590, 0, -1)
        if len((query := Query.again(records, position)).earlier_by_asker) > 2
    )
    history = query.history
    answers = np.flatnonzero(np.isin(history.answers.question, query.earlier_by_asker))
    columns = Features(query).columns(np.arange(history.n_users))
    helpers = set(history.answers.owner[answers].tolist()) - {-1}
    assert set(np.flatnonzero(columns[AT["helped_asker"]]).tolist()) == helpers
    accepted = set(history.answers.owner[answers[history.is_accepted[answers]]].tolist()) - {-1}
    assert set(np.flatnonzero(columns[AT["accepted_by_asker"]]).tolist()) == accepted


def test_before_anything_happened(records: Records) -> None:
    nothing = History(records, 0)
    query = Query(nothing, 1000)
    assert np.isfinite(Features(query).columns(np.arange(nothing.n_users))).all()


def test_the_minute_counts(latest: History) -> None:
    """A question is not taken for one that was asked earlier in the same hour."""
    codes = np.arange(latest.n_users)
    hour = -(-latest.last_ms // 3_600_000) * 3_600_000
    first = Features(Query(latest, hour)).columns(codes)
    later = Features(Query(latest, hour + 30 * 60_000)).columns(codes)
    assert np.any(first != later)
    alone = History(replace(latest.records), latest.now)
    np.testing.assert_array_equal(Features(Query(alone, hour + 30 * 60_000)).columns(codes), later)
