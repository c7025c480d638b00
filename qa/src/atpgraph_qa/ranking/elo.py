"""Elo ratings of people, from votes: two answers to a question are a match.

The one with more votes wins, thirty days after the question was asked, with the votes and answers
known by then. Wins against people who usually win count more, which rates and counts do not see.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.history import History

SETTLED_MS = 30 * DAY_MS
STEP, SCALE = 24.0, 400.0  # as in chess
_UNIT = 100.0


def elo_ratings(history: History) -> Float64Array:
    """Rating of every user, in hundreds, 0 for whoever never met anybody."""
    answers, until = history.answers, history.questions.asked_ms + SETTLED_MS
    settled = int(np.searchsorted(until, history.now))
    votes = history.records.votes.take(slice(history.n_votes))
    votes = votes.take(votes.answer < history.n_answers)
    known = votes.known_ms <= until[answers.question[votes.answer]]
    score = np.bincount(votes.answer[known], votes.value[known], minlength=history.n_answers)
    plays = (answers.owner >= 0) & (answers.given_ms < until[answers.question])
    plays &= answers.question < settled
    order = np.flatnonzero(plays)
    order = order[np.argsort(answers.question[order], kind="stable")]
    starts = np.searchsorted(answers.question[order], np.arange(settled + 1))
    rating = np.zeros(history.n_users)
    play(starts, answers.owner[order], score[order].astype(np.float64), rating)
    return rating / _UNIT


@kernel
def play(starts: Int64Array, owner: Int64Array, score: Float64Array, rating: Float64Array) -> None:
    """Let the answers of every question meet, question by question; changes `rating`.

    Answers of question q are ``starts[q] : starts[q + 1]``. Everybody plays everybody with the
    ratings from before the question.
    """
    gain = np.zeros(max(len(owner), 1))
    for question in range(len(starts) - 1):
        first, last = starts[question], starts[question + 1]
        for one in range(first, last):
            total = 0.0
            for other in range(first, last):
                if other == one:
                    continue
                away = rating[owner[one]] - rating[owner[other]]
                won = 0.5 * (1.0 + np.sign(score[one] - score[other]))
                total += won - 1.0 / (1.0 + 10.0 ** (-away / SCALE))
            gain[one] = total * STEP / max(last - first - 1, 1)
        for one in range(first, last):
            rating[owner[one]] += gain[one]
