from __future__ import annotations

import json

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa import (
    Scores,
    Site,
    bounty_truth,
    by_tag,
    evaluate_site,
    ingest,
    pairwise_accuracy,
    simulate_community,
    write_dump,
)
from atpgraph_qa.difficulty.methods import METHODS
from atpgraph_qa.difficulty.signal_model import number_of_answers

from ..dumps import question, write


@pytest.fixture(scope="module")
def community(tmp_path_factory):
    folder = tmp_path_factory.mktemp("community")
    made = simulate_community(300, 1500, n_topics=4, random_state=1)
    write_dump(made, folder / "dump", random_state=1)
    ingest(folder / "dump", folder / "site")
    return made, folder / "dump", Site(folder / "site")


def test_the_methods_on_a_community_with_known_truth(community):
    _, dump, site = community
    report = evaluate_site(site, n_bootstrap=50)
    assert list(report.methods) == list(METHODS)
    accuracy = {name: found.mean for name, found in report.methods.items()}
    # The planted difficulty explains the bounties; graph methods find part of it, counts little.
    planted = np.load(dump / "truth.npz")
    known = dict(zip(planted["question_id"].tolist(), planted["difficulty"].tolist(), strict=True))
    truth = bounty_truth(site)
    best = pairwise_accuracy(truth, Scores.of(truth, site, known), n_bootstrap=1).mean
    assert best > 0.85
    assert 0.4 < accuracy["number-of-answers"] < 0.6
    assert min(accuracy["qdee"], accuracy["trueskill"]) > 0.62
    assert report.tags
    counts = Scores(number_of_answers(site)[truth.question])
    assert all(row.questions >= 20 for row in report.tags)
    assert by_tag(site, truth, {"m": counts}, min_questions=10_000) == []

    stored = json.loads(json.dumps(report.to_dict()))
    assert set(stored["site"]) == {"questions", "answers", "users", "bounties", "nodes", "edges"}
    assert stored["pairs"] == truth.n_pairs()
    assert evaluate_site(site, n_bootstrap=50).to_dict() == stored


def test_many_questions_are_sampled(community):
    site = community[2]
    report = evaluate_site(site, methods=["qdee"], n_bootstrap=5, max_questions=40)
    assert report.settings["questions_compared"] == 40
    assert report.methods["qdee"].pairs <= 40 * 39 // 2


def test_unknown_methods_and_sites_without_bounties(community, tmp_path):
    with pytest.raises(InputError, match="no method 'magic'"):
        evaluate_site(community[2], methods=["magic"])
    ingest(write(tmp_path / "dump", posts=[question(1)]), tmp_path / "site")
    with pytest.raises(InputError, match=r"no Votes\.xml"):
        evaluate_site(Site(tmp_path / "site"))
