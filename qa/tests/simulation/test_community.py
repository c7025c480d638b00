from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from atpgraph.errors import InputError
from atpgraph_qa import Site, ingest, simulate_community, write_dump
from atpgraph_qa.simulation.community import _repeated


def test_same_seed_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_dump(simulate_community(60, 200, random_state=7), tmp_path / name, random_state=7)
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name
    write_dump(simulate_community(60, 200, random_state=8), tmp_path / "three", random_state=8)
    posts = [(tmp_path / name / "Posts.xml").read_bytes() for name in ("one", "three")]
    assert posts[0] != posts[1]


def test_the_dump_holds_the_community(tmp_path):
    made = simulate_community(80, 300, n_topics=3, random_state=2)
    summary = write_dump(made, tmp_path / "dump", random_state=2)
    report = ingest(tmp_path / "dump", tmp_path / "site")
    site = Site(tmp_path / "site")
    truth = np.load(tmp_path / "dump/truth.npz")
    assert report.missing == {}
    assert all(file.unreadable == file.duplicates == 0 for file in report.files.values())
    assert summary["questions"] == len(site.questions)
    assert summary["answers"] == len(site.answers)
    assert site.questions.id.tolist() == sorted(truth["question_id"].tolist())
    assert site.questions.created_ms.tolist() == made.asked_ms.tolist()
    known = site.questions.asker >= 0
    assert known.mean() > 0.9
    assert (site.questions.asker[known] == truth["user_id"][made.asker[known]]).all()
    assert ((site.questions.accepted >= 0) == (made.accepted >= 0)).all()
    best = site.answers.owner[site.questions.accepted[made.accepted >= 0]]
    planted = truth["user_id"][made.answerer[made.accepted[made.accepted >= 0]]]
    assert ((best == planted) | (best == -1)).all()
    bounty = np.zeros(300, dtype=np.int64)
    bounty[site.bounties.question] = site.bounties.amount
    assert bounty.tolist() == made.bounty.tolist()
    tags = json.loads((tmp_path / "dump/truth.json").read_text())["topics"]
    for question in range(300):
        own = tags[made.topic[question]]
        assert site.tags.of(question)[0] == own["name"]
        assert set(site.tags.of(question)) <= set(own["tags"])
    assert all(site.titles())
    assert all(site.question_bodies())


def test_what_is_planted_shows():
    made = simulate_community(1000, 5000, random_state=0)
    answers = np.bincount(made.answer_question, minlength=5000)
    paid = made.bounty > 0
    assert spearmanr(made.bounty[paid], made.difficulty[paid]).statistic > 0.7
    assert abs(spearmanr(answers, made.difficulty).statistic) < 0.2
    # The accepted answerer is usually, not always, the most expert of those who answered.
    skill = made.expertise[made.answerer, made.topic[made.answer_question]]
    top = np.full(5000, -np.inf)
    np.maximum.at(top, made.answer_question, skill)
    several = (answers >= 2) & (made.accepted >= 0)
    share = np.mean(skill[made.accepted[several]] == top[several])
    assert 0.65 < share < 0.95
    # Askers learn: within an asker, later questions are harder.
    order = np.argsort(made.asker, kind="stable")
    follows = made.asker[order][1:] == made.asker[order][:-1]
    first = np.flatnonzero(np.concatenate([[True], ~follows]))
    counts = np.diff(np.concatenate([first, [5000]]))
    many = counts >= 10
    early = [made.difficulty[order[f : f + 3]].mean() for f in first[many]]
    late = [
        made.difficulty[order[f + c - 3 : f + c]].mean()
        for f, c in zip(first[many], counts[many], strict=True)
    ]
    assert np.mean(np.array(late) > np.array(early)) > 0.55
    # A few people do most of the work.
    work = np.sort(np.bincount(made.answerer, minlength=1000))[::-1]
    assert work[:100].sum() > 0.4 * work.sum()
    assert (made.answered_ms > made.asked_ms[made.answer_question]).all()
    assert (made.registered_ms[made.asker] <= made.asked_ms).all()


def test_small_and_wrong_sizes(tmp_path):
    tiny = simulate_community(2, 1, n_topics=1, random_state=0)
    write_dump(tiny, tmp_path / "tiny")
    ingest(tmp_path / "tiny", tmp_path / "site")
    for wrong in (
        {"n_users": 1},
        {"n_questions": 0},
        {"n_topics": 0},
        {"years": 0},
        {"bounty_share": 2},
    ):
        with pytest.raises(InputError):
            simulate_community(**wrong)
    (tmp_path / "tiny/letter.txt").write_text("dear")
    with pytest.raises(InputError, match=r"letter\.txt"):
        write_dump(tiny, tmp_path / "tiny")
    with pytest.raises(InputError):
        write_dump(tiny, tmp_path / "no/folder")


def test_who_stands_twice_in_a_row():
    rows = np.array([[1, 2, 1, 1, 2], [3, 3, 4, 5, 4]])
    expected = [[False, False, True, True, True], [False, True, False, False, True]]
    assert _repeated(rows).tolist() == expected
