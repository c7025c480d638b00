"""ColdRoute, a published rival, and the oracle of simulated communities."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.simple import Baseline, UserScore
from atpgraph_qa.data.site import DAY_MS, NOBODY, find_ids
from atpgraph_qa.simulation import community as rules
from atpgraph_qa.simulation.dump import read_truth
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Pool, Query

_ROOMS = np.arange(1, 7)


class ColdRoute(Baseline):
    """A factorization machine on one-hot question, asker, answerer and tags (library: myFM).

    The target is the answer's votes as known at the time, on a logarithmic scale. A cold question
    has no column; its tags, its asker and the answerer represent it.
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
        self._machine = self._sampled(history)
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
        if not len(
            history.records.votes
        ):  # without dated votes, being accepted is all that is known
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
        """Return one row per answer; unknown values are left out, and tags share a unit length."""
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
        """Train again if the last training is long enough ago."""
        if history.now - self._learned_ms < self.refit_days * DAY_MS:
            return self
        return self.fit(history)

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        n = len(candidates)
        if self._machine is None or not n:
            return np.zeros(n)
        people = query.history.codes(candidates)
        rows = self._rows(
            np.full(n, NOBODY), np.full(n, query.asker), people, [query.tag_codes] * n
        )
        return np.asarray(self._machine.predict(rows), dtype=np.float64)


class Oracle(UserScore):
    """Ranks by the planted expertise, interests, helpfulness, topics and difficulties.

    Among people who answered, the most expert person is the likeliest to be accepted. Among all, a
    person has to see the question, answer it before enough others have, and give the best of the
    answers; the chance of this is computed with the mean of the competitors. `truth` is the
    ``truth.npz`` of :func:`~atpgraph_qa.write_dump`.
    """

    name = "oracle"

    def __init__(
        self, truth: str | os.PathLike[str], pool: Pool = "all", random_state: int = 0
    ) -> None:
        super().__init__(pool, random_state)
        planted = read_truth(truth)
        self._user = planted["user_id"]
        self._expertise: Float64Array = planted["expertise"]
        self._attention: Float64Array = planted["interest"] * planted["helpfulness"][:, None]
        self._row = {q: place for place, q in enumerate(planted["question_id"].tolist())}
        self._topic, self._difficulty = planted["topic"], planted["difficulty"]

    def all_scores(self, query: Query) -> Float64Array:
        users = query.history.users
        row = self._row.get(query.question.id, -1)
        if row < 0:
            return np.full(len(users), -1.0)
        planted = self._chance(int(self._topic[row]), float(self._difficulty[row]))
        return np.append(planted, -1.0)[find_ids(self._user, users)]

    def _chance(self, topic: int, difficulty: float) -> Float64Array:
        """Return, for every simulated user, a number that grows with the chance of acceptance."""
        skill = self._expertise[:, topic]
        if self.pool == "own":
            return skill
        lead = skill - difficulty
        seen = rules.AUDIENCE * self._attention[:, topic] / self._attention[:, topic].sum()
        pull = seen * np.exp(rules.EAGERNESS * np.minimum(lead, rules.REACH))
        share = pull / pull.sum()
        noise = float(np.hypot(rules.QUALITY_NOISE, rules.LOOKS_NOISE))
        order = np.argsort(lead)
        grid = np.quantile(lead, np.linspace(0.0, 1.0, 60))
        beaten = ndtr((grid[:, None] - lead[None, order]) / (np.sqrt(2.0) * noise)) @ share[order]
        beats = np.interp(lead, grid, beaten)
        good = ndtr((lead - rules.LEAST_LOOKS) / noise)
        mean = rules.mean_room(difficulty)
        weight = np.exp(-mean) * np.cumprod(mean / _ROOMS)
        chance = np.zeros(len(lead))
        for room, odds in zip(_ROOMS.tolist(), weight.tolist(), strict=True):
            chance += odds * -np.expm1(-room * share) * beats ** (room - 1)
        return np.asarray(chance * good)
