"""What follows from the purpose of a model."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import sklearn.base

from atpgraph import ATP
from atpgraph.embedding.purposes import Settings, settle
from atpgraph.graph import generators

GRAPH = generators.noisy_hierarchy(80, 300, 20, random_state=3).graph


def settings(**params) -> Settings:
    return settle(ATP(**params).get_params(), 100, 990)


def test_each_purpose_has_its_settings() -> None:
    assert settings() == Settings("pairs", 0.0, 1e-4, 32)
    assert settings(purpose="links", n_components=1) == Settings(
        "nnls", pytest.approx(0.02 * 990 / 8910), 0.3, 3
    )
    assert settings(purpose="paper", n_components=1) == Settings("nnls", 0.0, 0.3, 3)


def test_what_is_given_stays() -> None:
    assert settings(regularization=0.5, max_iter=7) == Settings("pairs", 0.0, 0.5, 7)
    given = {"zero_weight": 1.0, "regularization": 0.0, "max_iter": 9}
    for purpose in ("links", "paper"):
        assert settings(purpose=purpose, **given) == Settings("nnls", 1.0, 0.0, 9)
    assert settings(solver="svd").solver == "svd"
    assert settings(solver="nnls").zero_weight > 0
    assert settings(purpose="links", solver="pairs").max_iter == 32


def test_signs_tell_the_purposes_apart() -> None:
    paths, links, paper = (
        ATP(8, purpose=name).fit(GRAPH) for name in ("reachability", "links", "paper")
    )
    assert paths.source_.min() < 0
    assert min(links.source_.min(), links.target_.min()) >= 0
    assert paper.zero_weight_ == 0 < links.zero_weight_
    assert links.threshold_ > 0
    assert np.array_equal(paths.levels_, links.levels_)


def test_clones_keep_what_is_auto() -> None:
    model = ATP(purpose="links", max_iter=4)
    clone = sklearn.base.clone(model.fit(GRAPH))
    assert clone.get_params() == model.get_params()
    assert clone.solver == clone.zero_weight == clone.regularization == "auto"
    assert repr(clone) == "ATP(purpose='links', max_iter=4)"


def test_what_was_chosen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="atpgraph"):
        ATP(4, purpose="links").fit(GRAPH)
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "Fitting for links: Settings(solver='nnls'" in text
    assert "weakest first: " in text
