"""The tables never change; what is cut out of them or added is what a dump would have shown."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa import Site
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import SETTLE_DAYS, Records, dated_votes
from atpgraph_qa.timeline.tables import AnswerTable

TABLES = ("questions", "answers", "acceptances", "votes")


def test_events_are_those_of_the_site(site: Site, records: Records) -> None:
    assert records.questions.id.tolist() == site.questions.id.tolist()
    assert records.ids(records.questions.asker).tolist() == site.questions.asker.tolist()
    pairs = zip(records.answers.question, records.ids(records.answers.owner), strict=True)
    given_ = zip(site.answers.question, site.answers.owner, strict=True)
    assert sorted(map(tuple, pairs)) == sorted(map(tuple, given_))
    assert len(records.acceptances) == np.count_nonzero(site.questions.accepted >= 0)
    for name in ("answers", "acceptances", "votes"):
        times = getattr(records, name)
        assert (np.diff(getattr(times, "given_ms" if name == "answers" else "known_ms")) >= 0).all()
    known_ms = dated_votes(site, site.answers)[2]
    assert ((known_ms % DAY_MS) == 0).all()
    known = dict(zip(records.acceptances.answer, records.acceptances.known_ms, strict=True))
    for answer, moment in known.items():
        assert moment >= records.answers.given_ms[answer]
        assert moment - records.answers.given_ms[answer] <= (SETTLE_DAYS + 1) * DAY_MS or (
            moment % DAY_MS == 0
        )


@pytest.mark.parametrize("share", [0.4, 0.8, 1.0])
def test_until_is_what_was_known_then(records: Records, share: float) -> None:
    last = len(records.questions) - 1
    moment = int(records.questions.asked_ms[min(int(last * share), last)])
    then, whole = History(records, moment), History(records.until(moment))
    assert (whole.n_questions, whole.n_answers) == (then.n_questions, then.n_answers)
    for name in ("best_answer", "is_accepted", "answer_votes", "n_given", "n_won"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(then, name))
    terms = whole.corpus.query(records.titles[0], records.bodies[0], ())
    present = whole.questions.present
    np.testing.assert_allclose(
        whole.corpus.bm25(terms, present), then.corpus.bm25(terms, then.questions.present)
    )
    assert whole.tags.of(then.n_questions - 1) == records.tags.of(then.n_questions - 1)


def test_without_hides_all_that_belongs_to_a_question(records: Records) -> None:
    hidden = np.arange(0, len(records.questions), 7)
    history = History(records.without(hidden))
    gone = np.isin(history.answers.question, hidden)
    assert (history.answers.owner[gone] == -1).all()
    assert not history.is_accepted[gone].any()
    assert not history.answer_votes[gone].any()
    assert (history.questions.asker[hidden] == -1).all()
    assert set(history.posts().questions.asker[hidden].tolist()) == {-1}
    assert (history.posts().questions.accepted[hidden] == -1).all()
    rest = ~gone
    np.testing.assert_array_equal(history.answer_votes[rest], History(records).answer_votes[rest])


@given(st.data())
def test_with_answers_is_a_timeline_that_had_them(records: Records, data: st.DataObject) -> None:
    """Against a plain list of (moment, question, user) that is sorted anew."""
    size = data.draw(st.integers(0, 6))
    known = int(records.users[10])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    question = rng.integers(0, len(records.questions), size)
    user = rng.choice([known, 5, 70_000, 80_000], size)
    given_ms = records.questions.asked_ms[question] + rng.integers(0, 9 * DAY_MS, size)
    accepted = (
        (History(records).best_answer[question] < 0)
        & (rng.random(size) < 0.5)
        & (np.bincount(question, minlength=len(records.questions))[question] == 1)
    )
    new = AnswerTable(given_ms, question, user, np.full(size, -1))
    after = records.with_answers(new, accepted)
    assert set(after.users) == set(records.users) | set(user)

    def listed(of: Records) -> list[tuple[int, int, int]]:
        answers = of.answers
        return list(zip(answers.given_ms, answers.question, of.ids(answers.owner), strict=True))

    added = list(zip(given_ms, question, user, strict=True))
    expected = sorted(listed(records) + added, key=lambda row: row[0])
    assert sorted(listed(after)) == sorted(expected)
    assert [row[0] for row in listed(after)] == [row[0] for row in expected]
    assert after.ids(after.questions.asker).tolist() == (
        records.ids(records.questions.asker).tolist()
    )
    before_, after_ = History(records), History(after)
    codes = after.codes(records.users)
    extra = np.bincount(after.codes(user), minlength=len(after.users))
    np.testing.assert_array_equal((after_.n_given - extra)[codes], before_.n_given)
    won = np.bincount(after.codes(user[accepted]), minlength=len(after.users))
    np.testing.assert_array_equal((after_.n_won - won)[codes], before_.n_won)
    assert sorted(after_.answer_votes.tolist()) == sorted(
        before_.answer_votes.tolist() + [0.0] * size
    )


def test_nothing_changes_the_tables_it_was_made_from(records: Records) -> None:
    def snapshot() -> list[bytes]:
        return [
            getattr(getattr(records, name), column.name).tobytes()
            for name in TABLES
            for column in fields(getattr(records, name))
        ]

    before = snapshot()
    moment = int(records.questions.asked_ms[300])
    records.until(moment)
    records.without([1, 2])
    one = np.array([3])
    records.with_answers(AnswerTable(np.array([moment]), one, one, -one), np.array([False]))
    assert snapshot() == before
    assert replace(records).memo is not records.memo


def test_codes_of_ids_far_apart(records: Records) -> None:
    far = replace(records, users=records.users * 10**9)
    assert far.codes(records.users * 10**9).tolist() == list(range(len(records.users)))
    assert far.codes([-1, 3]).tolist() == [-1, -1]
    assert records.codes([-1, 10**12]).tolist() == [-1, -1]
