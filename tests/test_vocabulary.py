"""The same words and types in ATP, LinkPredictor, Reachability and break_cycles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from atpgraph import ATP, InputError, LinkPredictor, Reachability, break_cycles, citation_dag

EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", ("e", 1))]


@pytest.fixture(scope="module")
def model() -> ATP:
    return ATP(n_components=4).fit(EDGES)


@pytest.fixture(scope="module")
def links() -> LinkPredictor:
    return LinkPredictor().fit(citation_dag(80, 300, random_state=0))


BATCHES = [list, tuple, np.array, pd.Series, pd.Index]


@pytest.mark.parametrize("batch", BATCHES)
def test_batches_of_any_kind(model: ATP, batch) -> None:
    sources, targets = batch(["a", "a", "d"]), batch(["b", "d", "a"])
    reach = Reachability(model.dag_)
    assert reach.reaches(sources, targets).tolist() == [True, True, False]
    assert len(model.score_pairs(sources, targets)) == 3
    assert [len(each) for each in model.top_targets(batch(["a", "b"]), 2)] == [2, 2]
    assert reach.n_descendants(batch(["a", "d"])).tolist() == [4, 1]


def test_a_tuple_that_is_a_label_is_one_node(model: ATP) -> None:
    assert model.score_pairs("a", ("e", 1)).shape == (1,)
    assert Reachability(EDGES).reaches("a", ("e", 1)) is True
    assert Reachability(EDGES).reaches("a", ("b", "c")).tolist() == [True, True]


def test_errors_are_short_and_suggest(model: ATP) -> None:
    graph = Reachability([("alpha", "beta")])
    with pytest.raises(InputError, match="no node 'alpa'; did you mean 'alpha'"):
        graph.reaches("alpa", "beta")
    with pytest.raises(InputError) as caught:
        graph.descendants(tuple(f"node {number}" for number in range(700)))
    assert len(str(caught.value)) < 120


def test_frames(model: ATP, links: LinkPredictor) -> None:
    found = model.top_targets(["a", "b"], 2, as_frame=True)
    assert found.columns.tolist() == ["source", "target", "score"]
    labels, scores = model.top_targets(["a", "b"], 2)
    assert found["target"].tolist() == np.concatenate(labels).tolist()
    assert found["score"].tolist() == np.concatenate(scores).tolist()
    assert set(model.top_sources("d", 2, as_frame=True)["target"]) == {"d"}
    assert links.recommend(3, 4, as_frame=True)["source"].tolist() == [3] * 4
    assert links.top_links(5, as_frame=True).shape == (5, 3)


def test_set_output(model: ATP) -> None:
    plain = model.transform(["a", "c"])
    framed = model.set_output(transform="pandas").transform(["a", "c"])
    assert framed.index.tolist() == ["a", "c"]
    assert framed.columns.tolist() == model.get_feature_names_out().tolist()
    assert np.array_equal(framed.to_numpy(), plain)
    assert isinstance(model.set_output(transform="polars").transform(["a"]), pl.DataFrame)
    assert np.array_equal(model.set_output(transform="default").transform(["a", "c"]), plain)
    with pytest.raises(InputError, match="no output 'panda'"):
        model.set_output(transform="panda")


def test_everything_shows_itself_in_a_notebook(model: ATP, links: LinkPredictor) -> None:
    for shown in (
        model,
        links,
        LinkPredictor(),
        Reachability(EDGES),
        break_cycles([*EDGES, ("d", "a")]),
    ):
        assert "<table>" in shown._repr_html_()


# Those of scikit-learn's checks that do not fit on a table of numbers: ours take graphs.
CHECKS = (
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_repr",
    "check_valid_tag_types",
)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("kind", [ATP, LinkPredictor])
def test_scikit_learn_checks(kind, name: str) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    check = getattr(checks, name, None)
    if check is None:
        pytest.skip(f"this version of scikit-learn has no {name}")
    check(kind.__name__, kind())
