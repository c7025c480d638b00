"""ATP with its parameters picked on validation edges of the training graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from atpgraph._random import generator
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding import ATP
from atpgraph.embedding.ranking import pair_scores
from atpgraph.factorization import factorize
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.method import EmbeddingMethod, check_components
from atpgraph.linkpred.metrics import auc
from atpgraph.linkpred.splits import PairTest, make_split

Setting = tuple[float, float, int]

SETTINGS: tuple[Setting, ...] = (
    (0.01, 0.01, 2),
    (0.01, 0.01, 5),
    (0.003, 1.0, 1),
    (0.001, 0.1, 3),
)


class TunedATP(EmbeddingMethod):
    """ATP-log with the best of a few settings of (zero_weight, regularization, max_iter).

    Validation edges are taken out of the training graph; each setting is fitted on what is left and
    judged by its AUC on them, with negatives of the kind of ``paper`` (of ``random`` where the
    graph has none). The best is fitted again on the whole training graph. The same vectors serve
    all protocols.

    Parameters
    ----------
    n_components : int
    settings : sequence of (zero_weight, regularization, max_iter)
    fraction : float
        Share of the training edges taken out for validation.
    random_state : int

    Attributes
    ----------
    setting_ : (zero_weight, regularization, max_iter)
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
        self.validation_auc_ = self._try(inner.train, test) if isinstance(test, PairTest) else [0.5]
        best = max(range(len(self.validation_auc_)), key=self.validation_auc_.__getitem__)
        self.setting_ = self.settings[best]
        zero_weight, regularization, max_iter = self.setting_
        atp = ATP(
            self.n_components,
            zero_weight=zero_weight,
            regularization=regularization,
            max_iter=max_iter,
            random_state=self.random_state,
        ).fit(graph)
        self.source_, self.target_ = atp.source_, atp.target_
        return self

    def _try(self, graph: DiGraph, test: PairTest) -> list[float]:
        """AUC of every setting; cycles are broken and the closure is found once for all."""
        dag = break_cycles(graph, random_state=self.random_state).dag
        rank = levels(dag)
        forests = closure_forests(dag)
        table = kernel_table("log", int(rank.max(initial=1)))
        found = []
        for zero_weight, regularization, max_iter in self.settings:
            fit = factorize(
                *forests,
                rank,
                table,
                n_components=self.n_components,
                zero_weight=zero_weight,
                regularization=regularization,
                max_iter=max_iter,
                random_state=self.random_state,
            )
            good, bad = (
                pair_scores(fit.source, fit.target, pairs.sources, pairs.targets)
                for pairs in (test.positives, test.negatives)
            )
            found.append(auc(good, bad))
        return found
