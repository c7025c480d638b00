"""The embedded graph is shared, and made of what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from atpgraph_qa.baselines.structural import AtpSettings, Structure
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records


def test_one_embedding_for_all_who_ask(records: Records) -> None:
    alone = replace(records)
    history = History(alone, int(records.questions.asked_ms[300]))
    first = Structure.of(history, AtpSettings())
    assert Structure.of(History(alone, history.now), AtpSettings()) is first
    assert Structure.of(history, AtpSettings(n_components=4)) is not first
    assert first.atp is not None
    there = first.user_node >= 0
    np.testing.assert_allclose(first.user_target[there], first.atp.target_[first.user_node[there]])
    assert not first.user_target[~there].any()
    assert (history.best_answer[first.resolved] >= 0).all()


def test_before_anything_happened(records: Records) -> None:
    nothing = History(records, 0)
    structure = Structure.of(nothing, AtpSettings())
    assert structure.atp is None
    assert structure.folded(Query(nothing, 1000)).tolist() == [0.0]
    assert structure.source(Query(nothing, 1000), np.zeros(0, dtype=np.int64)).tolist() == [0.0]
