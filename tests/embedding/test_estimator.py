from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from atpgraph import ATP, BudgetError, InputError
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.embedding.ranking import top_by_product
from atpgraph.factorization import solve_rows
from atpgraph.graph import DiGraph, generators
from atpgraph.hierarchy import levels
from tests.strategies import digraphs


@pytest.fixture(scope="module")
def fitted() -> ATP:
    graph = generators.noisy_hierarchy(120, 500, 30, random_state=1).graph
    return ATP(n_components=8, random_state=0).fit(graph)


def test_fit_is_the_four_steps(fitted: ATP) -> None:
    n = fitted.graph_.n_nodes
    assert fitted.source_.shape == fitted.target_.shape == (n, 8)
    assert fitted.source_.min() >= 0
    assert fitted.target_.min() >= 0
    assert fitted.dag_.n_edges + len(fitted.removed_edges_) == fitted.graph_.n_edges
    assert fitted.levels_.tolist() == levels(fitted.dag_).tolist()
    assert set(fitted.timings_) == {"cycles", "hierarchy", "closure", "factorization"}
    assert len(fitted.objective_) == fitted.n_iter_
    rows, _ = closure_forests(fitted.dag_)
    assert fitted.n_reachable_pairs_ == rows.n_pairs


def test_paths_score_above_their_reverses(fitted: ATP) -> None:
    rows, _ = closure_forests(fitted.dag_)
    u, v = rows.to_sparse(fitted.levels_).nonzero()
    there, back = fitted.score_pairs(u, v), fitted.score_pairs(v, u)
    assert np.mean(there > back) > 0.97


def test_scores_probabilities_and_predictions_agree(fitted: ATP) -> None:
    u, v = np.array([0, 5, 7]), np.array([9, 2, 3])
    scores = fitted.score_pairs(u, v)
    expected = [float(fitted.source_[a] @ fitted.target_[b]) for a, b in zip(u, v, strict=True)]
    assert scores == pytest.approx(expected, rel=1e-5)
    probability = fitted.predict_proba(u, v)
    assert probability == pytest.approx(1 / (1 + np.exp(-scores)))
    assert fitted.predict(u, v, 0.7).tolist() == (probability > 0.7).tolist()
    assert fitted.score_pairs(3, [1, 2]).shape == (2,)
    with pytest.raises(InputError, match="threshold"):
        fitted.predict(u, v, 0.4)
    with pytest.raises(InputError, match="no node"):
        fitted.score_pairs([10_000], [1])


def test_the_threshold_tells_paths_from_other_pairs(fitted: ATP) -> None:
    rows, _ = closure_forests(fitted.dag_)
    reach = rows.to_sparse(fitted.levels_).toarray() > 0
    other = ~reach & ~np.eye(len(reach), dtype=bool)
    u, v = np.indices(reach.shape)
    found = fitted.predict(fitted.labels_[u.ravel()], fitted.labels_[v.ravel()]).reshape(u.shape)
    paper = fitted.source_ @ fitted.target_.T > 0
    right = (found[reach].mean() + 1 - found[other].mean()) / 2
    assert right > (paper[reach].mean() + 1 - paper[other].mean()) / 2 + 0.1
    best = max(
        (scores > cut)[reach].mean() - (scores > cut)[other].mean()
        for scores in [fitted.source_ @ fitted.target_.T]
        for cut in np.quantile(scores, np.linspace(0, 1, 200))
    )
    assert right > (1 + best) / 2 - 0.02


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_top_equals_sorting_all_products(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, 3, (4, 2)).astype(np.float32)  # small integers: many ties
    vectors = rng.integers(0, 3, (9, 2)).astype(np.float32)
    skip = rng.integers(-1, 9, 4)
    rows, scores = top_by_product(queries, vectors, k, skip)
    for i in range(4):
        product = (queries[i] @ vectors.T).astype(float)
        if skip[i] >= 0:
            product[skip[i]] = -np.inf
        expected = np.argsort(-product, kind="stable")[: rows.shape[1]]
        assert rows[i].tolist() == expected.tolist()
        assert scores[i].tolist() == product[expected].tolist()


