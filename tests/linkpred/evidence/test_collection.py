"""Evidence side by side: rows, terms and candidates agree with pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred.evidence import KINDS, Collection, select_kinds
from atpgraph.linkpred.evidence.attributes import attribute_vectors, read_attributes
from atpgraph.linkpred.evidence.parts import (
    Attributes,
    Degrees,
    Settings,
    SpectralScore,
)
from tests.linkpred.helpers import dense, hierarchy


@pytest.fixture(scope="module")
def everything() -> Collection:
    graph = hierarchy()
    known = np.random.default_rng(0).standard_normal((graph.n_nodes, 3)).astype(np.float32)
    return Collection("all", Settings(n_components=4, attributes=known)).fit(graph)


def test_every_part_names_its_columns(everything: Collection) -> None:
    u, v = np.array([0, 1, 2]), np.array([3, 4, 5])
    assert everything.pairs(u, v).shape == (3, len(everything.names))
    assert everything.terms(u, v).shape == (3, len(everything.term_names))
    assert set(everything.kinds) == {*KINDS, "attributes"}
    assert len(everything.number_kinds) == len(everything.names)
    assert len(everything.term_kinds) == len(everything.term_names)


def test_a_row_is_the_terms_of_all_pairs_weighed(everything: Collection) -> None:
    n = everything.graph.n_nodes
    weights = np.random.default_rng(1).standard_normal(len(everything.term_names))
    sources = np.array([0, 7, n - 1])
    for u, line in zip(sources, everything.score_from(sources, weights), strict=True):
        expected = everything.terms(np.full(n, u), np.arange(n)) @ weights
        assert np.allclose(line, expected, atol=1e-3)


def test_the_default_leaves_the_slow_kinds_out() -> None:
    assert set(KINDS) - set(select_kinds("default")) == {"atp"}
    assert select_kinds("default,atp") == list(KINDS)


def test_degrees_and_spectral_against_the_adjacency() -> None:
    graph = hierarchy()
    a = (dense(graph) > 0).astype(float)
    found = np.expm1(Degrees(Settings()).fit(graph).pairs(np.array([3]), np.array([5])))[0]
    assert found.round(6).tolist() == [a[3].sum(), a[:, 3].sum(), a[5].sum(), a[:, 5].sum()]
    np.fill_diagonal(a, 0)
    u, v = np.divmod(np.arange(a.size), len(a))
    whole = SpectralScore(Settings(len(a))).fit(graph).pairs(u, v)[:, 0].reshape(a.shape)
    assert np.allclose(whole, a, atol=1e-4)
    eight = SpectralScore(Settings(4)).fit(graph).pairs(u, v)
    left, sigma, right = np.linalg.svd(a)
    for column, k in ((2, 1), (3, 2), (4, 4), (0, 8)):  # the sums over fewer of eight components
        fewer = (left[:, :k] * sigma[:k]) @ right[:k]
        assert np.allclose(eight[:, column].reshape(a.shape), fewer, atol=1e-3)
    assert np.allclose(eight[:, 1].reshape(a.shape), eight[:, 0].reshape(a.shape).T, atol=1e-4)


def test_unknown_evidence_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'paths'"):
        Collection(["path"])
    with pytest.raises(InputError, match="Name at least one kind"):
        Collection([])


def test_main_components_keep_inner_products() -> None:
    rng = np.random.default_rng(0)
    graph = DiGraph.from_codes([0], [1], 30)
    given = rng.standard_normal((30, 5))
    scaled = (given - given.mean(axis=0)) / given.std(axis=0) / np.sqrt(5)
    found = attribute_vectors(given, graph)
    assert np.allclose(found @ found.T, scaled @ scaled.T, atol=1e-4)


def test_attributes_of_every_kind_mean_the_same() -> None:
    import pandas as pd
    import scipy.sparse as sp

    graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    texts = {"d": "red wine", "a": "red wine", "b": "blue sea", "unknown": "nothing"}
    alike = Attributes(Settings(attributes=attribute_vectors(texts, graph)))
    first, other = alike.pairs(np.array([0, 0]), np.array([3, 1]))[:, 0]
    assert first == pytest.approx(1, abs=1e-4)
    assert other == pytest.approx(0, abs=1e-4)
    listed = attribute_vectors(["red wine", "blue sea", "", "red wine"], graph)
    assert np.allclose(listed, alike.vectors_, atol=1e-5)
    words = pd.DataFrame({"node": list("abcd"), "text": ["red wine", "blue sea", None, "red wine"]})
    assert np.allclose(attribute_vectors(words, graph), alike.vectors_, atol=1e-5)
    table = pd.DataFrame({"node": list("abcd"), "x": [1.0, 2, 3, 4], "y": [4.0, 1, 3, 2]})
    numbers = table[["x", "y"]].to_numpy()
    series = pd.Series(texts).sample(frac=1.0, random_state=0)
    assert np.allclose(attribute_vectors(series, graph), alike.vectors_, atol=1e-5)
    expected = attribute_vectors(numbers, graph)
    assert np.allclose(attribute_vectors(table, graph), expected)
    assert np.allclose(attribute_vectors(table.set_index("node"), graph), expected)
    # Rows without names are numbered, as the nodes of this graph are.
    numbered = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    mixed = pd.DataFrame({"node": [3, 1, 0, 2], "x": [4.0, 2, 1, 3], "y": [2.0, 1, 4, 3]})
    assert np.allclose(attribute_vectors(mixed, numbered), expected)
    assert np.allclose(attribute_vectors(table[["x", "y"]], numbered), expected)
    sparse = attribute_vectors(sp.csr_array(np.eye(4)), graph)
    assert np.allclose(sparse @ sparse.T, np.eye(4), atol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        (np.ones((3, 2)), "3 rows of attributes for 2 nodes"),
        ({"x": 1.0}, "No label of the attributes"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "different lengths"),
        (["", ""], "no word"),
        (np.array([[1.0], [np.nan]]), "not finite"),
        (object(), "must be numbers or texts"),
    ],
)
def test_bad_attributes_are_refused(attributes: object, why: str) -> None:
    with pytest.raises(InputError, match=why):
        attribute_vectors(attributes, DiGraph.from_edges([("a", "b")]))


def test_a_missing_number_in_a_file_is_no_text(tmp_path: Path) -> None:
    graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
    file = tmp_path / "attributes.csv"
    file.write_text("node,x,y\na,1,2\nb,,3\nc,4,5\n")
    with pytest.raises(InputError, match="not finite; fill in missing values"):
        attribute_vectors(read_attributes(file, graph), graph)
    file.write_text("a,word,2\nb,,3\nc,4,5\n")
    assert read_attributes(file, graph) == {"a": "word 2", "b": " 3", "c": "4 5"}
