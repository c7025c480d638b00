from __future__ import annotations

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa import BountyTruth, Site, ingest, pairwise_accuracy, question_scores
from atpgraph_qa.difficulty.signal_model import (
    asked_before,
    cross_fitted,
    fit_weights,
    fitted_to_all,
    percentiles,
)

from ..dumps import question, write


def test_fitted_scores_never_see_their_own_bounty():
    rng = np.random.default_rng(0)
    signals = {"a": rng.normal(size=200), "b": rng.normal(size=200)}
    amount = np.where(signals["a"] + 0.3 * rng.normal(size=200) > 0, 100, 50)
    half = rng.random(200) < 0.5
    truth = BountyTruth(np.arange(200), amount)
    found = cross_fitted(signals, truth, half)
    assert pairwise_accuracy(truth, found, n_bootstrap=1).mean > 0.85
    shuffled = amount.copy()
    shuffled[half] = rng.permutation(shuffled[half])
    again = cross_fitted(signals, BountyTruth(np.arange(200), shuffled), half)
    assert (again.values[half] == found.values[half]).all()
    assert fit_weights(np.ones((4, 2)), np.full(4, 50)).tolist() == [0, 0]
    assert percentiles(np.full(3, np.nan)).tolist() == [0, 0, 0]


def test_too_few_bounties_are_not_fitted_to():
    rng = np.random.default_rng(0)
    signals = {"answers": rng.normal(size=200), "position": rng.normal(size=200)}
    few = BountyTruth(np.arange(60), rng.integers(1, 9, 60) * 50)
    half = np.arange(60) % 2 == 0
    found = cross_fitted(signals, few, half)
    plain = (percentiles(signals["position"]) + percentiles(signals["answers"]))[:60]
    for mine in (half, ~half):
        assert (np.argsort(found.values[mine]) == np.argsort(plain[mine])).all()
    simple = fitted_to_all({"answers": signals["answers"]}, few.take(np.arange(40)))
    assert (simple == percentiles(signals["answers"])).all()
    uneven = np.arange(60) < 55  # enough to learn from on one side only
    again = cross_fitted(signals, few, uneven)
    assert (np.argsort(again.values[uneven]) == np.argsort(plain[uneven])).all()


def test_questions_asked_before(tmp_path):
    posts = [question(1, 1), question(2, 2), question(3, 3, OwnerUserId=-1), question(4, 4)]
    ingest(write(tmp_path / "dump", posts=posts), tmp_path / "site")
    site = Site(tmp_path / "site")
    slow = [
        np.nan if asker < 0 else float((site.questions.asker[:place] == asker).sum())
        for place, asker in enumerate(site.questions.asker.tolist())
    ]
    assert np.array_equal(asked_before(site), slow, equal_nan=True)
    with pytest.raises(InputError, match="atp-position"):
        question_scores(site, methods=["signals-fitted"])
    with pytest.raises(InputError, match="compares pairs"):
        question_scores(site, methods=["atp"])
