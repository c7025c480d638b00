"""One object from training to suggestions."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa import (
    Advisor,
    Answered,
    Asked,
    AskLog,
    Expertise,
    Forgotten,
    Newcomer,
    Policy,
    Question,
    Site,
    ingest,
    simulate_community,
    write_dump,
)
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from qa.tests.conftest import SMALL


@pytest.fixture(scope="module")
def question(site: Site) -> Question:
    return Question(site.titles([40])[0], "", tuple(site.tags.of(40)), asker=5)


def people(advisor: Advisor, question: Question, *rules: Policy, **options: object) -> list[int]:
    found = advisor.ask(question, *rules, **options)  # type: ignore[arg-type]
    return [person.user for person in found.people]


def test_it_is_the_router_that_ranks(
    advisor: Advisor, router: Router, question: Question, latest: History
) -> None:
    from atpgraph_qa.advisor.suggest import Ranker, suggest
    from atpgraph_qa.timeline.query import Query

    expected = suggest(Ranker(router, advisor.hierarchy), Query.now(latest, question))
    assert advisor.ask(question) == expected


def test_saved_and_opened_it_says_the_same(
    advisor: Advisor, model: Path, question: Question
) -> None:
    again = Advisor.load(model)
    assert again.ask(question) == advisor.ask(question)
    assert again.experts(5)[0].tolist() == advisor.experts(5)[0].tolist()
    tag = question.tags[0]
    in_tag = again.experts(4, tag)
    assert in_tag[0].tolist() == advisor.experts(4, tag)[0].tolist()
    assert in_tag[1] == pytest.approx(advisor.experts(4, tag)[1])


def test_expertise_is_that_of_the_site(advisor: Advisor, site: Site) -> None:
    """From the timeline, which has no dump any more, as from the site itself."""
    direct = Expertise.fit(site, n_components=8, random_state=0)
    np.testing.assert_array_equal(advisor.expertise.model.source_, direct.model.source_)
    np.testing.assert_array_equal(
        advisor.expertise.difficulty(site.questions.id), direct.difficulty(site.questions.id)
    )
    tag = site.tags.names[3]
    np.testing.assert_array_equal(advisor.experts(9, tag)[1], direct.tag_experts(site, tag, 9)[1])


def test_questions_in_any_order_get_the_same_people(
    advisor: Advisor, model: Path, site: Site
) -> None:
    questions = [
        Question(site.titles([q])[0], tags=tuple(site.tags.of(q)), at=datetime(2031, 1, 1, hour))
        for q, hour in ((3, 1), (90, 1), (91, 4), (3, 4), (300, 1))
    ]
    first = [advisor.ask(question) for question in questions]
    other = Advisor.load(model)
    other.warm_up()
    assert [other.ask(question) for question in questions[::-1]][::-1] == first


def test_policy_and_log(advisor: Advisor, question: Question) -> None:
    first = people(advisor, question, k=3)
    assert question.asker not in first
    assert first[0] not in people(advisor, question, Policy(opted_out=frozenset(first[:1])))
    log, once = AskLog(), Policy(per_day=1)
    assert people(advisor, question, once, log=log, k=3) == first
    assert not set(people(advisor, question, once, log=log, k=3)) & set(first)
    assert people(advisor, question, once, k=3) == first  # nothing is remembered without a log


def test_no_question_from_before_the_last_post(advisor: Advisor) -> None:
    with pytest.raises(InputError, match="before the last post"):
        advisor.ask(Question("x", at=datetime(2001, 1, 1)))


def test_tags_are_a_list_of_names() -> None:
    assert Question(tags=["a", "b"]).tags == ("a", "b")
    with pytest.raises(InputError, match="tags"):
        Question(tags="a, b")


def test_newcomers_come_stay_and_go(advisor: Advisor, site: Site, tmp_path: Path) -> None:
    tag = site.tags.names[0]
    about = Question(tags=(tag,))
    anybody = Policy(newcomer_share=0.4, newcomer_answers=0)
    assert 9_001 not in people(advisor, about, anybody, k=50)
    arrived = advisor.welcome([Newcomer(9_001, tags=(tag,)), Newcomer(9_002, text="qqzz")])
    assert 9_001 in people(arrived, about, anybody)
    assert arrived.unplaced() == [9_002]
    assert 9_001 not in people(advisor, about, anybody, k=50)  # the old one is as it was
    again = Advisor.load(arrived.save(tmp_path / "model"))
    assert again.newcomers == arrived.newcomers
    assert again.ask(about, anybody) == arrived.ask(about, anybody)
    moved = arrived.welcome([Newcomer(9_001, text="qqzz")])
    assert sorted(moved.unplaced()) == [9_001, 9_002]
    with pytest.raises(InputError, match="twice"):
        advisor.welcome([Newcomer(9_001), Newcomer(9_001)])


def test_update_takes_in_a_later_dump(dump: Path, site: Site, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    cut = str(np.datetime64(int(site.questions.created_ms[450]), "ms"))
    for file in dump.glob("*.xml"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if 'CreationDate="' not in line or _date(line) < cut]
        (earlier / file.name).write_text("".join(kept), encoding="utf-8")
    ingest(earlier, tmp_path / "site")
    old = Advisor.fit(Site(tmp_path / "site"), text="bm25", plan=SMALL, n_components=8)
    old = old.welcome([Newcomer(9_001, tags=(site.tags.names[0],))])
    new = old.update(site)
    assert new.history.n_questions == len(site.questions) > old.history.n_questions
    assert new.router.model_ is old.router.model_
    assert new.newcomers == old.newcomers
    assert len(new.expertise.competition.ids) > len(old.expertise.competition.ids)
    question = Question(site.titles([599])[0])
    assert new.ask(question).candidates > old.ask(question).candidates
    write_dump(simulate_community(40, 80, n_topics=2, random_state=9), tmp_path / "dump2")
    ingest(tmp_path / "dump2", tmp_path / "site2")
    with pytest.raises(InputError, match="not the site that the advisor was trained on"):
        new.update(Site(tmp_path / "site2"))


def _date(line: str) -> str:
    return line.split('CreationDate="')[1].split('"')[0]


def test_the_old_name_of_k_still_works(advisor: Advisor, question: Question) -> None:
    with pytest.deprecated_call():
        assert advisor.ask(question, top=2) == advisor.ask(question, k=2)
    with pytest.deprecated_call():
        assert len(advisor.experts(top=3)[0]) == 3


def test_after_training_nothing_of_it_is_kept(advisor: Advisor) -> None:
    assert "weights" not in advisor.history.records.memo._kinds


def test_a_question_runs_through_few_modules(advisor: Advisor, question: Question) -> None:
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("atpgraph"):
            modules.add(name)

    advisor.warm_up()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        advisor.ask(question)
    finally:
        sys.setprofile(before)
    assert 10 < len(modules) <= 25, sorted(modules)


def test_old_names_warn(model: Path) -> None:
    with pytest.warns(DeprecationWarning, match=r"Advisor\.load"):
        assert Advisor.open(model).router is not None


def test_saving_after_a_person_is_forgotten_computes_nothing(
    advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Advisor.load(advisor.save(tmp_path / "whole"))
    gone = loaded.observe([Forgotten(int(loaded.history.users[3]))])
    with monkeypatch.context() as patch:
        patch.setattr(Expertise, "fit", lambda *_, **__: pytest.fail("it takes minutes"))
        opened = Advisor.load(gone.save(tmp_path / "gone"))
    assert int(loaded.history.users[3]) not in opened.expertise.competition.ids


def test_merging_changes_no_suggestion(advisor: Advisor) -> None:
    now = advisor.history.now
    events = [
        Asked(10**7, "new zzyzx question", "", ["new tag"], 3, now + 5),
        Answered(10**7 + 1, 10**7, 10**6 + 1, now + 9),
    ]
    later = advisor.observe(events)
    merged = later.merged()
    assert merged.history.records.base is merged.history.records
    question = Question("zzyzx", tags=["new tag"])
    assert merged.ask(question) == later.ask(question)
    more = [Answered(10**7 + 2, 10**7, 10**6 + 2, now + 20)]
    assert merged.observe(more).ask(question) == later.observe(more).ask(question)
