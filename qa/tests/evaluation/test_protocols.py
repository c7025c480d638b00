"""Test questions and their candidates."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa import Site
from atpgraph_qa.evaluation.protocols import (
    Split,
    best_answerer,
    make_protocol,
    protocol_names,
)
from atpgraph_qa.timeline.records import Records


def _naive_paper(site: Site, existing: bool) -> list[int]:
    questions, answers = site.questions, site.answers
    people: dict[int, set[int]] = {}
    for question, owner in zip(answers.question.tolist(), answers.owner.tolist(), strict=True):
        if owner >= 0:
            people.setdefault(question, set()).add(owner)
    chosen = []
    for asker in np.unique(questions.asker[questions.asker >= 0]).tolist():
        mine = np.flatnonzero(questions.asker == asker).tolist()
        good = [
            q
            for q in mine
            if questions.accepted[q] >= 0
            and answers.owner[questions.accepted[q]] >= 0
            and len(people.get(q, ())) >= 5
        ]
        if existing and len(mine) >= 2 and len(good) >= 2:
            chosen.append(good[-1])
        if not existing and len(mine) == 1 and good:
            chosen.append(good[0])
    return sorted(chosen)


@pytest.mark.data
@pytest.mark.parametrize("existing", [True, False])
def test_paper_questions_of_travel(travel: tuple[object, Site], existing: bool) -> None:
    _, site = travel
    name = "paper-existing" if existing else "paper-new"
    protocol = make_protocol(Records.of(site), name)
    assert sorted(protocol.test.tolist()) == _naive_paper(site, existing)


def test_time_split(records: Records) -> None:
    own, everybody = (make_protocol(records, name) for name in ("time-own", "time-all"))
    split = own.training.now
    created = records.questions.asked_ms
    assert (created >= split).mean() == pytest.approx(0.2, abs=0.01)
    best = best_answerer(records)
    expected = np.flatnonzero(
        (created >= split) & (best >= 0) & (best != records.ids(records.questions.asker))
    )
    assert everybody.test.tolist() == expected.tolist()
    for known, cases in everybody.periods():
        for case in cases:
            asked = case.query.asked_ms
            assert known.now <= asked
            before = records.answers.given_ms < asked
            owners = records.ids(records.answers.owner[before & (records.answers.owner >= 0)])
            people = np.unique(owners)
            assert case.candidates.tolist() == people[people != case.query.question.asker].tolist()
    for _, cases in own.periods():
        assert all(len(case.candidates) >= 2 and case.place >= 0 for case in cases)


def test_the_paper_hides_both_sets_of_test_questions(records: Records) -> None:
    existing, new = (make_protocol(records, f"paper-{kind}") for kind in ("existing", "new"))
    for each in (existing, new):
        hidden = np.flatnonzero(~each.training.questions.present)
        assert set(hidden) == set(existing.test) | set(new.test)


def test_names_and_settings_that_cannot_be(records: Records) -> None:
    assert protocol_names(["time", "time-own"]) == [
        "time-own",
        "time-all",
        "time-newcomers",
    ]
    with pytest.raises(InputError, match="did you mean 'time-all'"):
        protocol_names(["time-al"])
    with pytest.raises(InputError, match="There is no protocol 'x'"):
        make_protocol(records, "x")
    for bad in ({"test_share": 1.0}, {"refit_days": -1.0}, {"active_days": 0.0}):
        with pytest.raises(InputError):
            Split(**bad)  # type: ignore[arg-type]


def test_a_date_for_the_split(records: Records) -> None:
    moment = int(records.questions.asked_ms[300])
    protocol = make_protocol(records, "time-all", Split(split_ms=moment, active_days=30.0))
    assert protocol.training.now == moment
    assert protocol.test.min() >= 300
    case = next(case for _, cases in protocol.periods() for case in cases)
    assert len(case.candidates) < np.count_nonzero(case.query.history.n_given)
