"""DirLinkBench's split files, and ranking as a score for a search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.errors import InputError
from atpgraph.linkpred import EdgeSplit, LinkScorer, PairTest
from atpgraph.linkpred.benchmark import run
from atpgraph.linkpred.protocols.splits import is_splits, read_splits
from tests.linkpred.helpers import hierarchy


def write(folder: Path, turned: bool = False) -> None:
    folder.mkdir(parents=True)
    edges = {
        "observed_graph": [[0, 1], [1, 2], [2, 3], [0, 3]],
        "pos_test_edges": [[0, 2], [1, 3], [0, 4]],
        "neg_test_edges": [[3, 0], [4, 0], [3, 1]],
    }
    for name, pairs in edges.items():
        array = np.array(pairs, dtype=np.int64)
        np.save(folder / f"{name}.npy", array.T if turned else array)


def test_splits_are_read_in_order_and_either_way_round(tmp_path: Path) -> None:
    for number in (10, 2):
        write(tmp_path / str(number), turned=number == 10)
    assert is_splits(tmp_path)
    assert not is_splits(tmp_path / "2")
    first, second = read_splits(tmp_path)
    assert first.train.n_nodes == 5
    test = second.tests["dirlinkbench"]
    assert isinstance(test, PairTest)
    assert test.negatives.sources.tolist() == [3, 4, 3]
    result = run(first.train, "ppr", ["dirlinkbench"], splits=[first, second], seeds=5)
    assert result.seeds == [0, 1]
    assert result.headline("dirlinkbench") == "hits@100"


def test_a_test_edge_must_be_hidden(tmp_path: Path) -> None:
    write(tmp_path / "0")
    np.save(tmp_path / "0" / "pos_test_edges.npy", np.array([[0, 1]]))
    with pytest.raises(InputError, match="in the observed graph too"):
        read_splits(tmp_path)
    np.save(tmp_path / "0" / "pos_test_edges.npy", np.array([[0.5, 1.0]]))
    with pytest.raises(InputError, match="not pairs of nodes"):
        read_splits(tmp_path)
    with pytest.raises(InputError, match="contains no split"):
        read_splits(tmp_path / "0")


def test_ranking_scores_an_estimator() -> None:
    edges = list(hierarchy().edges())
    train, test = next(EdgeSplit(1, random_state=0).split(edges))
    model = ATP(4, purpose="paper", zero_weight="auto").fit([edges[row] for row in train])
    held_out = [edges[row] for row in test]
    mrr, hits = (LinkScorer("ranking", metric=m)(model, held_out) for m in (None, "hits@10"))
    assert 0 < mrr < 1
    assert mrr <= 0.1 + 0.9 * hits  # a rank past ten counts a tenth at the most
    with pytest.raises(InputError, match="did you mean 'mrr'"):
        LinkScorer("ranking", metric="mr")(model, held_out)


def test_all_splits_of_a_folder_are_used(tmp_path: Path) -> None:
    for number in range(7):
        write(tmp_path / str(number))
    splits = read_splits(tmp_path)
    result = run(splits[0].train, "degree-product", ["dirlinkbench"], splits=splits)
    assert result.seeds == list(range(7))