def test_labels_go_in_and_come_out() -> None:
    edges = [("a", "b"), ("b", "c"), (("t", 1), "c"), ("c", None)]
    model = ATP(n_components=2).fit(edges)
    assert model.labels_.tolist() == ["a", "b", "c", ("t", 1), None]
    names, scores = model.top_targets("a", 2)
    assert set(names.tolist()) <= {"b", "c", None}
    assert scores[0] >= scores[1]
    several, _ = model.top_sources(["c", None], 1)
    assert several.shape == (2, 1)
    assert "a" not in model.top_targets("a", 10)[0].tolist()


@pytest.mark.parametrize(
    "build",
    [
        lambda edges: np.array(edges),
        lambda edges: DiGraph.from_edges(edges),
        lambda edges: sp.csr_array((np.ones(3), np.array(edges).T), shape=(4, 4)),
    ],
)
def test_fit_takes_what_the_graph_type_takes(build: object) -> None:
    model = ATP(n_components=2).fit(build([(0, 1), (1, 2), (2, 3)]))
    assert model.levels_.tolist() == [1, 2, 3, 4]


def test_scikit_learn_conventions() -> None:
    model = ATP(n_components=3, kernel="harmonic", memory="1GB")
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert copy.set_params(tol=0.5).tol == 0.5
    assert repr(model) == "ATP(n_components=3, kernel='harmonic', memory='1GB')"
    assert not hasattr(model, "source_")
    with pytest.raises(InputError, match="no parameter 'dims'"):
        model.set_params(dims=3)
    with pytest.raises(InputError, match="not fitted"):
        model.score_pairs([1], [2])


@pytest.mark.parametrize("solver", ["nnls", "svd"])
@pytest.mark.parametrize(
    "graph",
    [
        DiGraph.from_edges([]),
        DiGraph.from_edges([], nodes=["only"]),
        DiGraph.from_edges([(0, 0)]),
        DiGraph.from_edges([(0, 1)], nodes=[5, 6]),
        DiGraph.from_edges([(0, 1), (2, 3)]),
        DiGraph.from_edges([(0, 1), (1, 0)]),
    ],
)
@pytest.mark.parametrize("k", [1, 7])
def test_no_nan_on_degenerate_graphs(graph: DiGraph, k: int, solver: str) -> None:
    model = ATP(n_components=k, solver=solver).fit(graph)
    assert model.source_.shape == (graph.n_nodes, k)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


@given(digraphs(max_nodes=12), st.sampled_from(["log", "harmonic", "linear", "constant"]))
def test_any_small_graph_embeds(graph: DiGraph, kernel: str) -> None:
    model = ATP(n_components=3, kernel=kernel).fit(graph)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


def test_same_seed_same_bytes_for_any_number_of_threads() -> None:
    graph = generators.gnm(400, 1600, 0)
    one, two = (ATP(n_components=16, n_jobs=jobs, random_state=3).fit(graph) for jobs in (1, 2))
    assert one.source_.tobytes() == two.source_.tobytes()
    assert one.target_.tobytes() == two.target_.tobytes()
    other = ATP(n_components=16, random_state=4).fit(graph)
    assert other.source_.tobytes() != one.source_.tobytes()


def test_fold_in_is_the_row_a_refit_would_solve(fitted: ATP) -> None:
    dag = fitted.dag_
    out = [int(np.argmax(dag.out_degree))]
    source, target = fitted.fold_in(out_edges=out)
    assert np.all(target == 0)
    rows, _ = closure_forests(dag)
    reached = np.union1d(rows.descendants(out), out)
    table = np.append(kernel_table("log", int(fitted.levels_.max())), 0.0)
    values = table[np.maximum(fitted.levels_[reached] - 1, 1)]
    expected = solve_rows(
        fitted.target_, [0, len(reached)], reached, values,
        zero_weight=fitted.zero_weight_, regularization=fitted.regularization_,
    )  # fmt: skip
    assert source == pytest.approx(expected[0], rel=1e-5, abs=1e-7)


