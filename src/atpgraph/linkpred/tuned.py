"""ATP with its parameters picked on validation edges of the training graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from atpgraph._random import generator
from atpgraph.embedding import ATP
from atpgraph.embedding.ranking import pair_scores
from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.method import EmbeddingMethod, check_components
from atpgraph.linkpred.protocols import PairTest
from atpgraph.linkpred.splits import make_split

Setting = Mapping[str, Any]

SETTINGS: tuple[Setting, ...] = (
    {},  # what ATP takes for links
    {"zero_weight": 0.01, "regularization": 0.01, "max_iter": 2},
    {"zero_weight": 0.01, "regularization": 0.01, "max_iter": 5},
    {"zero_weight": 0.003, "regularization": 1.0, "max_iter": 1},
)


class TunedATP(EmbeddingMethod):
    """ATP-log with the best of a few settings of its parameters.

    Validation edges are taken out of the training graph; each setting is fitted on what is left and
    judged by its AUC on them, with negatives of the kind of ``paper`` (of ``random`` where the
    graph has none). The best is fitted again on the whole training graph. The same vectors serve
    all protocols.

    Parameters
    ----------
    n_components : int
    settings : sequence of mappings
        Keyword arguments of :class:`atpgraph.ATP`.
    fraction : float
        Share of the training edges taken out for validation.
    random_state : int

    Attributes
    ----------
    setting_ : mapping
        The best.
    validation_auc_ : list of float
        In the order of `settings`.

    Examples
    --------
    >>> from atpgraph.graph.generators import noisy_hierarchy
    >>> tuned = TunedATP(8).fit(noisy_hierarchy(200, 800, 20, random_state=0).graph)
    >>> tuned.setting_ in SETTINGS, len(tuned.validation_auc_)
    (True, 4)
    """

    name = "ATP-log, tuned"

    def __init__(
        self,
        n_components: int = 64,
        *,
        settings: Sequence[Setting] = SETTINGS,
        fraction: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.n_components = check_components(n_components)
        self.settings = tuple(settings)
        self.fraction = fraction
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Try the settings on validation edges, then fit the best on the whole graph."""
        (rng,) = generator(self.random_state).spawn(1)
        inner = make_split(
            graph, fraction=self.fraction, protocols=["paper", "random"], random_state=rng
        )
        test = inner.tests.get("paper", inner.tests.get("random"))
        if not isinstance(test, PairTest):
            raise InputError("The training graph is complete: there is nothing to validate on.")
        self.validation_auc_ = []
        for setting in self.settings:
            tried = self._make(setting).fit(inner.train)
            good, bad = (
                pair_scores(tried.source_, tried.target_, pairs.sources, pairs.targets)
                for pairs in (test.positives, test.negatives)
            )
            self.validation_auc_.append(auc(good, bad))
        self.setting_ = self.settings[int(np.argmax(self.validation_auc_))]
        atp = self._make(self.setting_).fit(graph)
        self.source_, self.target_ = atp.source_, atp.target_
        return self

    def _make(self, setting: Setting) -> ATP:
        seed = self.random_state
        return ATP(self.n_components, purpose="links", random_state=seed, **setting)
