"""The interface of the baselines, which is that of the router as well."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Pool, Query


class Baseline(ABC):
    """A way of ranking people that has nothing to learn, unless a subclass says otherwise.

    Only methods that learn what to do care for the `pool`: whom they will rank.
    """

    name: ClassVar[str]  # its row in tables

    def __init__(self, pool: Pool = "all", random_state: int = 0) -> None:
        self.pool = pool
        self.random_state = random_state

    def fit(self, history: History) -> Self:
        """Learn from what is known."""
        return self

    def update(self, history: History) -> Self:
        """Take in what has become known since; by default by learning again."""
        return self.fit(history)

    @abstractmethod
    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """One number per candidate (user id), larger for who should be asked first."""


class UserScore(Baseline):
    """A method that scores every user of the question's history at once."""

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Baseline.score`; people never seen before get 0."""
        return np.append(self.all_scores(query), 0.0)[query.history.codes(candidates)]

    @abstractmethod
    def all_scores(self, query: Query) -> Float64Array:
        """One number per user code of the query's history."""


Method = Baseline | Router
