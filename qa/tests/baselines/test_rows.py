from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from atpgraph_qa import Site
from atpgraph_qa.baselines import METHODS
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records

COUNTS = ("answers", "accepted-answers", "mean-votes", "recent-activity", "bm25", "tag-experts")


@pytest.mark.parametrize("name", COUNTS)
def test_counts_by_hand(records: Records, name: str) -> None:
    query = Query.again(records, 450)
    history = query.history
    votes = history.answer_votes
    asked = set(query.question.tags)
    people = history.users[::13]
    found = METHODS[name]().fit(history).score(query, people)
    for person, score in zip(people.tolist(), found.tolist(), strict=True):
        mine = history.answers_by(int(history.codes([person])[0])).tolist()
        question = [int(history.answers.question[a]) for a in mine]
        away = [(query.asked_ms - history.answers.given_ms[a]) / 86_400_000 for a in mine]
        rarity = {
            tag: np.log1p(
                history.n_questions / (1 + len(history.tagged(history.records.tag_index[tag])))
            )
            for tag in asked
        }
        expected = {
            "answers": len(mine),
            "accepted-answers": sum(
                history.best_answer[q] == a for q, a in zip(question, mine, strict=True)
            ),
            "mean-votes": (sum(votes[a] for a in mine) + 3 * votes.mean()) / (len(mine) + 3),
            "recent-activity": sum(0.5 ** (d / 30) for d in away),
            "bm25": sum(float(query.match[q]) for q in question),
            "tag-experts": sum(
                sum(rarity[tag] for tag in asked & set(records.tags.of(q)))
                * (1.0 if history.is_accepted[a] else 0.25)
                for q, a in zip(question, mine, strict=True)
            ),
        }[name]
        assert score == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_chance_is_the_same_for_the_same_question(records: Records) -> None:
    first, second = (
        METHODS["random"]().score(Query.again(records, q), records.users) for q in (7, 8)
    )
    again = METHODS["random"]().score(Query.again(records, 7), records.users)
    assert again.tolist() == first.tolist() != second.tolist()


def test_doc2vec_is_the_same_in_every_process(site: Site) -> None:
    pytest.importorskip("gensim", reason="doc2vec needs gensim, which is not installed")
    program = (
        "from atpgraph_qa import Site\n"
        "from atpgraph_qa.baselines.text import Doc2Vec\n"
        "from atpgraph_qa.timeline.history import History\n"
        "from atpgraph_qa.timeline.query import Query\n"
        "from atpgraph_qa.timeline.records import Records\n"
        "import sys\n"
        "records = Records.of(Site(sys.argv[1]))\n"
        "method = Doc2Vec().fit(History(records, int(records.questions.asked_ms[100])))\n"
        "query = Query.again(records, 110)\n"
        "method.update(query.history)\n"
        "print(method.score(query, records.users).tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(site.path)]
    runs = [
        subprocess.run(
            command, env={"PYTHONHASHSEED": seed, **_environment()}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 100


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}


def test_doc2vec_infers_as_gensim_does(records: Records) -> None:
    pytest.importorskip("gensim", reason="doc2vec needs gensim, which is not installed")
    from unittest import mock
    from zlib import crc32

    from gensim.models import doc2vec

    from atpgraph_qa.baselines.text import documents

    history = History(records, int(records.questions.asked_ms[100]))
    encode, _ = documents(history, records.corpus.rows[: history.n_questions], 0)
    counts = sparse.csr_matrix(([1, 2, 1, 1], ([0] * 4, [0, 3, 8, 11])))
    words = [str(code) for code in (0, 3, 3, 8, 11)]
    model = encode.args[0]  # type: ignore[attr-defined]
    model.random.seed(1)
    with mock.patch.object(
        doc2vec,
        "pseudorandom_weak_vector",
        lambda size, seed_string: _weak(doc2vec, size, seed_string, crc32),
    ):
        expected = model.infer_vector(words, epochs=20)
    (found,) = encode(counts)
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), rtol=1e-5)


def _weak(doc2vec, size, seed_string, crc32):  # type: ignore[no-untyped-def]
    once = np.random.Generator(np.random.SFC64(crc32(seed_string.encode()) & 0xFFFFFFFF))
    return (once.random(size).astype(np.float32) - 0.5) / size
