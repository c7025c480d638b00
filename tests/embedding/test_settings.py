"""Parameters: what follows from the purpose, and what old ones become."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import sklearn.base

from atpgraph import ATP, InputError
from atpgraph.embedding.settings import Settings, settle
from atpgraph.graph import generators

GRAPH = generators.noisy_hierarchy(80, 300, 20, random_state=3).graph


def settings(**params) -> Settings:
    return settle(ATP(**params).get_params(), 100, 990)


def test_each_purpose_has_its_settings() -> None:
    assert settings() == Settings("reachability", 0.0, 1e-4, 32)
    assert settings(purpose="paper", n_components=1) == Settings("paper", 0.0, 0.3, 3)
    assert settings(purpose="paper", n_components=1, zero_weight="auto") == Settings(
        "paper", pytest.approx(0.02 * 990 / 8910), 0.3, 3
    )


def test_what_is_given_stays() -> None:
    assert settings(regularization=0.5, max_iter=7) == Settings("reachability", 0.0, 0.5, 7)
    given = {"zero_weight": 1.0, "regularization": 0.0, "max_iter": 9}
    assert settings(purpose="paper", **given) == Settings("paper", 1.0, 0.0, 9)


def test_there_are_at_most_ten_parameters() -> None:
    names = list(ATP().get_params())
    assert names[:5] == ["n_components", "purpose", "method", "max_iter", "random_state"]
    assert len(names) <= 10


def test_signs_tell_the_purposes_apart() -> None:
    paths = ATP(8, method="h-voting").fit(GRAPH)
    links = ATP(8, purpose="paper", zero_weight="auto").fit(GRAPH)
    paper = ATP(8, purpose="paper").fit(GRAPH)
    assert paths.source_.min() < 0
    assert paths.source_.dtype == np.float16
    assert links.source_.dtype == np.float32
    assert min(links.source_.min(), links.target_.min()) >= 0
    assert paper.settings_.zero_weight == 0 < links.settings_.zero_weight
    assert paths.threshold_ < links.threshold_
    assert np.array_equal(paths.levels_, links.levels_)


def test_clones_keep_what_is_auto() -> None:
    model = ATP(purpose="paper", max_iter=4)
    clone = sklearn.base.clone(model.fit(GRAPH))
    assert clone.get_params() == model.get_params()
    assert clone.regularization == "auto"
    assert repr(clone) == "ATP(purpose='paper', max_iter=4)"


def test_what_was_chosen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="atpgraph"):
        ATP(4, purpose="paper").fit(GRAPH)
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "Settings(purpose='paper'" in text


def test_links_is_an_old_name() -> None:
    with pytest.warns(DeprecationWarning, match="purpose='paper' with zero_weight='auto'"):
        old = ATP(8, purpose="links").fit(GRAPH)
    new = ATP(8, purpose="paper", zero_weight="auto").fit(GRAPH)
    assert old.settings_ == new.settings_
    assert old.source_.tobytes() == new.source_.tobytes()


@pytest.mark.parametrize("name", ["closure", "sketch_size", "memory", "tol", "c", "solver"])
def test_removed_parameters_warn(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"The parameter {name} of ATP has no effect"):
        model = ATP(4, **{name: "auto"})
    assert model.get_params() == ATP(4).get_params()


def test_removed_solvers() -> None:
    with pytest.warns(DeprecationWarning, match="non-negative factorization"):
        model = ATP(4, solver="nnls")
    assert (model.purpose, model.zero_weight) == ("paper", "auto")
    with pytest.raises(InputError, match=r"baselines\.svdm"):
        ATP(4, solver="svd")
    with pytest.raises(TypeError, match="no parameter 'nonsense'"):
        ATP(4, nonsense=1)
