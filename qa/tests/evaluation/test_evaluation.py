from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import rank_of
from atpgraph_qa.baselines import METHODS
from atpgraph_qa.baselines.rivals import Oracle
from atpgraph_qa.evaluation.evaluation import evaluate_routing, run
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.reports import render
from atpgraph_qa.timeline.records import Records
from qa.tests.conftest import SMALL


def test_the_shape_that_scripts_read(records: Records) -> None:
    report = evaluate_routing(
        records, protocols=["time-all"], methods=["accepted-answers", "bm25", "random"]
    )
    result = report.to_dict()["time-all"]
    assert {"questions", "candidates_mean", "methods"} <= set(result)
    row = result["methods"]["bm25"]
    assert set(row["mrr"]) == {"mean", "low", "high"}
    assert all(isinstance(row[name], float) for name in ("p@1", "p@3", "accuracy"))
    assert row["mrr"]["mean"] > result["methods"]["random"]["mrr"]["mean"]
    assert "<svg" in render(report)


def test_ranks_are_those_of_single_questions(records: Records) -> None:
    protocol = make_protocol(records, "time-own")
    method = METHODS["bm25"]("own")
    found = run(protocol, [method])
    cases = [case for _, part in protocol.periods() for case in part]
    ranks = [rank_of(method.score(case.query, case.candidates), case.place) for case in cases]
    assert found.ranks["bm25"].rank.tolist() == ranks
    assert found.candidates.tolist() == [len(case.candidates) for case in cases]
    assert found.reachable == len(cases)
    assert found.load["bm25"].sum() == len(cases)
    first = cases[0].query.history
    assert found.activity[0] == np.count_nonzero(
        first.answers.owner == first.codes([cases[0].truth])[0]
    )


def test_how_often_somebody_among_the_first_answered(records: Records) -> None:
    protocol = make_protocol(records, "time-all")
    method = METHODS["bm25"]("all")
    found = run(protocol, [method])
    ranks = []
    for case in (case for _, part in protocol.periods() for case in part):
        scores = method.score(case.query, case.candidates)
        right = np.isin(case.candidates, case.answerers)
        best = scores[right].max(initial=-np.inf)
        ranks.append(
            (1 + np.sum(scores > best), np.sum(scores >= best)) if right.any() else (np.inf,) * 2
        )
    low, high = np.array(ranks).T
    answered = found.ranks["bm25"].answered
    assert ((low <= answered) & (answered <= high)).all()
    assert (low == high).mean() > 0.3
    row = found.to_dict()["methods"]["bm25"]
    assert row["hits@10"] < row["answered@10"] < 1
    own = run(make_protocol(records, "time-own"), [METHODS["answers"]("own")])  # all have answered
    assert own.to_dict()["methods"]["answers"]["answered@1"] == 1


def test_nobody_beats_the_oracle_by_much(dump: Path, records: Records) -> None:
    for name in ("time-own", "time-all"):
        protocol = make_protocol(records, name)
        rows = [METHODS[m](protocol.pool) for m in ("accepted-answers", "bm25", "random")]
        rows += [Router(protocol.pool, plan=SMALL), Oracle(dump / "truth.npz", protocol.pool)]
        found = run(protocol, rows)
        mrr = {m: ranks.reciprocal.mean() for m, ranks in found.ranks.items()}
        assert mrr["oracle"] > mrr["accepted-answers"] > mrr["random"]
        assert mrr["oracle"] > mrr["router"] - 0.03
        assert len(found.stated) == len(found.candidates)


def test_evaluation_adds_the_oracle(dump: Path, records: Records, tmp_path: Path) -> None:
    report = evaluate_routing(
        records, protocols=["time-own"], methods=["answers"], truth=dump / "truth.npz"
    )
    assert set(report.to_dict()["time-own"]["methods"]) == {"answers", "oracle"}
    (tmp_path / "truth.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"not the truth\.npz of a simulated"):
        Oracle(tmp_path / "truth.npz")


def test_mistyped_methods(records: Records) -> None:
    with pytest.raises(InputError, match="did you mean 'answers'"):
        evaluate_routing(records, methods=["answrs"])
    with pytest.raises(InputError, match="at least one method"):
        evaluate_routing(records, methods=[])
