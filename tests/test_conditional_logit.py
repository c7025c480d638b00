from __future__ import annotations

import numpy as np
import pytest

from atpgraph.util.conditional_logit import Choices, choice_losses, fit_logit, loss_and_slope


def planted(seed: int, n: int, truth: np.ndarray) -> Choices:
    """Choices by people who weigh features like `truth`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5, len(truth)))
    chosen = np.argmax(x @ truth + rng.gumbel(size=(n, 5)), axis=1)
    group = np.repeat(np.arange(n), 5)
    return Choices(x.reshape(-1, len(truth)), group, np.arange(n) * 5 + chosen, np.zeros(n * 5))


def test_planted_weights_are_found() -> None:
    truth = np.array([1.5, -1.0, 0.0])
    choices = planted(0, 4000, truth)
    np.testing.assert_allclose(fit_logit(choices, 0.1).raw_weight, truth, atol=0.08)
    kept = choices.part(np.arange(4000) % 2 == 0)
    assert kept.n_groups == 2000
    np.testing.assert_allclose(kept.x[kept.chosen[3]], choices.x[choices.chosen[6]])


@pytest.mark.parametrize("width", [1, 3, 4, 6, 9])
def test_the_kernel_is_the_plain_loss(width: int) -> None:
    rng = np.random.default_rng(width)
    sizes = rng.integers(1, 9, 40)
    start = np.concatenate([[0], np.cumsum(sizes)])
    x, offset = rng.normal(size=(start[-1], width)), rng.normal(size=start[-1])
    choices = Choices(
        x, np.repeat(np.arange(40), sizes), start[:-1] + rng.integers(0, sizes), offset
    )
    weight, slope = rng.normal(size=width), np.zeros(width)
    room = np.empty(len(x))
    value = loss_and_slope(x, weight, offset, choices.start, choices.taken, room, slope)
    assert value == pytest.approx(choice_losses(x @ weight, choices).sum())
    for k in range(width):
        step = np.eye(width)[k] * 1e-6
        ahead = choice_losses(x @ (weight + step), choices).sum()
        behind = choice_losses(x @ (weight - step), choices).sum()
        assert slope[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)


def test_weights_move_from_the_prior_as_far_as_questions_ask() -> None:
    truth, prior = np.array([1.5, -1.0, 0.5]), np.array([0.0, 0.0, 3.0])
    choices = planted(0, 3000, truth)
    nothing = choices.part(np.zeros(3000, dtype=np.bool_))
    np.testing.assert_array_equal(fit_logit(nothing, 1.0, prior=prior).raw_weight, prior)
    np.testing.assert_allclose(fit_logit(choices, 1e9, prior=prior).raw_weight, prior, atol=1e-3)
    np.testing.assert_allclose(fit_logit(choices, 0.1, prior=prior).raw_weight, truth, atol=0.1)
    hidden = fit_logit(choices, 10.0, np.array([True, True, False]), prior)
    assert hidden.weight[2] == 0.0


def test_losses_are_those_of_the_softmax() -> None:
    choices = planted(2, 50, np.array([1.0, -0.5]))
    scores = fit_logit(choices, 1.0).score(choices.x)
    odds = np.exp(scores).reshape(50, 5)
    right = (odds / odds.sum(axis=1, keepdims=True)).reshape(-1)[choices.chosen]
    np.testing.assert_allclose(choice_losses(scores, choices), -np.log(right))
