from __future__ import annotations

import numpy as np
import pytest

from atpgraph.closure import closure_forest, kernel_table
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels


def test_tables() -> None:
    delta = np.arange(1, 6)
    np.testing.assert_array_equal(kernel_table("constant", 6)[1:], np.ones(5))
    np.testing.assert_array_equal(kernel_table("linear", 6)[1:], delta)
    np.testing.assert_allclose(kernel_table("log", 6)[1:], np.log(np.e + delta))
    harmonic = [sum(1 / k for k in range(1, d + 1)) for d in delta]
    np.testing.assert_allclose(kernel_table("harmonic", 6)[1:], harmonic)
    np.testing.assert_array_equal(kernel_table(np.sqrt, 6)[1:], np.sqrt(delta))
    assert kernel_table("log", 0).tolist() == kernel_table("log", 1).tolist() == [0.0]


def test_bad_kernels_are_refused() -> None:
    with pytest.raises(InputError, match="no kernel 'cubic'"):
        kernel_table("cubic", 4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"-1.0 at a difference of 3 levels"):
        kernel_table(lambda delta: 2.0 - delta, 5)
    with pytest.raises(InputError, match="nan"):
        kernel_table(lambda delta: delta * np.nan, 5)
    with pytest.raises(InputError, match="shape"):
        kernel_table(lambda delta: delta[:-1], 5)
    with pytest.raises(InputError, match=r"1e\+300 at a difference of 1 levels; .* 1e\+12"):
        kernel_table(lambda delta: delta * 1e300, 5)


@pytest.mark.data
def test_golden_chain_of_the_authors(data_dir) -> None:
    """Graph minus removed edges, peeled, harmonic kernel: the authors' own stored matrix."""
    folder = data_dir / "peer_pystack_ai"
    edges = np.loadtxt(folder / "competition_graph_index0.edges", dtype=np.int64)
    removed = np.loadtxt(
        folder / "competition_graph_index0_removed_by_H-Voting.edges", dtype=np.int64
    )
    graph = DiGraph.from_edges(edges)
    cut = graph.find_edges(graph.codes(removed[:, 0]), graph.codes(removed[:, 1]))
    keep = graph.sources != graph.targets
    keep[cut] = False
    dag = graph.keep_edges(keep)
    matrix = closure_forest(dag).to_sparse(levels(dag), "harmonic")
    golden = np.loadtxt(folder / "train_ranking_differences.dat")
    assert matrix.nnz == len(golden) == 18_481
    u, v = graph.codes(golden[:, 0].astype(np.int64)), graph.codes(golden[:, 1].astype(np.int64))
    np.testing.assert_allclose(matrix[u, v], golden[:, 2], atol=1e-9, rtol=0)
