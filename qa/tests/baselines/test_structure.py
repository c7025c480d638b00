"""The embedded graph is made of what is known."""

from __future__ import annotations

import numpy as np

from atpgraph_qa.baselines.structural import AtpSettings, Structure
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records


def test_vectors_are_those_of_the_people(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[300]))
    first = Structure(history, AtpSettings())
    assert first.atp is not None
    there = first.user_node >= 0
    np.testing.assert_allclose(first.user_target[there], first.atp.target_[first.user_node[there]])
    assert not first.user_target[~there].any()
    assert (history.best_answer[first.resolved] >= 0).all()


def test_before_anything_happened(records: Records) -> None:
    nothing = History(records, 0)
    structure = Structure(nothing, AtpSettings())
    assert structure.atp is None
    assert structure.folded(Query(nothing, 1000)).tolist() == [0.0]
    assert structure.source(Query(nothing, 1000), np.zeros(0, dtype=np.int64)).tolist() == [0.0]
