from __future__ import annotations

import pytest

from atpgraph.errors import InputError
from atpgraph_qa.advisor.policies import Policy
from atpgraph_qa.evaluation.load import load_cost
from atpgraph_qa.evaluation.protocols import Split
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.records import Records
from qa.tests.conftest import SMALL

POLICIES = {
    "none": Policy(),
    "spread": Policy(spread=2.0),
    "cap": Policy(per_week=1),
    "nobody": Policy(per_week=0),
    "newcomers": Policy(newcomer_share=0.5),
}


def test_cost_of_policies(records: Records) -> None:
    found = load_cost(records, POLICIES, top=3, split=Split(0.15), router=Router("all", plan=SMALL))
    rows = found.to_dict()["policies"]
    assert list(rows) == list(POLICIES)
    assert rows["none"]["mrr_cost"]["mean"] == 0
    assert rows["nobody"]["mrr"]["mean"] == 0
    assert rows["nobody"]["mrr_cost"]["mean"] == pytest.approx(rows["none"]["mrr"]["mean"])
    assert rows["spread"]["most_asked"] < rows["none"]["most_asked"]
    assert rows["spread"]["people"] > rows["none"]["people"]
    assert rows["spread"]["busiest_ten"] < rows["none"]["busiest_ten"]
    assert rows["newcomers"]["newcomer_share"] > rows["none"]["newcomer_share"]


def test_somebody_has_to_be_asked(records: Records) -> None:
    with pytest.raises(InputError, match="At least one person"):
        load_cost(records, {}, top=0)
