"""The router, its suggestions and reasons, policies, and what happens at the edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph.cqa.routing import (
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
from atpgraph.errors import InputError


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
