"""The weights that come with the package."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

from atpgraph_qa.ranking.names import GROUPS, NAMES
from atpgraph_qa.ranking.router import prior_weights
from atpgraph_qa.timeline.query import POOLS, Pool


def test_prior_weights_name_features_that_exist() -> None:
    file = files("atpgraph_qa.ranking").joinpath("prior_weights.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    kinds = [f"{pool}-{kind}" for pool in POOLS for kind in ("bm25", "static", "dense")]
    assert set(stored) == set(kinds)
    for weights in stored.values():
        assert set(weights) <= set(NAMES)
        assert all(np.isfinite(value) for value in weights.values())


@pytest.mark.parametrize("pool", POOLS)
def test_prior_weights_know_vectors_only_where_there_are_some(pool: Pool) -> None:
    about = np.array(["meaning" in name or name in GROUPS["axes"] for name in NAMES])
    assert not prior_weights(pool)[about].any()
    for text in ("static", "dense"):
        assert prior_weights(pool, text=text)[about].all()
    np.testing.assert_array_equal(
        prior_weights(pool, text="mine"), prior_weights(pool, text="dense")
    )
    without = prior_weights(pool, ("tags", "meaning"), "dense")
    hidden = np.array([name in (*GROUPS["tags"], *GROUPS["meaning"]) for name in NAMES])
    assert not without[hidden].any()
