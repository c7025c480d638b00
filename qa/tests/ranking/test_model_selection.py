"""More labels never make the router worse than where it starts, or than trivial rows."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.evaluation.resampling import paired_bootstrap
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph_qa.baselines.simple import TopicActivity
from atpgraph_qa.evaluation.evaluation import run
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.router import Calibration, Router, calibrate
from atpgraph_qa.ranking.training import (
    FEW,
    STAY,
    TrainingPlan,
    nearest_to_the_prior,
    select_model,
)
from atpgraph_qa.timeline.records import Records
from tests.test_conditional_logit import planted

TRUTH = np.array([1.5, -1.0, 0.5])


def selected(choices: Choices, prior: np.ndarray):
    return select_model(choices, np.ones(choices.n_groups, dtype=np.bool_), prior)


def test_few_labels_stay_at_the_prior() -> None:
    wrong = np.array([-1.0, 1.0, 0.0])
    found = selected(planted(0, FEW - 1, TRUTH), wrong)
    assert (found.setting.penalty, found.setting.from_prior) == (STAY, True)
    assert np.linalg.norm(found.model.raw_weight - wrong) < 0.3 * np.linalg.norm(TRUTH - wrong)


def test_many_labels_leave_a_prior_that_is_wrong() -> None:
    found = selected(planted(0, 2000, TRUTH), np.array([-1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found.model.raw_weight, TRUTH, atol=0.15)
    assert found.setting.penalty < STAY or not found.setting.from_prior


def test_a_prior_that_is_right_is_kept() -> None:
    found = selected(planted(0, 400, TRUTH), TRUTH)
    assert found.setting.from_prior
    np.testing.assert_allclose(found.model.raw_weight, TRUTH, atol=0.15)


def test_held_out_scores_do_not_know_their_question() -> None:
    choices = planted(1, 40, TRUTH)
    before = selected(choices, TRUTH).held_out
    x = choices.x.copy()
    x[choices.group == 7] = 0.0
    after = selected(Choices(x, choices.group, choices.chosen, choices.offset), TRUTH).held_out
    assert after[choices.group == 7].std() < 1e-12
    assert before[choices.group == 7].std() > 0.1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hardly_any_labels(n: int) -> None:
    found = selected(planted(0, 5, TRUTH).part(np.arange(5) < n), TRUTH)
    np.testing.assert_allclose(found.model.raw_weight, TRUTH, atol=0.1)


def test_one_standard_error_toward_the_prior() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(3.0, 1.0, 200)
    noise = rng.normal(0.0, 1.0, (2, 200))
    losses = np.stack([base + 0.05 + noise[0], base + 0.02 + noise[1], base])
    assert nearest_to_the_prior(losses) == 0
    losses[0] += 0.5
    assert nearest_to_the_prior(losses) == 1
    losses[1] += 0.5
    assert nearest_to_the_prior(losses) == 2


def test_the_learning_curve_never_falls(records: Records) -> None:
    protocol = make_protocol(records, "time-all")
    routers = [
        type(f"R{n}", (Router,), {"name": f"{n} labels"})("all", plan=TrainingPlan(questions=n))
        for n in (0, 15, 30, 90, 250)
    ]
    result = run(protocol, [*routers, TopicActivity()])
    mrr = {name: ranks.reciprocal for name, ranks in result.ranks.items()}
    assert routers[0].questions_ == 0
    for router in routers[1:]:
        for start in ("0 labels", TopicActivity.name):
            gap = paired_bootstrap(mrr[router.name], mrr[start]).difference
            assert gap.high >= 0.0, (router.name, start, gap)


def test_confidence_follows_outcomes() -> None:
    rng = np.random.default_rng(0)
    calibration = Calibration()
    stated = rng.uniform(0.05, 0.9, 4000)
    happened = rng.random(4000) < stated**2
    better = calibration.corrected(stated, happened)
    few = calibration.corrected(stated[:3], happened[:3])
    assert abs(few.shift) < 0.6
    corrected = 1 / (1 + np.exp(-(better.shift + better.slope * np.log(stated / (1 - stated)))))
    for low in (0.1, 0.4, 0.7):
        some = (stated > low) & (stated < low + 0.2)
        assert corrected[some].mean() == pytest.approx(happened[some].mean(), abs=0.05)
    # What was corrected needs no further correction.
    again = better.corrected(corrected, happened)
    assert again.shift == pytest.approx(better.shift, abs=0.05)
    assert calibration.corrected(stated[:0], happened[:0]) == calibration


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_sharpness_undoes_what_scores_are_multiplied_by(factor: float) -> None:
    truth = np.array([1.0, -0.7])
    choices = planted(1, 3000, truth)
    model = fit_logit(choices.part(np.zeros(3000, dtype=np.bool_)), prior=truth * factor)
    found = calibrate(model.score(choices.x), choices, 0.8)
    assert found.sharpness == pytest.approx(1 / factor, rel=0.12)
    stated = found(model.score(choices.x[:5]))
    assert stated.sum() == pytest.approx(0.8)
