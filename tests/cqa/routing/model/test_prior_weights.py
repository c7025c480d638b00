from __future__ import annotations

import json
from importlib.resources import files

from atpgraph.cqa.routing.features.names import GROUPS, NAMES
from atpgraph.cqa.routing.model.prior_weights import prior_weights
from atpgraph.cqa.routing.timeline.candidates import POOLS


def test_prior_weights_name_features_that_exist() -> None:
    file = files("atpgraph.cqa.routing.model").joinpath("prior_weights.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert set(stored) == {f"{p}-{t}" for p in POOLS for t in ("bm25", "static", "dense")}
    for weights in stored.values():
        assert set(weights) <= set(NAMES)
    bare = prior_weights("all", ("tags", "text"))
    for group in ("tags", "text"):
        assert not bare[[NAMES.index(name) for name in GROUPS[group]]].any()
