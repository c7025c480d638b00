"""The interface of everything that ranks people for a question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.timeline.candidates import Pool
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query


class Method(Protocol):
    """A way of ranking people for a question; the router is one.

    Attributes
    ----------
    name : str
        Its row in tables.
    pool : {"own", "all", "new"}
        Whom it will rank. Only methods that learn what to do make a difference.
    random_state : int
        Same state, same scores.
    """

    name: ClassVar[str]
    pool: Pool
    random_state: int

    def __init__(self, pool: Pool = "all", random_state: int = 0) -> None: ...

    def fit(self, history: History) -> Self:
        """Learn from what is known."""
        ...

    def update(self, history: History) -> Self:
        """Take in what has become known since."""
        ...

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """One number per candidate (user id), larger for who should be asked first."""
        ...


class Baseline(ABC):
    """A method that has nothing to learn, unless a subclass says otherwise."""

    name: ClassVar[str]

    def __init__(self, pool: Pool = "all", random_state: int = 0) -> None:
        self.pool = pool
        self.random_state = random_state

    def fit(self, history: History) -> Self:
        """See :meth:`Method.fit`."""
        return self

    def update(self, history: History) -> Self:
        """See :meth:`Method.update`; learns from scratch by default."""
        return self.fit(history)

    @abstractmethod
    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Method.score`."""


class UserScore(Baseline):
    """A method that scores every user of the question's history at once."""

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Method.score`; people never seen before get 0."""
        codes = query.history.codes(candidates)
        values = self.all_scores(query)
        if not len(values):
            return np.zeros(len(codes))
        return np.where(codes >= 0, values[np.maximum(codes, 0)], 0.0)

    @abstractmethod
    def all_scores(self, query: Query) -> Float64Array:
        """One number per user code of the query's history."""
