"""Test questions, candidates, and that nobody sees the future."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from atpgraph.cqa import Site, ingest
from atpgraph.cqa.routing import METHODS, Records, Router, make_protocol
from atpgraph.cqa.routing.protocols import best_answerer
from atpgraph.errors import InputError
from tests.cqa.routing.conftest import SMALL


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
    created = records.questions.created_ms
    assert (created >= split).mean() == pytest.approx(0.2, abs=0.01)
    best = best_answerer(records)
    expected = np.flatnonzero((created >= split) & (best >= 0) & (best != records.questions.asker))
    assert everybody.test.tolist() == expected.tolist()
    for known, cases in everybody.periods():
        for case in cases:
            asked = case.question.asked_ms
            assert known.now <= asked
            before = records.answers.created_ms < asked
            people = np.unique(records.answers.owner[before & (records.answers.owner >= 0)])
            assert case.candidates.tolist() == people[people != case.question.asker].tolist()
    for _, cases in own.periods():
        assert all(len(case.candidates) >= 2 and case.place >= 0 for case in cases)


def test_paper_questions_are_hidden(records: Records) -> None:
    hidden = np.arange(0, len(records.questions), 7)
    history = records.without(hidden).at()
    gone = np.isin(history.answer_question, hidden)
    assert (history.answer_owner[gone] == -1).all()
    assert not history.is_accepted[gone].any()
    assert (history.asker[hidden] == -1).all()
    labels = set(history.site().questions.asker[hidden].tolist())
    assert labels == {-1}


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="There is no protocol 'x'"):
        make_protocol(None, "x")  # type: ignore[arg-type]


def _mutate(dump: Path, folder: Path, moment: str, spare: int) -> Path:
    """The dump with everything from a moment on deleted or changed, but the question itself."""
    folder.mkdir()
    day = moment[:10]
    for file in dump.glob("*.xml"):
        kept = []
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            date = re.search(r'CreationDate="([^"]*)"', line)
            number = re.search(r'\bId="(\d+)"', line)
            late = date is not None and date[1] >= (day if file.name == "Votes.xml" else moment)
            if file.name == "Posts.xml" and number is not None and int(number[1]) == spare:
                line = re.sub(r' AcceptedAnswerId="\d+"', "", line)
            elif file.name in ("Posts.xml", "Votes.xml", "PostLinks.xml") and late:
                continue
            # What the dump says as of its own day must not matter either.
            line = re.sub(r'\bScore="-?\d+"', 'Score="77"', line)
            line = re.sub(r'\b(ViewCount|AnswerCount)="\d+"', r'\1="5"', line)
            kept.append(line)
        (folder / file.name).write_text("".join(kept), encoding="utf-8")
    return folder


def test_no_score_depends_on_the_future(dump: Path, records: Records, tmp_path: Path) -> None:
    protocol = make_protocol(records, "time-all")
    cases = [case for _, part in protocol.periods() for case in part]
    case = next(case for case in cases[5:] if case.place >= 0)
    asked = str(np.datetime64(case.question.asked_ms, "ms"))
    changed = _mutate(dump, tmp_path / "changed", asked, case.question.id)
    ingest(changed, tmp_path / "site")
    other = Records.of(Site(tmp_path / "site"))
    assert len(other.answers) < len(records.answers)
    names = [name for name in METHODS if name not in ("doc2vec", "coldroute")]
    for name in names:
        scores = []
        for site in (records, other):
            kwargs = {"plan": SMALL} if issubclass(METHODS[name], Router) else {}
            method = METHODS[name]("all", 0, **kwargs)  # type: ignore[call-arg]
            method.fit(site.at(protocol.training.now))
            method.update(site.at(case.question.asked_ms))
            place = np.flatnonzero(site.questions.id == case.question.id)[0]
            row = site.question(int(place))
            scores.append(method.score(row, case.candidates))
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-9, err_msg=name)
        if name not in ("qdee",):
            assert len(np.unique(scores[0])) > 1, name
