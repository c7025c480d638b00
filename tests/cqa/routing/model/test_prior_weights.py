from __future__ import annotations

import json
from importlib.resources import files

from atpgraph.cqa.routing.features.names import GROUPS, NAMES
from atpgraph.cqa.routing.model.prior_weights import prior_weights


def test_prior_weights_name_features_that_exist() -> None:
    file = files("atpgraph.cqa.routing.model").joinpath("prior_weights.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert set(stored) == {"own", "all", "own-without-atp", "all-without-atp"}
    for name, weights in stored.items():
        assert set(weights) <= set(NAMES)
        assert bool(set(weights) & set(GROUPS["atp"])) == ("without" not in name)
    bare = prior_weights("all", ("atp", "text"))
    for group in ("atp", "text"):
        assert not bare[[NAMES.index(name) for name in GROUPS[group]]].any()
