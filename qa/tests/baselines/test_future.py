"""Nobody sees the future: deleting or changing all that came after a question moves no score."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from atpgraph_qa import Site, ingest
from atpgraph_qa.advisor.newcomers import welcome
from atpgraph_qa.baselines import METHODS
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.features import Features
from atpgraph_qa.ranking.names import NAMES
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.events import Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records
from qa.tests.conftest import SMALL, TEXT

NEEDS = {"doc2vec": "gensim", "coldroute": "myfm"}
# Only the router learns something else for those who answered.
ROWS = [(name, "all") for name in METHODS]
ROWS += [(name, "own") for name, method in METHODS.items() if issubclass(method, Router)]


@dataclass(frozen=True)
class Moment:
    """A question, when training ended before it, and whom to rank."""

    question: int
    split_ms: int
    asked_ms: int
    people: np.ndarray

    def query(self, records: Records) -> Query:
        (position,) = np.flatnonzero(records.questions.id == self.question)
        return Query.again(records, int(position))


@pytest.fixture(scope="module")
def records(site: Site) -> Records:
    """With vectors, so that every feature is there."""
    return Records.of(site, TEXT)


@pytest.fixture(scope="module")
def moment(records: Records) -> Moment:
    protocol = make_protocol(records, "time-all")
    cases = [case for _, part in protocol.periods() for case in part]
    case = next(case for case in cases[5:] if case.place >= 0)
    query = case.query
    return Moment(query.question.id, protocol.training.now, query.asked_ms, case.candidates)


def rewritten(dump: Path, folder: Path, moment: Moment, how: str) -> Records:
    """The dump with all posts and votes from a moment on deleted or changed, but the question."""
    folder.mkdir()
    asked = str(np.datetime64(moment.asked_ms, "ms"))
    chance = Random(0)
    for file in dump.glob("*.xml"):
        kept = []
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            date = re.search(r'CreationDate="([^"]*)"', line)
            number = re.search(r'\bId="(\d+)"', line)
            start = asked[:10] if file.name == "Votes.xml" else asked
            late = date is not None and date[1] >= start and file.name != "Users.xml"
            if file.name == "Posts.xml" and number and int(number[1]) == moment.question:
                line = re.sub(r' AcceptedAnswerId="\d+"', "", line)
            elif late and (how == "deleted" or file.name == "PostLinks.xml"):
                continue
            elif late:
                line = re.sub(r' AcceptedAnswerId="\d+"', "", line)
                line = re.sub(r'OwnerUserId="\d+"', f'OwnerUserId="{chance.randint(2, 90)}"', line)
                line = re.sub(r'(Title|Body)="[^"]*"', r'\1="quite another zzyzx text"', line)
                line = re.sub(r'Tags="[^"]*"', 'Tags="|unheard-of|"', line)
                line = re.sub(r'VoteTypeId="[123]"', f'VoteTypeId="{chance.choice("23")}"', line)
            # What the dump says as of its own day must not matter either.
            line = re.sub(r'\bScore="-?\d+"', 'Score="77"', line)
            line = re.sub(r'\b(ViewCount|AnswerCount)="\d+"', r'\1="5"', line)
            kept.append(line)
        (folder / file.name).write_text("".join(kept), encoding="utf-8")
    ingest(folder, folder.parent / "site")
    return Records.of(Site(folder.parent / "site"), TEXT)


@pytest.fixture(scope="module", params=["deleted", "changed"])
def other(
    request: pytest.FixtureRequest,
    dump: Path,
    records: Records,
    moment: Moment,
    tmp_path_factory: pytest.TempPathFactory,
) -> Records:
    folder = tmp_path_factory.mktemp(request.param) / "dump"
    made = rewritten(dump, folder, moment, request.param)
    later = len(records.answers) - History(records, moment.asked_ms).n_answers
    assert later > 50
    if request.param == "deleted":
        assert len(made.answers) == len(records.answers) - later
    else:
        assert len(made.acceptances) < len(records.acceptances)
    return made


@pytest.mark.parametrize(("name", "pool"), ROWS)
def test_no_score_depends_on_the_future(
    records: Records, other: Records, moment: Moment, name: str, pool: str
) -> None:
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{name} needs {NEEDS[name]}, which is not installed")
    scores = []
    for site in (records, other):
        options = {"plan": SMALL} if issubclass(METHODS[name], Router) else {}
        method = METHODS[name](pool, 0, **options)  # type: ignore[arg-type]
        method.fit(History(site, moment.split_ms))
        method.update(History(site, moment.asked_ms))
        scores.append(method.score(moment.query(site), moment.people))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-9)
    if name != "qdee":
        assert len(np.unique(scores[0])) > 1


def test_no_feature_depends_on_the_future(records: Records, other: Records, moment: Moment) -> None:
    rows = []
    for site in (records, other):
        query = moment.query(site)
        rows.append(Features(query).columns(query.history.codes(moment.people)).T)
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-6, atol=1e-9)
    varied = dict(zip(NAMES, rows[0].std(axis=0) > 0, strict=True))
    assert sum(varied.values()) > (76 if TEXT == "static" else 26)
    assert all(varied[name] for name in ("elo", "acceptance_rate", "mean_votes"))


def test_what_is_kept_does_not_carry_the_future_back(
    records: Records, other: Records, moment: Moment
) -> None:
    """The later half of the site is ranked first, with the same method and the same memo."""
    method = Router("all", plan=SMALL).fit(History(records, moment.split_ms))
    later = Query.again(records, len(records.questions) - 1)
    method.update(later.history).score(later, moment.people)
    method.update(History(records, moment.asked_ms))
    scores = method.score(moment.query(records), moment.people)
    fresh = Router("all", plan=SMALL).fit(History(other, moment.split_ms))
    fresh.update(History(other, moment.asked_ms))
    expected = fresh.score(moment.query(other), moment.people)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


def test_newcomers_do_not_see_the_future(records: Records, other: Records, moment: Moment) -> None:
    asked = History(records, moment.asked_ms)
    newcomers = [
        Newcomer(80_000, tags=(records.tags.names[0],), text=records.titles[7]),
        Newcomer(80_001, answered=(int(asked.questions.id[5]),)),
    ]
    people = np.append(moment.people, [80_000, 80_001])
    scores, evidence = [], []
    for site in (records, other):
        history = History(site, moment.asked_ms)
        router = Router("all", plan=SMALL).fit(History(site, moment.split_ms)).update(history)
        opened = welcome(history, newcomers)
        query = Query(opened, moment.asked_ms, moment.query(site).question)
        scores.append(router.score(query, people))
        evidence.append(opened.records.newcomers[80_000].questions.tolist())
    assert evidence[0] == evidence[1]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-9)
