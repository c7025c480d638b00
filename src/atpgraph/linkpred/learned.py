"""LinkPredictor under the interface of the laboratory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray
from atpgraph.util.registry import Registry
from atpgraph.util.threads import Workers

# What each protocol asks.
ASKED = Registry(
    "protocol",
    {
        "paper": "order",
        "random": "link",
        "reversed": "direction",
        "ranking": "target",
        "dirlinkbench": "link",
    },
)


@dataclass(frozen=True, eq=False)
class Answers:
    """The scores of a fitted predictor for one of its questions."""

    name: str
    model: LinkPredictor
    question: str
    seen: dict[bytes, Float64Array]  # scores for all questions of the pairs asked about last

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Log-odds of the pairs."""
        key = u.tobytes() + v.tobytes()
        if key not in self.seen:
            while len(self.seen) > 1:  # the positives, which several protocols share, and one more
                del self.seen[next(reversed(self.seen))]
            self.seen[key] = self.model.score_all(u, v)
        return np.asarray(self.seen[key][:, list(self.model.heads_).index(self.question)])

    def score_from(self, u: IntArray) -> FloatArray:
        """Log-odds against all nodes."""
        evidence, head = self.model.evidence_, self.model.heads_[self.question]
        scores = np.full((len(u), self.model.graph_.n_nodes), head.intercept)

        def fill(row: int) -> None:
            evidence.add_rows(int(u[row]), head.weights, scores[row])

        with Workers(self.model.n_jobs) as workers:
            for _ in workers.map(fill, range(len(u))):
                pass
        return scores


class LearnedLinks:
    """:class:`~atpgraph.linkpred.predictor.LinkPredictor`, judged by the question a protocol asks.

    Parameters
    ----------
    n_components : int
        Dimension of the table; ATP's vectors have half of it, the singular vectors all of it.
    evidence : "all" or names
    random_state : int

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> row = LearnedLinks(8).fit(citation_dag(200, 1000, random_state=0))
    >>> row.under("reversed").score(np.array([0]), np.array([1])).shape
    (1,)
    """

    note = (
        "one linear model for each protocol's question (is it a link, which way, in which order, "
        "which target), learned on edges hidden from the training graph"
    )

    def __init__(
        self,
        n_components: int = 64,
        *,
        evidence: str | Sequence[str] = "all",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.evidence = evidence
        self.random_state = random_state
        self.name = "LinkPredictor"

    def fit(self, graph: DiGraph) -> Self:
        """Learn from the training graph."""
        self.model_ = LinkPredictor(
            self.evidence,
            n_components=max(self.n_components // 2, 1),
            random_state=self.random_state,
        ).fit(graph)
        self._seen: dict[bytes, Float64Array] = {}
        return self

    def under(self, protocol: str) -> Answers:
        """The scores to use under a protocol."""
        return Answers(self.name, self.model_, ASKED[protocol], self._seen)

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Whether it is a link."""
        return self.under("random").score(u, v)

    def score_from(self, u: IntArray) -> FloatArray:
        """Whether it is a link, against all nodes."""
        return self.under("random").score_from(u)
