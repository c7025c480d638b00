from __future__ import annotations

import numpy as np
import pytest

from atpgraph_qa import Scores, Site, bounty_truth, ingest, pairwise_accuracy
from atpgraph_qa.difficulty.signal_model import (
    number_of_answers,
    time_to_best_answer,
    time_to_first_answer,
)

from ..dumps import answer, question, write

DAY = 24 * 3600 * 1000


def vote(number: int, post: int, amount: int) -> dict[str, object]:
    row = {"Id": number, "PostId": post, "VoteTypeId": 8, "BountyAmount": amount}
    return {**row, "CreationDate": "2020-01-09T00:00:00.000"}


def test_bounties_and_simple_methods(tmp_path):
    posts = [
        question(1, 1, AcceptedAnswerId=12),
        question(2, 1),
        question(3, 3, AcceptedAnswerId=14),
        answer(11, 1, 3),
        answer(12, 1, 6),
        answer(13, 2, 2),
        answer(14, 3, 1),  # older than its question
    ]
    votes = [vote(1, 1, 50), vote(2, 1, 100), vote(3, 2, 200), vote(4, 3, 50), vote(5, 77, 500)]
    ingest(write(tmp_path / "dump", posts=posts, votes=votes), tmp_path / "site")
    site = Site(tmp_path / "site")
    truth = bounty_truth(site)
    assert site.questions.id[truth.question].tolist() == [1, 2, 3]
    assert truth.amount.tolist() == [100, 200, 50]
    assert number_of_answers(site).tolist() == [2, 1, 1]
    assert time_to_first_answer(site).tolist() == [2 * DAY, DAY, 0]
    assert time_to_best_answer(site).tolist() == [5 * DAY, np.inf, 0]
    by_id = Scores.of(truth, site, {1: 5.0, 3: 2.0})
    assert np.array_equal(by_id.values, [5.0, np.nan, 2.0], equal_nan=True)


@pytest.mark.data
def test_number_of_answers_on_travel(travel):
    _, site = travel
    truth = bounty_truth(site)
    found = pairwise_accuracy(truth, Scores(number_of_answers(site)[truth.question]), n_bootstrap=1)
    assert (len(truth), found.pairs) == (1188, 358_596)
    assert found.mean == pytest.approx(0.5814, abs=5e-5)
