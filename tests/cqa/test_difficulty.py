from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa import (
    BountyTruth,
    Scores,
    Site,
    bounty_truth,
    by_tag,
    evaluate,
    evaluate_site,
    halves,
    ingest,
    pairwise_accuracy,
    simulate_community,
    write_dump,
)
from atpgraph.cqa.baselines import number_of_answers, time_to_best_answer, time_to_first_answer
from atpgraph.cqa.difficulty_report import write_report
from atpgraph.cqa.evaluation import METHODS
from atpgraph.errors import InputError

from .dumps import answer, question, write

DAY = 24 * 3600 * 1000
cases = st.lists(
    st.tuples(
        st.sampled_from([50, 100, 200]),
        st.sampled_from([0.0, 1.0, 2.0, float("inf"), float("nan")]),
    ),
    min_size=2,
    max_size=15,
)


def truth_of(amounts: list[int]) -> BountyTruth:
    return BountyTruth(np.arange(len(amounts)), np.array(amounts))


@given(cases)
def test_accuracy_against_a_loop_over_pairs(rows):
    truth = truth_of([amount for amount, _ in rows])
    right = tied = pairs = 0
    for amount, score in rows:
        for other, less in rows:
            if amount > other:
                pairs += 1
                right += score > less
                tied += not (score > less or score < less)
    found = pairwise_accuracy(truth, Scores(np.array([s for _, s in rows])), n_bootstrap=20)
    assert (found.pairs, found.ties, truth.n_pairs()) == (pairs, tied, pairs)
    if pairs:
        assert found.mean == pytest.approx((right + tied / 2) / pairs)
        assert found.ties_right == pytest.approx((right + tied) / pairs)
        if pairs > tied:
            assert found.skip_ties == pytest.approx(right / (pairs - tied))
        assert 0 <= found.low <= found.high <= 1


def test_the_interval_is_that_of_resampled_questions():
    rng = np.random.default_rng(1)
    amounts = rng.choice([50, 100, 200], 40)
    scores = amounts + rng.normal(0, 80, 40)
    found = pairwise_accuracy(truth_of(amounts), Scores(scores), n_bootstrap=300, random_state=5)
    draws = np.random.default_rng(5)
    shares = []
    for _ in range(300):
        which = draws.integers(40, size=40)
        again = pairwise_accuracy(truth_of(amounts[which]), Scores(scores[which]), n_bootstrap=1)
        shares.append(again.mean)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])))


def test_a_part_is_judged_as_if_it_were_alone():
    rng = np.random.default_rng(2)
    truth = truth_of(rng.choice([50, 100], 30))
    scores = rng.random(30)
    which = rng.random(30) < 0.5
    part = evaluate(truth, {"m": Scores(scores)}, which=which)["m"]
    assert part == pairwise_accuracy(truth.take(which), Scores(scores[which]))


@pytest.mark.parametrize("by", ["random", "time"])
def test_halves_are_disjoint_and_complete(by):
    truth = truth_of([50] * 21)
    validation, test = halves(truth, by=by, random_state=3)
    assert (validation ^ test).all()
    assert validation.sum() == 10
    assert (halves(truth, by=by, random_state=3)[0] == validation).all()
    if by == "time":
        assert validation[:10].all()
    with pytest.raises(InputError):
        halves(truth, by="luck")


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
    assert number_of_answers(site, truth).values.tolist() == [2, 1, 1]
    assert time_to_first_answer(site, truth).values.tolist() == [2 * DAY, DAY, 0]
    assert time_to_best_answer(site, truth).values.tolist() == [5 * DAY, np.inf, 0]
    by_id = Scores.of(truth, site, {1: 5.0, 3: 2.0})
    assert np.array_equal(by_id.values, [5.0, np.nan, 2.0], equal_nan=True)


@pytest.fixture(scope="module")
def community(tmp_path_factory):
    folder = tmp_path_factory.mktemp("community")
    made = simulate_community(300, 1500, n_topics=4, random_state=1)
    write_dump(made, folder / "dump", random_state=1)
    ingest(folder / "dump", folder / "site")
    return made, folder / "dump", Site(folder / "site")


def test_the_methods_on_a_community_with_known_truth(community, tmp_path):
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
    assert all(row.questions >= 20 for row in report.tags)
    assert by_tag(site, truth, {"m": number_of_answers(site, truth)}, min_questions=10_000) == []

    write_report(report, tmp_path / "report", "atp cqa difficulty <site>")
    stored = json.loads((tmp_path / "report/report.json").read_text())
    assert stored == report.to_dict()
    assert set(stored["site"]) == {"questions", "answers", "users", "bounties", "nodes", "edges"}
    assert stored["pairs"] == truth.n_pairs()
    assert "| qdee |" in (tmp_path / "report/report.md").read_text()
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


@pytest.mark.data
def test_number_of_answers_on_travel(travel):
    _, site = travel
    truth = bounty_truth(site)
    found = pairwise_accuracy(truth, number_of_answers(site, truth), n_bootstrap=1)
    assert (len(truth), found.pairs) == (1188, 358_596)
    assert found.mean == pytest.approx(0.5814, abs=5e-5)
