"""ATP tuned on validation edges."""

from __future__ import annotations

import numpy as np

from atpgraph import ATP
from atpgraph.graph import DiGraph
from atpgraph.graph.generators import noisy_hierarchy
from atpgraph.linkpred.tuned import SETTINGS, TunedATP


def test_tuned_takes_the_best_setting_and_sees_its_graph_only(graph: DiGraph) -> None:
    tuned = TunedATP(4, random_state=2).fit(graph)
    assert tuned.setting_ == SETTINGS[int(np.argmax(tuned.validation_auc_))]
    wanted = ATP(4, purpose="links", random_state=2, **tuned.setting_).fit(graph)
    assert np.array_equal(tuned.source_, wanted.source_)


def test_tuned_prefers_what_is_better() -> None:
    chain = noisy_hierarchy(150, 600, 0, random_state=0).graph
    hopeless = {"regularization": 1e9}  # the penalty leaves nothing of the vectors
    tuned = TunedATP(4, settings=[hopeless, {}]).fit(chain)
    assert tuned.setting_ == {}
