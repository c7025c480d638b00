"""What the router learns from, starts from, and says about its own confidence."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from atpgraph.cqa.routing import METHODS, Records, Router, evaluate_routing, make_protocol
from atpgraph.cqa.routing.activity import Activity, log_count, timeless, week_start
from atpgraph.cqa.routing.choice import Choices, fit_choice
from atpgraph.cqa.routing.evaluation import run
from atpgraph.cqa.routing.features import GROUPS, NAMES
from atpgraph.cqa.routing.metrics import reliability
from atpgraph.cqa.routing.oracle import Oracle
from atpgraph.cqa.routing.router import calibrate
from atpgraph.cqa.routing.taught import taught_weights
from atpgraph.cqa.routing.training import TrainingPlan, collect, right_answers
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import InputError
from tests.cqa.routing.conftest import SMALL


def _planted(rng: np.random.Generator, n: int, truth: np.ndarray) -> Choices:  # type: ignore[type-arg]
    x = rng.normal(size=(n, 5, len(truth)))
    chosen = np.argmax(x @ truth + rng.gumbel(size=(n, 5)), axis=1)
    group = np.repeat(np.arange(n), 5)
    return Choices(x.reshape(-1, len(truth)), group, np.arange(n) * 5 + chosen, np.zeros(n * 5))


def test_weights_move_from_the_prior_as_far_as_questions_ask() -> None:
    truth, prior = np.array([1.5, -1.0, 0.5]), np.array([0.0, 0.0, 3.0])
    choices = _planted(np.random.default_rng(0), 3000, truth)
    nothing = choices.part(np.zeros(3000, dtype=np.bool_))
    np.testing.assert_array_equal(fit_choice(nothing, 1.0, prior=prior).raw_weight, prior)
    np.testing.assert_allclose(fit_choice(choices, 1e9, prior=prior).raw_weight, prior, atol=1e-3)
    np.testing.assert_allclose(fit_choice(choices, 0.1, prior=prior).raw_weight, truth, atol=0.1)
    hidden = fit_choice(choices, 10.0, np.array([True, True, False]), prior)
    assert hidden.weight[2] == 0.0


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_sharpness_undoes_what_scores_are_multiplied_by(factor: float) -> None:
    truth = np.array([1.0, -0.7])
    choices = _planted(np.random.default_rng(1), 3000, truth)
    model = fit_choice(choices.part(np.zeros(3000, dtype=np.bool_)), prior=truth * factor)
    found = calibrate(model, choices, 0.8)
    assert found.sharpness == pytest.approx(1 / factor, rel=0.12)
    stated = found(model.score(choices.x[:5]))
    assert stated.sum() == pytest.approx(0.8)


def test_reliability_by_hand() -> None:
    stated = np.repeat([0.1, 0.6], 10)
    right = np.concatenate([np.zeros(8), np.ones(2), np.zeros(4), np.ones(6)])
    found = reliability(stated, right, groups=2)
    assert [b["right"] for b in found["bins"]] == [0.2, 0.6]
    assert found["error"] == pytest.approx(0.05)
    assert found["brier"] == pytest.approx((8 * 0.01 + 2 * 0.81 + 4 * 0.36 + 6 * 0.16) / 20)
    kept = next(a for a in found["abstention"] if a["least"] == 0.2)
    assert (kept["answered"], kept["right"]) == (0.5, 0.6)
    assert reliability(np.zeros(0), np.zeros(0))["bins"] == []


def test_taught_weights_name_features_that_exist() -> None:
    stored = json.loads(files("atpgraph.cqa.routing").joinpath("taught.json").read_text())
    assert set(stored) == {"own", "all", "own-without-atp", "all-without-atp"}
    for name, weights in stored.items():
        assert set(weights) <= set(NAMES)
        assert bool(set(weights) & set(GROUPS["atp"])) == ("without" not in name)
    bare = taught_weights("all", ("atp", "text"))
    for group in ("atp", "text"):
        assert not bare[[NAMES.index(name) for name in GROUPS[group]]].any()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_activity_is_that_of_a_pass_over_all_answers(records: Records, share: float) -> None:
    position = int(len(records.questions) * share)
    question = records.question(position)
    history = question.history
    start = week_start(history)
    assert 0 <= history.now - start.now < 7 * DAY_MS
    found = Activity(start).features(question)
    for code in range(0, history.n_users, 7):
        mine = np.flatnonzero(history.answer_owner == code)
        away = (question.asked_ms - history.answer_ms[mine]) / DAY_MS
        for name, half_life in (("fading_3", 3), ("fading_60", 60), ("fading_365", 365)):
            expected = log_count(np.array([np.sum(0.5 ** (away / half_life))]))[0]
            assert found[name][code] == pytest.approx(expected, abs=1e-9)
        won = mine[mine < start.n_answers]
        won = won[start.is_accepted[won]]
        away_won = (question.asked_ms - history.answer_ms[won]) / DAY_MS
        expected = log_count(np.array([np.sum(0.5 ** (away_won / 60))]))[0]
        assert found["accepted_60"][code] == pytest.approx(expected, abs=1e-9)
        if len(mine):
            assert found["days_since"][code] == pytest.approx(-np.log(away.min() + 0.05))
            assert found["tenure"][code] == pytest.approx(np.log1p(away.max()))
    either = timeless(records.question(position, records.at()))
    assert set(either) == set(found)


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_until_is_what_was_known_then(records: Records, share: float) -> None:
    moment = int(records.questions.created_ms[int(len(records.questions) * share)])
    then, whole = records.at(moment), records.until(moment).at()
    assert (whole.n_questions, whole.n_answers) == (then.n_questions, then.n_answers)
    for name in ("best_answer", "is_accepted", "answer_votes", "n_given", "n_won", "asker"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(then, name))
    terms = whole.corpus.query(records.titles[0], records.bodies[0], ())
    np.testing.assert_allclose(
        whole.corpus.bm25(terms, whole.present), then.corpus.bm25(terms, then.present)
    )
    best = records.until(moment).questions.accepted
    assert (best < then.n_answers).all()


def test_votes_teach_where_nobody_accepted(records: Records) -> None:
    history = records.at(records.at().last_ms)
    accepted, voted = (right_answers(history, "own", flag) for flag in (False, True))
    assert np.count_nonzero(voted >= 0) > np.count_nonzero(accepted >= 0)
    np.testing.assert_array_equal(voted[accepted >= 0], accepted[accepted >= 0])
    for position in np.flatnonzero((voted >= 0) & (accepted < 0)).tolist():
        answers = np.flatnonzero(history.answer_question == position)
        owner = history.answer_owner[answers]
        answers = answers[(owner >= 0) & (owner != history.asker[position])]
        votes = history.answer_votes[answers]
        top = voted[position]
        assert history.answer_votes[top] >= 2
        assert np.count_nonzero(votes >= history.answer_votes[top]) == 1


def test_examples_know_how_often_the_right_person_was_there(records: Records) -> None:
    history = records.at(records.at().last_ms)
    examples = collect(history, "all", TrainingPlan(questions=200, refit_days=365.0, voted=False))
    assert len(examples.position) + len(examples.missed) <= 200
    assert examples.accepted.all()
    assert 0.5 < examples.reach(1.0) <= 1.0
    for position in examples.missed.tolist():
        then = history.at(int(history.question_ms[position]))
        owner = history.answer_owner[history.best_answer[position]]
        assert then.n_given[owner] == 0 or owner == history.asker[position]


def test_nobody_beats_the_oracle_by_much(dump: Path, records: Records) -> None:
    for name in ("time-own", "time-all"):
        protocol = make_protocol(records, name)
        rows = [METHODS[m](protocol.pool) for m in ("accepted-answers", "bm25", "random")]
        rows += [Router(protocol.pool, plan=SMALL), Oracle(dump / "truth.npz", protocol.pool)]
        found = run(protocol, rows)
        mrr = {m: ranks.reciprocal.mean() for m, ranks in found.ranks.items()}
        assert mrr["oracle"] > mrr["accepted-answers"] > mrr["random"]
        assert mrr["oracle"] > mrr["router"] - 0.03


def test_evaluation_adds_the_oracle(dump: Path, records: Records, tmp_path: Path) -> None:
    report = evaluate_routing(
        records, protocols=["time-own"], methods=["answers"], truth=dump / "truth.npz"
    )
    assert set(report.to_dict()["time-own"]["methods"]) == {"answers", "oracle"}
    (tmp_path / "truth.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="is not the truth"):
        Oracle(tmp_path / "truth.npz")
