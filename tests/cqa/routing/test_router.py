"""The router, its suggestions and reasons, policies, and what happens at the edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.cqa import Site, ingest
from atpgraph.cqa.routing import (
    Dispatcher,
    Policy,
    Question,
    Records,
    Router,
    evaluate_routing,
    load_router,
    save_router,
    suggest,
)
from atpgraph.cqa.routing.choice import Choices, fit_choice
from atpgraph.cqa.routing.history import History
from atpgraph.cqa.routing.report import render
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import InputError
from tests.cqa.routing.conftest import SMALL


def _now(records: Records) -> History:
    return records.at(records.at().last_ms)


def test_choice_model_finds_planted_weights() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([1.5, -1.0, 0.0])
    x = rng.normal(size=(4000, 5, 3))
    chosen = np.argmax(x @ truth + rng.gumbel(size=(4000, 5)), axis=1)
    group = np.repeat(np.arange(4000), 5)
    choices = Choices(x.reshape(-1, 3), group, np.arange(4000) * 5 + chosen, np.zeros(20000))
    model = fit_choice(choices, 0.1)
    np.testing.assert_allclose(model.raw_weight, truth, atol=0.08)
    kept = choices.part(np.arange(4000) % 2 == 0)
    assert kept.n_questions == 2000
    np.testing.assert_allclose(kept.x[kept.chosen[3]], choices.x[choices.chosen[6]])


def test_ranking_is_the_brute_force_one(records: Records, router: Router) -> None:
    question = Question(_now(records), records.at().last_ms, title=records.titles[5])
    people = question.history.users
    codes = question.history.codes(people)
    brute = router.model_.score(router.space_.rows(question, codes))
    np.testing.assert_allclose(router.score(question, people), brute, rtol=0, atol=1e-9)


def test_reasons_refer_to_records(records: Records, router: Router) -> None:
    history = _now(records)
    tags = tuple(records.tag_names[:1])
    question = Question(history, history.last_ms, 2, records.titles[9], records.bodies[9], tags)
    found = suggest(router, question, top=4)
    assert len(found.people) == 4
    assert all(person.user != 2 for person in found.people)
    for person in found.people:
        assert 0 <= person.confidence <= 1
        assert person.reasons
        answered = {
            int(records.questions.id[q])
            for q in records.answers.question[records.answers.owner == person.user].tolist()
        }
        for reason in person.reasons:
            assert set(reason.questions) <= answered
            if reason.kind == "accepted":
                mine = np.flatnonzero(records.answers.owner == person.user)
                accepted = records.questions.accepted[records.answers.question[mine]]
                won = np.count_nonzero(accepted == mine)
                decided = np.count_nonzero(accepted >= 0)
                assert reason.text.startswith(f"{won} of {decided} ")


def test_saved_and_loaded_ranks_the_same(records: Records, router: Router, tmp_path: Path) -> None:
    history = _now(records)
    save_router(router, history, tmp_path / "model")
    again, loaded = load_router(tmp_path / "model")
    first = Question(history, history.last_ms, 5, records.titles[3], "", ("nothing",))
    second = Question(loaded, loaded.last_ms, 5, records.titles[3], "", ("nothing",))
    assert suggest(router, first).to_dict() == suggest(again, second).to_dict()
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="is not a router"):
        save_router(router, history, tmp_path / "other")


@pytest.mark.parametrize(
    ("title", "tags", "asker"),
    [("", (), -1), ("zzzz qqqq", ("no-such-tag",), -1), ("", (), 999_999), ("?", (), 7)],
)
def test_little_is_known(
    records: Records, router: Router, title: str, tags: tuple[str, ...], asker: int
) -> None:
    history = _now(records)
    found = suggest(router, Question(history, history.last_ms, asker, title, "", tags))
    assert len(found.people) == 5
    assert all(np.isfinite(person.score) for person in found.people)


def test_weak_evidence_is_said(records: Records, router: Router) -> None:
    history = _now(records)
    found = suggest(router, Question(history, history.last_ms), least_confidence=1.1)
    assert "evidence is weak" in found.abstains


def test_site_without_acceptances(dump: Path, tmp_path: Path) -> None:
    import re

    folder = tmp_path / "dump"
    folder.mkdir()
    for name in ("Posts.xml", "Users.xml"):
        text = (dump / name).read_text(encoding="utf-8")
        (folder / name).write_text(re.sub(r' AcceptedAnswerId="\d+"', "", text), encoding="utf-8")
    ingest(folder, tmp_path / "site")
    records = Records.of(Site(tmp_path / "site"))
    router = Router("all", plan=SMALL).fit(_now(records))
    found = suggest(router, Question(_now(records), records.at().last_ms, title="x"))
    assert len(found.people) == 5
    report = evaluate_routing(records, protocols=["time"], methods=["router", "answers"])
    assert report.to_dict()["time-all"]["questions"] == 0


def test_evaluation_has_the_shape_of_the_contract(records: Records) -> None:
    report = evaluate_routing(
        records, protocols=["time-all"], methods=["accepted-answers", "bm25", "random"]
    )
    result = report.to_dict()["time-all"]
    assert {"questions", "candidates_mean", "methods"} <= set(result)
    row = result["methods"]["bm25"]
    assert set(row["mrr"]) == {"mean", "low", "high"}
    assert all(isinstance(row[name], float) for name in ("p@1", "p@3", "accuracy"))
    assert row["mrr"]["mean"] > result["methods"]["random"]["mrr"]["mean"]
    assert "<svg" in render(report)


class _Known:
    """A history with three facts, for the policies."""

    def __init__(self, n: int) -> None:
        self.last_answer_ms = np.arange(n, dtype=np.int64) * 10 * DAY_MS
        self.n_given = np.arange(n, dtype=np.float64)

    def codes(self, ids: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.asarray(ids)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(1, 4)), max_size=40),
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.integers(0, 6)),
    st.sets(st.integers(0, 9), max_size=4),
    st.floats(0, 3),
    st.floats(0, 1),
    st.one_of(st.none(), st.floats(1, 100)),
    st.integers(0, 1000),
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
) -> None:
    policy = Policy(frozenset(opted_out), inactive, per_day, per_week, spread, newcomers)
    dispatcher = Dispatcher(policy)
    rng = np.random.default_rng(seed)
    people = np.arange(10)
    now, asked = 95 * DAY_MS, []
    known = _Known(10)
    for asker, hours, top in stream:
        now += hours * DAY_MS // 24
        question = Question(known, now, asker)  # type: ignore[arg-type]
        chosen = people[dispatcher.choose(question, people, rng.normal(size=10), top)]
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


def test_newcomers_get_their_share() -> None:
    dispatcher = Dispatcher(Policy(newcomer_share=0.25, newcomer_answers=3))
    people, known = np.arange(10), _Known(10)
    fresh = 0
    for number in range(20):
        question = Question(known, 95 * DAY_MS + number, -1)  # type: ignore[arg-type]
        chosen = dispatcher.choose(question, people, people.astype(np.float64), 4)
        fresh += int((known.n_given[chosen] <= 3).sum())
    assert fresh == 20


def test_bad_policies_are_refused() -> None:
    for bad in ({"per_day": -1}, {"newcomer_share": 2.0}, {"spread": -0.5}, {"inactive_days": 0.0}):
        with pytest.raises(InputError):
            Policy(**bad)  # type: ignore[arg-type]
