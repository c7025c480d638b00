"""Metrics against numbers worked out by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from atpgraph_qa.evaluation.evaluation import Ranks, first_rank


def test_by_hand() -> None:
    # Ranks 1, 2.5 (a tie of two after one), 4, and nobody; candidates 4, 3, 5, 10.
    rank = np.array([1.0, 2.5, 4.0, np.inf])
    ranks = Ranks(rank, np.array([4, 3, 5, 10]), rank)
    found = {name: values.tolist() for name, values in ranks.metrics().items()}
    assert found["mrr"] == [1.0, 0.4, 0.25, 0.0]
    assert found["p@1"] == [1.0, 0.0, 0.0, 0.0]
    assert found["p@3"] == [1.0, 1.0, 0.0, 0.0]
    assert found["accuracy"] == [1.0, 0.25, 0.25, 0.0]
    assert found["hits@5"] == [1.0, 1.0, 1.0, 0.0]
    assert found["ndcg"] == pytest.approx([1.0, 1 / np.log2(3.5), 1 / np.log2(5), 0.0])


def test_a_single_candidate_is_right() -> None:
    one = np.array([1.0])
    assert Ranks(one, np.array([1]), one).accuracy.tolist() == [1.0]


def test_somebody_among_the_first_answered() -> None:
    rank, candidates = np.array([9.0, np.inf]), np.array([20, 20])
    found = Ranks(rank, candidates, np.array([2.0, np.inf])).metrics()
    assert found["answered@1"].tolist() == [0.0, 0.0]
    assert found["answered@3"].tolist() == [1.0, 0.0]
    assert found["answered@10"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("wanted", [[0], [1, 2], [1, 4], [2, 3, 4], [4], [0, 1, 2, 3, 4]])
def test_the_first_of_several_among_equals(wanted: list[int]) -> None:
    scores, right = np.array([3.0, 2.0, 2.0, 2.0, 1.0]), np.isin(np.arange(5), wanted)
    # Every order that the scores allow is as likely as any other.
    orders = [o for o in permutations(range(5)) if (np.diff(scores[list(o)]) <= 0).all()]
    ranks = [1 + min(order.index(each) for each in wanted) for order in orders]
    assert first_rank(scores, right) == pytest.approx(np.mean(ranks))
    assert first_rank(scores, np.zeros(5, dtype=bool)) == np.inf
