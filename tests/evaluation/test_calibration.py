"""Stated confidence beside what came true."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.evaluation import reliability


def test_a_calibrated_forecaster_has_little_error() -> None:
    rng = np.random.default_rng(0)
    stated = rng.random(20_000)
    right = (rng.random(20_000) < stated).astype(float)
    assert reliability(stated, right)["error"] < 0.02
    boastful = reliability(np.sqrt(stated), right)
    assert boastful["error"] > 0.1


def test_groups_cover_all_cases_and_abstaining_helps() -> None:
    rng = np.random.default_rng(1)
    stated = rng.random(500)
    right = (rng.random(500) < stated).astype(float)
    result = reliability(stated, right, groups=6)
    assert sum(part["questions"] for part in result["bins"]) == 500
    assert len(result["bins"]) == 6
    assert result["brier"] < result["brier_constant"]
    answered = [step["answered"] for step in result["abstention"]]
    assert answered == sorted(answered, reverse=True)
    assert result["abstention"][-1]["right"] > result["abstention"][0]["right"]
    by_hand = right[stated >= 0.5].mean()
    assert result["abstention"][5]["right"] == pytest.approx(by_hand)


def test_few_cases_make_few_groups() -> None:
    assert len(reliability(np.full(7, 0.5), np.ones(7))["bins"]) == 1
    assert reliability(np.zeros(0), np.zeros(0))["error"] is None