def test_fold_in_keeps_direction(fitted: ATP) -> None:
    """A new node between the bottom and the top leads up and is led to from below."""
    rank = fitted.levels_
    low, high = np.flatnonzero(rank <= 2)[:5].tolist(), np.flatnonzero(rank >= rank.max() - 1)
    source, target = fitted.fold_in(out_edges=high.tolist(), in_edges=low)
    assert np.mean(fitted.target_[high] @ source) > np.mean(fitted.target_[low] @ source)
    assert np.mean(fitted.source_[low] @ target) > np.mean(fitted.source_[high] @ target)
    nothing = fitted.fold_in()
    assert not np.any(nothing[0])
    assert not np.any(nothing[1])


def test_fold_in_does_not_take_ancestors_for_descendants() -> None:
    exact = ATP(n_components=4, zero_weight=1.0, regularization=0.0, max_iter=300, tol=0.0)
    chain = exact.fit([("a", "b"), ("b", "c"), ("c", "d")])
    source, _ = chain.fold_in(out_edges=["b"], in_edges=["c"])  # would close b → c → new → b
    beyond, back = (float(source @ chain.target_[code]) for code in chain.graph_.codes(["d", "b"]))
    assert beyond > 10 * back


def test_bad_parameters_get_a_sentence() -> None:
    edges = [(0, 1)]
    for arguments, sentence in [
        ({"solver": "sgd"}, "solver"),
        ({"kernel": "cubic"}, "Unknown kernel"),
        ({"method": "none"}, "no cycle-breaking method"),
        ({"zero_weight": 2.0}, "zero_weight"),
        ({"memory": "lots"}, "memory budget"),
        ({"n_components": 0}, "n_components"),
    ]:
        with pytest.raises(InputError, match=sentence):
            ATP(**arguments).fit(edges)
    with pytest.raises(BudgetError, match="lower n_components"):
        ATP(memory=100).fit(edges)


def test_auto_weight_of_zeros_is_a_share_of_the_reachable_pairs(fitted: ATP) -> None:
    n, pairs = fitted.graph_.n_nodes, fitted.n_reachable_pairs_
    assert fitted.zero_weight_ * (n * (n - 1) - pairs) == pytest.approx(0.02 * pairs)
    assert fitted.regularization_ == pytest.approx(min(4 * 8 * n / pairs, 0.3))
    assert ATP(2, zero_weight=0.5).fit([(0, 1)]).zero_weight_ == 0.5


def test_callable_kernel() -> None:
    model = ATP(n_components=2, kernel=lambda delta: 3.0 * delta, regularization=0.0, max_iter=50)
    model.fit([(0, 1), (1, 2)])
    assert model.score_pairs([0], [2])[0] == pytest.approx(6.0, rel=0.05)


def test_worked_example_of_the_paper() -> None:
    """Cycles among B, C, D, E; the removed edges and the direction of (B, E) are the paper's."""
    edges = [
        ("A", "B"), ("B", "C"), ("B", "D"), ("C", "E"), ("D", "E"), ("B", "E"),
        ("C", "B"), ("D", "B"), ("E", "C"), ("E", "D"),
    ]  # fmt: skip
    model = ATP(n_components=4, zero_weight=0.1).fit(edges)
    assert set(model.removed_edges_) == {("C", "B"), ("D", "B"), ("E", "C"), ("E", "D")}
    assert dict(zip(model.labels_, model.levels_.tolist(), strict=True))["A"] == 1
    there, back = model.score_pairs(["B", "E"], ["E", "B"])
    assert there > 1.0
    assert back < 0.01
