"""The best that can be done on a simulated community: a ranking by what was planted."""

from __future__ import annotations

import os

import numpy as np
from scipy.special import ndtr

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.baselines.method import UserScore
from atpgraph_qa.data.site import find_ids
from atpgraph_qa.simulation import community as rules
from atpgraph_qa.simulation.dump import read_truth
from atpgraph_qa.timeline.query import Pool, Query

_ROOMS = np.arange(1, 7)


class Oracle(UserScore):
    """Knows expertise, interests and helpfulness of everybody, topic and difficulty of questions.

    Among people who answered, the most expert one is the likeliest to be accepted. Among all, a
    person's chance is that of seeing the question, of answering it before the room is full, and of
    being the best of those who answer; competitors are taken at their mean.

    Parameters
    ----------
    truth : path
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
        """See :meth:`UserScore.all_scores`."""
        users = query.history.users
        row = self._row.get(query.question.id, -1)
        if row < 0:
            return np.full(len(users), -1.0)
        planted = self._chance(int(self._topic[row]), float(self._difficulty[row]))
        return np.append(planted, -1.0)[find_ids(self._user, users)]

    def _chance(self, topic: int, difficulty: float) -> Float64Array:
        """For every planted user, a number that grows with the chance to be accepted."""
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
