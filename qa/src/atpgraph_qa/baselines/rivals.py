"""Published rivals that are more than one formula: CQARank and ColdRoute."""

from __future__ import annotations

import contextlib
import io
from typing import Any, Self

import numpy as np
from scipy import sparse

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.method import Baseline
from atpgraph_qa.baselines.text import TopicSpace
from atpgraph_qa.data.site import DAY_MS, NOBODY, find_ids
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

STANDINGS: Shelf[tuple[Float64Array, Float64Array]] = Shelf("standings in topics", keep=32)
_DAMPING, _ROUNDS = 0.85, 30  # of PageRank
MACHINES: Shelf[Any] = Shelf("factorization machines", keep=2)


class CqaRank(Baseline):
    """Topics of the people times their standing in every topic.

    Topics come from LDA over the questions. The standing is a PageRank for every topic on the graph
    asker → answerer, an edge weighing as much as its questions are about the topic, restarts going
    to people by how much they answer about it. A person scores
    (1 − JS(θ_u, θ_q)) · Σ_z θ_q(z) R_z(u), JS being the Jensen–Shannon divergence.
    """

    name = "cqarank"

    def fit(self, history: History) -> Self:
        """Topics, then :meth:`update`."""
        self._topics = TopicSpace.of(history, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Interests and standings from all that is known; topics stay."""
        seen_topics = self._topics.of_questions(history)
        if seen_topics.shape[1]:
            self._interest, self._standing = history.remember(
                STANDINGS, self._topics, lambda: _stand(history, seen_topics)
            )
            self._entropies = _entropy(self._interest)
        return self

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Baseline.score`; people never seen before get 0."""
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


def _stand(history: History, topics: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the interest and the standing of every user in every topic."""
    theta = topics[history.answers.question]
    owner, asker = history.answers.owner, history.questions.asker[history.answers.question]
    known, n = owner >= 0, history.n_users
    seen = history.n_given > 0
    seen[history.questions.asker[history.questions.asker >= 0]] = True
    interest = np.full((n, topics.shape[1]), 1e-3)
    np.add.at(interest, owner[known], theta[known])
    edge = known & (asker >= 0) & (asker != owner)
    standing = np.zeros_like(interest)
    for z in range(topics.shape[1]):
        flow = sparse.csr_matrix((theta[edge, z], (owner[edge], asker[edge])), shape=(n, n))
        standing[:, z] = _pagerank(flow, interest[:, z] * seen)
    return interest / interest.sum(axis=1, keepdims=True), standing


def _entropy(shares: Float64Array) -> Float64Array:
    """Of every row, in bits; no share is 0."""
    return np.asarray(-np.einsum("...i,...i", shares, np.log2(shares)))


def _pagerank(flow: Any, restart: Float64Array) -> Float64Array:
    """Power iteration; column j of `flow` says where j's weight goes."""
    restart = restart / max(float(restart.sum()), 1e-300)
    out = np.asarray(flow.sum(axis=0)).reshape(-1)
    rank = restart
    for _ in range(_ROUNDS):
        moved = flow @ np.divide(rank, out, out=np.zeros_like(rank), where=out > 0)
        rank = _DAMPING * moved + (1.0 - _DAMPING * moved.sum()) * restart
    return rank


class ColdRoute(Baseline):
    """A factorization machine on one-hot question, asker, answerer and tags (library: myFM).

    The target is the answer's votes as known at the time, on a logarithmic scale. A cold question
    has no column of its own; its tags, its asker and the answerer speak for it.
    """

    name = "coldroute"
    rank = 8
    rounds, kept = 100, 20
    refit_days = 180.0  # learning anew costs minutes on a site of a hundred thousand answers

    def fit(self, history: History) -> Self:
        """Sample the machine's parameters."""
        self._learned_ms = history.now
        # Nobody and nothing of the future has a column.
        users = np.unique(np.concatenate([history.questions.asker, history.answers.owner]))
        self._columns = (
            np.arange(history.n_questions),
            users[users >= 0],
            users[users >= 0],
            np.unique(history.tags.tags),
        )
        self._machine = history.remember(
            MACHINES, self.random_state, lambda: self._sampled(history)
        )
        return self

    def _sampled(self, history: History) -> Any:
        try:
            from myfm import MyFMRegressor
        except ImportError:
            raise MissingDependencyError(
                "myfm", "rivals", "The row coldroute", "atpgraph-qa"
            ) from None
        known = np.flatnonzero(history.answers.owner >= 0)
        if len(known) < 2:
            return None
        votes = history.answer_votes[known]
        if not history.has_votes:  # without dated votes, being accepted is all that is known
            votes = history.is_accepted[known].astype(np.float64)
        questions, tags = history.answers.question[known], history.tags
        rows = self._rows(
            questions,
            history.questions.asker[questions],
            history.answers.owner[known],
            [tags.tags[tags.indptr[q] : tags.indptr[q + 1]] for q in questions.tolist()],
        )
        machine = MyFMRegressor(rank=self.rank, random_seed=self.random_state + 1)
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar cannot be turned off
            return machine.fit(
                rows, np.arcsinh(votes), n_iter=self.rounds, n_kept_samples=self.kept
            )

    def _rows(
        self, question: Int64Array, asker: Int64Array, answerer: Int64Array, tags: list[Int64Array]
    ) -> Any:
        """Return one row per answer; what has no column is left out, tags share a unit length."""
        starts = np.cumsum([0, *(len(known) for known in self._columns)])
        each, counts = np.arange(len(question)), [len(codes) for codes in tags]
        parts = []
        for row, codes, known, start in (
            (each, question, self._columns[0], starts[0]),
            (each, asker, self._columns[1], starts[1]),
            (each, answerer, self._columns[2], starts[2]),
            (np.repeat(each, counts), np.concatenate(tags), self._columns[3], starts[3]),
        ):
            place = find_ids(known, codes)
            parts.append((row[place >= 0], place[place >= 0] + start))
        rows, columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        values = np.ones(len(rows))
        tagged = parts[-1][0]
        n_tags = np.bincount(tagged, minlength=len(question))
        values[len(values) - len(tagged) :] = 1.0 / np.sqrt(n_tags[tagged])
        return sparse.csr_matrix((values, (rows, columns)), shape=(len(question), int(starts[-1])))

    def update(self, history: History) -> Self:
        """Learn again once the last time is long enough ago."""
        if history.now - self._learned_ms < self.refit_days * DAY_MS:
            return self
        return self.fit(history)

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Baseline.score`."""
        n = len(candidates)
        if self._machine is None or not n:
            return np.zeros(n)
        people = query.history.codes(candidates)
        rows = self._rows(
            np.full(n, NOBODY), np.full(n, query.asker), people, [query.tag_codes] * n
        )
        return np.asarray(self._machine.predict(rows), dtype=np.float64)
