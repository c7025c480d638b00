"""The interface of everything that ranks people for a question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.routing.history import History, Question
from atpgraph.cqa.routing.protocols import Pool

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Method(ABC):
    """A way of ranking people for a question.

    Parameters
    ----------
    pool : {"own", "all"}
        Whom it will rank: people who answered the question, or all active users. Only methods that
        learn what to do make a difference.
    random_state : int
        Same state, same scores.
    """

    name: ClassVar[str]

    def __init__(self, pool: Pool = "all", random_state: int = 0) -> None:
        self.pool = pool
        self.random_state = random_state

    def fit(self, history: History) -> Self:
        """Learn from what is known; nothing to learn by default."""
        return self

    def update(self, history: History) -> Self:
        """Take in what has become known since; learns anew by default."""
        return self.fit(history)

    @abstractmethod
    def score(self, question: Question, candidates: Int64) -> Floats:
        """One number per candidate (user id), larger for who should be asked first."""


class UserScore(Method):
    """A method that scores every user of the question's history at once."""

    def score(self, question: Question, candidates: Int64) -> Floats:
        """See :meth:`Method.score`; people never seen before get 0."""
        codes = question.history.codes(candidates)
        values = self.all_scores(question)
        if not len(values):
            return np.zeros(len(codes))
        return np.where(codes >= 0, values[np.maximum(codes, 0)], 0.0)

    @abstractmethod
    def all_scores(self, question: Question) -> Floats:
        """One number per user code of the question's history."""
