"""CQARank: topics of people, and their standing in each."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.method import Baseline
from atpgraph_qa.baselines.topics import TopicSpace
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

STANDINGS: Shelf[tuple[Float64Array, Float64Array]] = Shelf("standings in topics", keep=32)


class CqaRank(Baseline):
    """Topics of the people times their standing in every topic.

    Topics come from LDA over the questions. The standing is a PageRank for every topic on the graph
    asker → answerer, an edge weighing as much as its questions are about the topic, restarts going
    to people by how much they answer about it. A person scores
    (1 − JS(θ_u, θ_q)) · Σ_z θ_q(z) R_z(u), JS being the Jensen–Shannon divergence.
    """

    name = "cqarank"
    n_topics = 30
    damping = 0.85

    def fit(self, history: History) -> Self:
        """Topics, then :meth:`update`."""
        self._topics = TopicSpace.of(history, self.n_topics, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Interests and standings from all that is known; topics stay."""
        seen_topics = self._topics.of_questions(history)
        if seen_topics.shape[1]:
            self._interest, self._standing = history.remember(
                STANDINGS, self._topics, lambda: self._stand(history, seen_topics)
            )
            self._entropies = _entropy(self._interest)
        return self

    def _stand(
        self, history: History, seen_topics: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        theta = seen_topics[history.answers.question]
        owner, asker = history.answers.owner, history.questions.asker[history.answers.question]
        known = owner >= 0
        n = history.n_users
        seen = history.n_given > 0
        seen[history.questions.asker[history.questions.asker >= 0]] = True
        interest = np.full((n, self.n_topics), 1e-3)
        np.add.at(interest, owner[known], theta[known])
        edge = known & (asker >= 0) & (asker != owner)
        standing = np.zeros((n, self.n_topics))
        for z in range(self.n_topics):
            flow = sparse.csr_matrix((theta[edge, z], (owner[edge], asker[edge])), shape=(n, n))
            standing[:, z] = _pagerank(flow, interest[:, z] * seen, self.damping)
        return interest / interest.sum(axis=1, keepdims=True), standing

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Method.score`; people never seen before get 0."""
        codes, theta = query.history.codes(candidates), self._topics.of_question(query)
        scores, known = np.zeros(len(codes)), codes >= 0
        if theta is None:
            return scores
        interest = self._interest[codes[known]]
        # The divergence is the entropy of the mean less the mean entropy.
        middle = _entropy((interest + theta) / 2)
        apart = middle - (self._entropies[codes[known]] + _entropy(theta)) / 2
        scores[known] = (1.0 - apart) * (self._standing[codes[known]] @ theta)
        return scores


def _entropy(shares: Float64Array) -> Float64Array:
    """Of every row, in bits; no share is 0."""
    return np.asarray(-np.einsum("...i,...i", shares, np.log2(shares)))


def _pagerank(flow: Any, restart: Float64Array, damping: float, rounds: int = 30) -> Float64Array:
    """Power iteration; column j of `flow` says where j's weight goes."""
    restart = restart / max(float(restart.sum()), 1e-300)
    out = np.asarray(flow.sum(axis=0)).reshape(-1)
    rank = restart
    for _ in range(rounds):
        moved = flow @ np.divide(rank, out, out=np.zeros_like(rank), where=out > 0)
        rank = damping * moved + (1.0 - damping * moved.sum()) * restart
    return rank
