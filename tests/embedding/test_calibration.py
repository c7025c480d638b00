"""Probabilities against what is observed."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP, InputError, citation_dag, random_dag
from atpgraph.closure import closure_forests
from atpgraph.embedding.fidelity import Calibration, ScoreCounts
from atpgraph.graph import DiGraph


def counts(chance, seed: int = 0, pairs: int = 200_000) -> tuple[ScoreCounts, np.ndarray]:
    """Counts of pairs with normal scores that are paths with the given chance."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 2, pairs)
    joined = rng.random(pairs) < chance(scores)
    edges = np.linspace(scores.min(), scores.max(), 1000)
    place = np.searchsorted(edges, scores)
    paths, others = (
        np.bincount(place[kind], minlength=1001).astype(float) for kind in (joined, ~joined)
    )
    return ScoreCounts(edges, paths, others, paths), scores


def logistic(x):
    return 1 / (1 + np.exp(-2 * x + 3))


def steps(x):
    return np.where(x > 1, 0.9, np.where(x > -1, 0.3, 0.01))


@pytest.mark.parametrize("chance", [logistic, steps])
def test_curves_are_found(chance) -> None:
    found, scores = counts(chance)
    curve = Calibration.of(found, 200_000)
    grid = np.linspace(-4, 4, 201)
    grid = grid[(abs(grid - 1) > 0.1) & (abs(grid + 1) > 0.1)]
    assert curve(grid) == pytest.approx(chance(grid), abs=0.05)
    assert (np.diff(curve(np.linspace(-9, 9, 999))) >= 0).all()
    assert curve.prior == pytest.approx(found.paths.sum() / 200_000)
    again = Calibration.from_dict(curve.to_dict())
    assert again(scores[:50]).tolist() == curve(scores[:50]).tolist()


@pytest.mark.parametrize("chance", [logistic, steps])
def test_a_base_rate_is_another_mixture_of_the_same_pairs(chance) -> None:
    rng = np.random.default_rng(1)
    found, scores = counts(chance)
    curve = Calibration.of(found, 200_000)
    joined = rng.random(len(scores)) < chance(scores)
    few = joined | (rng.random(len(scores)) < 0.1)  # one in ten of the others
    rate = joined[few].mean()
    told, true = curve(scores[few], base_rate=rate), joined[few]
    for low, high in ((0.1, 0.4), (0.4, 0.8), (0.8, 1.0)):
        inside = (told >= low) & (told < high)
        if inside.sum() > 500:
            assert told[inside].mean() == pytest.approx(true[inside].mean(), abs=0.04)
    with pytest.raises(InputError, match="base_rate"):
        curve([0.0], base_rate=1.0)


def test_curves_from_strangers_are_checked() -> None:
    good = Calibration.of(counts(steps)[0], 200_000).to_dict()
    for bad in (
        {"scores": good["scores"][:-1]},
        {"probabilities": [2.0] * len(good["scores"])},
        {"scores": good["scores"][::-1]},
        {"scores": [], "probabilities": []},
    ):
        with pytest.raises(ValueError, match="calibration"):
            Calibration.from_dict(good | bad)


def test_the_threshold_has_the_best_f1() -> None:
    found, _ = counts(logistic)
    threshold, f1 = found.best_threshold()
    above = np.array([found.paths[at + 1 :].sum() for at in range(1000)])
    false = np.array([found.others[at + 1 :].sum() for at in range(1000)])
    every = 2 * above / (above + false + found.paths.sum())
    assert f1 == pytest.approx(every.max())
    assert every[np.searchsorted(found.edges, threshold)] == pytest.approx(every.max())
    nothing = ScoreCounts(np.zeros(1), *np.zeros((3, 2)))
    assert nothing.best_threshold()[0] == 0.0


@pytest.mark.parametrize(
    "graph",
    [citation_dag(700, 2000, random_state=1), random_dag(700, 2500, random_state=1)],
    ids=["citation", "random"],
)
def test_stated_probabilities_come_true_over_all_pairs(graph: DiGraph) -> None:
    model = ATP(12, max_iter=12).fit(graph)
    reach = closure_forests(model.dag_)[0].to_sparse(model.levels_).toarray() > 0
    u, v = np.nonzero(~np.eye(len(reach), dtype=bool))
    told = model.predict_proba(model.labels_[u], model.labels_[v])
    true = reach[u, v]
    assert told.mean() == pytest.approx(true.mean(), rel=0.1)
    for low, high in ((0.05, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 0.95), (0.95, 1.01)):
        inside = (told >= low) & (told < high)
        if inside.sum() > 400:
            assert told[inside].mean() == pytest.approx(true[inside].mean(), abs=0.1)
    decided = model.predict(model.labels_[u], model.labels_[v])
    f1 = 2 * (decided & true).sum() / (decided.sum() + true.sum())
    assert f1 == pytest.approx(model.fidelity_.threshold_f1, abs=0.03)
    more = model.predict_proba(model.labels_[u[:99]], model.labels_[v[:99]], base_rate=0.5)
    assert (more >= told[:99]).all()


def test_a_saved_model_states_the_same_probabilities(tmp_path) -> None:
    model = ATP(8).fit(citation_dag(300, 900, random_state=0))
    model.save(tmp_path / "m.npz")
    again = ATP.load(tmp_path / "m.npz")
    u, v = model.labels_[:100], model.labels_[100:200]
    assert again.predict_proba(u, v).tolist() == model.predict_proba(u, v).tolist()
    assert again.threshold_ == model.threshold_
    assert again.fidelity_.to_dict() == model.fidelity_.to_dict()
