"""ColdRoute: a factorisation machine on who asked, who answered, and tags."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.method import Baseline
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import codes_of


class ColdRoute(Baseline):
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
        self._columns = Columns.of(history)
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
        rows = self._columns.rows(
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

    def update(self, history: History) -> Self:
        """Learn again once the last time is long enough ago."""
        if history.now - self._learnt_ms < self.refit_days * DAY_MS:
            return self
        return self.fit(history)

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Method.score`."""
        if self._machine is None:
            return np.zeros(len(candidates))
        n = len(candidates)
        rows = self._columns.rows(
            np.full(n, NOBODY),
            np.full(n, query.asker),
            query.history.codes(candidates),
            [query.tag_codes] * n,
        )
        return np.asarray(self._machine.predict(rows), dtype=np.float64)


MACHINES: Shelf[Any] = Shelf("factorisation machines", keep=2)


@dataclass(frozen=True, eq=False)
class Columns:
    """What the machine has columns for: nobody and nothing of the future.

    Attributes
    ----------
    n_questions : int
    users, tags : int64 arrays
        Codes, ascending.
    """

    n_questions: int
    users: Int64Array
    tags: Int64Array

    @classmethod
    def of(cls, history: History) -> Self:
        """The questions, users and tags that were seen so far."""
        users = np.unique(np.concatenate([history.questions.asker, history.answers.owner]))
        return cls(history.n_questions, users[users >= 0], np.unique(history.tags.tags))

    def rows(
        self, question: Int64Array, asker: Int64Array, answerer: Int64Array, tags: list[Int64Array]
    ) -> Any:
        """One row per answer; what has no column is left out."""
        sizes = (self.n_questions, len(self.users), len(self.users), len(self.tags))
        starts = np.cumsum([0, *sizes])
        row = np.arange(len(question))
        people = (codes_of(self.users, asker), codes_of(self.users, answerer))
        parts = [
            (row[codes >= 0], codes[codes >= 0] + start, np.ones(int((codes >= 0).sum())))
            for codes, start in zip((question, *people), starts, strict=False)
        ]
        each = [codes_of(self.tags, codes) for codes in tags]
        each = [codes[codes >= 0] for codes in each]
        counts = np.array([len(codes) for codes in each], dtype=np.int64)
        if counts.sum():
            values = np.repeat(1.0 / np.sqrt(np.maximum(counts, 1)), counts)
            parts.append((np.repeat(row, counts), np.concatenate(each) + starts[3], values))
        r, c, v = (np.concatenate(column) for column in zip(*parts, strict=True))
        return sparse.csr_matrix((v, (r, c)), shape=(len(question), int(starts[-1])))
