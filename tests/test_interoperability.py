"""Other libraries, as their users use them: graphs go in, vectors come out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from atpgraph import ATP, DiGraph, InputError, as_graph, noisy_hierarchy
from atpgraph.embedding.files import export
from atpgraph.evaluation.metrics import auc
from atpgraph.linkpred import EdgeSplit, LinkScorer, make_split

GRAPH = noisy_hierarchy(60, 260, 20, random_state=1).graph
EDGES = np.stack([GRAPH.sources, GRAPH.targets], axis=1).astype(np.int64)


def fitted(graph: object) -> ATP:
    return ATP(n_components=16).fit(graph)


def networkx_graph():
    return pytest.importorskip("networkx").DiGraph(EDGES.tolist())


def igraph_graph():
    return pytest.importorskip("igraph").Graph(EDGES.tolist(), directed=True)


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame({"source": EDGES[:, 0], "target": EDGES[:, 1]})


def polars_frame():
    return pytest.importorskip("polars").DataFrame({"source": EDGES[:, 0], "target": EDGES[:, 1]})


def arrow_table():
    return pytest.importorskip("pyarrow").table({"from": EDGES[:, 0], "to": EDGES[:, 1]})


def scipy_matrix():
    return sp.csr_array((np.ones(len(EDGES)), EDGES.T), shape=(60, 60))


def torch_index():
    return pytest.importorskip("torch").tensor(EDGES.T.copy())


def geometric_data():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    return data.Data(edge_index=torch.tensor(EDGES.T.copy()), num_nodes=60)


@pytest.mark.parametrize(
    "make",
    [
        networkx_graph, igraph_graph, pandas_frame, polars_frame, arrow_table, scipy_matrix,
        torch_index, geometric_data, lambda: EDGES.T, lambda: EDGES.tolist(),
    ],
)  # fmt: skip
def test_every_library_gives_the_same_graph_and_a_model(make) -> None:
    given = make()
    graph = as_graph(given)
    assert sorted(graph.edges()) == sorted(map(tuple, EDGES.tolist()))
    model = fitted(given)
    assert set(model.labels_.tolist()) == set(GRAPH.labels.tolist())
    assert model.score_pairs(EDGES[:, 0], EDGES[:, 1]).mean() > 0.5


def test_edge_index_keeps_the_numbers_of_the_nodes() -> None:
    for given in (EDGES.T, scipy_matrix()):
        model = fitted(given)
        assert model.labels_.tolist() == list(range(60))
        whole = model.source_.astype(float) @ model.target_.T.astype(float)
        assert model.score_pairs([7], [3])[0] == pytest.approx(whole[7, 3], rel=1e-5)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert sorted(as_graph(torch.tensor([[0, 1], [2, 3]])).edges()) == [(0, 2), (1, 3)]
    assert sorted(as_graph(torch.tensor([[0, 1], [1, 2], [2, 3]])).edges()) == [
        (0, 1), (1, 2), (2, 3),
    ]  # fmt: skip
    with pytest.raises(InputError, match="whole numbers"):
        as_graph(torch.rand(2, 5))


def test_gensim_loads_the_export(tmp_path) -> None:
    models = pytest.importorskip("gensim.models")
    named = fitted([(f"node {u}", f"node {v}") for u, v in EDGES.tolist()])
    source_file, target_file = export(named, "word2vec", tmp_path / "vectors")
    source = models.KeyedVectors.load_word2vec_format(source_file)
    target = models.KeyedVectors.load_word2vec_format(target_file)
    assert source.index_to_key == [label.replace(" ", "_") for label in named.labels_]
    assert source.vectors == pytest.approx(named.source_, rel=1e-6)
    u, v = named.labels_[3], named.labels_[9]
    product = source[u.replace(" ", "_")] @ target[v.replace(" ", "_")]
    assert product == pytest.approx(named.score_pairs([u], [v])[0], rel=1e-4)


def test_pandas_and_polars_read_the_export(tmp_path) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    model = fitted(EDGES)
    (file,) = export(model, "parquet", tmp_path / "vectors.parquet")
    for table in (pd.read_parquet(file), pl.read_parquet(file)):
        assert list(table["node"]) == model.labels_.tolist()
        vectors = np.array([list(row) for row in table["source"]], dtype=np.float32)
        assert vectors.tobytes() == model.source_.astype(np.float32).tobytes()


def test_clone_and_pipeline() -> None:
    base = pytest.importorskip("sklearn.base")
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.utils.validation import check_is_fitted

    original = ATP(n_components=5, kernel="linear", random_state=3).fit(EDGES)
    copy = base.clone(original)
    assert copy.get_params() == original.get_params()
    assert not hasattr(copy, "source_")
    turned = Pipeline([("turn", FunctionTransformer(lambda x: x[:, ::-1])), ("atp", copy)])
    turned.set_params(atp__n_components=3).fit(EDGES)
    check_is_fitted(turned[-1])
    assert turned[-1].source_.shape == (60, 3)
    assert sorted(turned[-1].graph_.edges()) == sorted((v, u) for u, v in EDGES.tolist())
    # The scorer turns the test edges as the pipeline did before it scores them.
    train, test = next(EdgeSplit(1).split(EDGES))
    turned.fit(EDGES[train])
    assert LinkScorer("reversed")(turned, EDGES[test]) > 0.7


@pytest.mark.parametrize("kind", ["array", "list", "text", "frame"])
def test_grid_search_over_the_dimension(kind) -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    edges: object = {
        "array": lambda: EDGES,
        "list": EDGES.tolist,
        "text": lambda: [(f"n{u}", f"n{v}") for u, v in EDGES.tolist()],
        "frame": pandas_frame,
    }[kind]()
    search = selection.GridSearchCV(
        ATP(random_state=0),
        {"n_components": [4, 8, 16]},
        scoring=LinkScorer("paper"),
        cv=EdgeSplit(2, random_state=0),
    )
    search.fit(edges)
    assert search.best_params_["n_components"] in (4, 8, 16)
    scores = search.cv_results_["mean_test_score"]
    assert np.all((scores > 0.5) & (scores <= 1))
    assert search.best_score_ == scores.max()
    assert search.best_estimator_.graph_.n_edges == len(EDGES)  # fitted again on all edges


def test_scorer_agrees_with_the_laboratory() -> None:
    split = make_split(GRAPH, protocols=["reversed"], random_state=4)
    test = split.tests["reversed"]
    model = fitted(split.train)
    good, bad = (model.score_pairs(p.sources, p.targets) for p in (test.positives, test.negatives))
    held_out = np.stack([split.positives.sources, split.positives.targets], axis=1)
    assert LinkScorer("reversed")(model, held_out) == pytest.approx(auc(good, bad))


@pytest.mark.parametrize("protocol", ["random", "paper"])
def test_negatives_are_judged_by_all_edges(protocol, monkeypatch) -> None:
    """No pair that is an edge, of the training or the test part, is ever a negative."""
    seen = []
    train, test = next(EdgeSplit(1, fraction=0.3).split(EDGES))
    model = fitted(EDGES[train])
    real = ATP.score_pairs

    def spy(self, u, v):
        seen.append(set(zip(np.asarray(u).tolist(), np.asarray(v).tolist(), strict=True)))
        return real(self, u, v)

    monkeypatch.setattr(ATP, "score_pairs", spy)
    LinkScorer(protocol)(model, EDGES[test])
    positives, negatives = seen
    assert positives == set(map(tuple, EDGES[test].tolist()))
    assert not negatives & set(map(tuple, EDGES.tolist()))


def test_edge_split_keeps_nodes_and_duplicates_together() -> None:
    doubled = np.concatenate([EDGES, EDGES[:50]])
    splits = list(EdgeSplit(3, fraction=0.2, random_state=1).split(doubled))
    assert len(splits) == 3 == EdgeSplit(3).get_n_splits()
    for train, test in splits:
        assert sorted(np.concatenate([train, test]).tolist()) == list(range(len(doubled)))
        ours, theirs = (set(map(tuple, doubled[rows].tolist())) for rows in (train, test))
        assert not ours & theirs
        assert len(theirs) == round(0.2 * len(EDGES))
        assert {u for edge in ours for u in edge} == set(range(60))
    assert splits[0][1].tolist() != splits[1][1].tolist()
    again = list(EdgeSplit(3, fraction=0.2, random_state=1).split(doubled))
    assert [test.tolist() for _, test in again] == [test.tolist() for _, test in splits]


def test_what_cannot_be_split_or_scored() -> None:
    model = fitted(EDGES)
    for call, message in (
        (lambda: next(EdgeSplit().split("edges.txt")), "no rows"),
        (lambda: next(EdgeSplit().split(GRAPH)), "no rows"),
        (lambda: next(EdgeSplit().split([(0, 1), (1, 2)])), "forest"),
        (lambda: next(EdgeSplit(fraction=1.5).split(EDGES)), "between 0 and 1"),
        (lambda: LinkScorer("lucky")(model, EDGES), "no protocol 'lucky'"),
        (lambda: LinkScorer(metric="f1")(model, EDGES), "no metric 'f1'"),
        (lambda: LinkScorer()(model, [(0, 99)]), "no node 99"),
        (lambda: LinkScorer("reversed")(fitted([(0, 1), (1, 0)]), [(0, 1)]), "no pairs"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_extras_named_in_messages_exist() -> None:
    root = Path(__file__).resolve().parent.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (root / "src").rglob("*.py"))
    named = re.findall(r'MissingDependencyError\(\s*"([\w-]+)", "([\w-]+)"', sources)
    assert len(named) >= 8
    for package, extra in named:
        assert any(item.startswith(package) for item in extras[extra]), (package, extra)


def test_digraph_round_trip_through_scipy() -> None:
    back = DiGraph.from_scipy(GRAPH.to_scipy(), labels=GRAPH.labels)
    assert sorted(back.edges()) == sorted(GRAPH.edges())
