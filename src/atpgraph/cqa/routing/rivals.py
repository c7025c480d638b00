"""CQARank and ColdRoute."""

from __future__ import annotations

import contextlib
import io
from typing import Any, Self

import numpy as np
from scipy import sparse

from atpgraph.cqa.routing.history import Floats, History, Question
from atpgraph.cqa.routing.method import Int64, Method, UserScore
from atpgraph.cqa.routing.textual import TopicSpace
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import MissingDependencyError


class CqaRank(UserScore):
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
        if not seen_topics.shape[1]:
            return self
        theta = seen_topics[history.answer_question]
        owner, asker = history.answer_owner, history.asker[history.answer_question]
        known = owner >= 0
        n = history.n_users
        seen = history.n_given > 0
        seen[history.asker[history.asker >= 0]] = True
        interest = np.full((n, self.n_topics), 1e-3)
        np.add.at(interest, owner[known], theta[known])
        edge = known & (asker >= 0) & (asker != owner)
        standing = np.zeros((n, self.n_topics))
        for z in range(self.n_topics):
            flow = sparse.csr_matrix((theta[edge, z], (owner[edge], asker[edge])), shape=(n, n))
            standing[:, z] = _pagerank(flow, interest[:, z] * seen, self.damping)
        self._interest = interest / interest.sum(axis=1, keepdims=True)
        self._standing = standing
        return self

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        theta = self._topics.of_question(question)
        if theta is None:
            return np.zeros(question.history.n_users)
        middle = (self._interest + theta) / 2
        apart = 0.5 * (
            np.sum(self._interest * np.log2(self._interest / middle), axis=1)
            + np.sum(theta * np.log2(theta / middle), axis=1)
        )
        return np.asarray((1.0 - apart) * (self._standing @ theta))


def _pagerank(flow: Any, restart: Floats, damping: float, rounds: int = 30) -> Floats:
    """Power iteration; column j of `flow` says where j's weight goes."""
    restart = restart / max(float(restart.sum()), 1e-300)
    out = np.asarray(flow.sum(axis=0)).reshape(-1)
    rank = restart
    for _ in range(rounds):
        moved = flow @ np.divide(rank, out, out=np.zeros_like(rank), where=out > 0)
        rank = damping * moved + (1.0 - damping * moved.sum()) * restart
    return rank


class ColdRoute(Method):
    """A factorisation machine on one-hot question, asker, answerer and tags (library: myFM).

    The target is the answer's votes as known at the time, on a logarithmic scale. A cold question
    has no column of its own; its tags, its asker and the answerer speak for it.
    """

    name = "coldroute"
    rank = 8
    rounds, kept = 100, 20
    refit_days = 180.0  # learning anew costs minutes on a site of a hundred thousand answers

    def fit(self, history: History) -> Self:
        """Sample the machine's parameters."""
        self._learnt_ms = history.now
        self._sizes = history.n_questions, history.n_users, len(history.tag_names)
        key = ("coldroute", history.now, self.random_state)
        if key not in history.cache:
            history.cache[key] = self._sampled(history)
        self._machine = history.cache[key]
        return self

    def _sampled(self, history: History) -> Any:
        try:
            from myfm import MyFMRegressor
        except ImportError:
            raise MissingDependencyError("myfm", "rivals", "The row coldroute") from None
        known = np.flatnonzero(history.answer_owner >= 0)
        if len(known) < 2:
            return None
        votes = history.answer_votes[known]
        if not history.has_votes:  # without dated votes, being accepted is all that is known
            votes = history.is_accepted[known].astype(np.float64)
        questions = history.answer_question[known]
        rows = self._rows(
            questions,
            history.asker[questions],
            history.answer_owner[known],
            [history.tags_of(q) for q in questions.tolist()],
        )
        machine = MyFMRegressor(rank=self.rank, random_seed=self.random_state + 1)
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar cannot be turned off
            return machine.fit(
                rows, np.arcsinh(votes), n_iter=self.rounds, n_kept_samples=self.kept
            )

    def update(self, history: History) -> Self:
        """Learn anew if it is long enough ago."""
        if history.now - self._learnt_ms < self.refit_days * DAY_MS:
            return self
        return self.fit(history)

    def _rows(self, question: Int64, asker: Int64, answerer: Int64, tags: list[Int64]) -> Any:
        """One row per answer; −1 stands for no column."""
        n_questions, n_users, n_tags = self._sizes
        starts = np.cumsum([0, n_questions, n_users, n_users])
        row = np.arange(len(question))
        parts = [
            (row[codes >= 0], codes[codes >= 0] + start, np.ones(int((codes >= 0).sum())))
            for codes, start in zip((question, asker, answerer), starts, strict=False)
        ]
        counts = np.array([len(t) for t in tags], dtype=np.int64)
        if counts.sum():
            values = np.repeat(1.0 / np.sqrt(np.maximum(counts, 1)), counts)
            parts.append((np.repeat(row, counts), np.concatenate(tags) + starts[-1], values))
        r, c, v = (np.concatenate(column) for column in zip(*parts, strict=True))
        width = n_questions + 2 * n_users + n_tags
        return sparse.csr_matrix((v, (r, c)), shape=(len(question), width))

    def score(self, question: Question, candidates: Int64) -> Floats:
        """See :meth:`Method.score`."""
        if self._machine is None:
            return np.zeros(len(candidates))
        history = question.history
        n = len(candidates)
        codes = history.codes(candidates)
        asker = history.codes([question.asker])[0] if question.asker >= 0 else -1
        tags = history.tag_codes(question.tags)
        rows = self._rows(np.full(n, -1), np.full(n, asker), codes, [tags] * n)
        return np.asarray(self._machine.predict(rows), dtype=np.float64)
