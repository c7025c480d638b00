"""Counts and rates of people, which do not depend on the question.

Counts enter as logarithms. Rates are shrunk toward the mean of the site, so that one lucky answer
does not outweigh a hundred good ones. The strength is estimated from how much people really differ
(empirical Bayes, by moments).
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.history import History

_SHRINK = 5.0
_LEAST_SPREAD, _LEAST_PULL = 1e-4, 0.5
SETTLED_MS = 30 * DAY_MS
STEP, SCALE = 24.0, 400.0  # as in chess
_UNIT = 100.0


def user_stats(history: History) -> dict[str, Float64Array]:
    """Return popularity and habits of all users, by feature."""
    given = history.n_given
    asker = history.questions.asker
    asked = np.bincount(asker[asker >= 0], minlength=history.n_users)
    return {
        "answers": np.log1p(given),
        "accepted": np.log1p(history.n_won),
        **_success(history),
        **_votes(history),
        "elo": elo_ratings(history),
        **_pace(history),
        "asked": np.log1p(asked),
    }


def _success(history: History) -> dict[str, Float64Array]:
    """Return how often people's answers were accepted, overall and against other answers."""
    won, question = history.n_won, history.answers.question
    resolved = history.best_answer >= 0
    decided = history.per_user(resolved[question].astype(np.float64))
    usual = float(won.sum() / max(decided.sum(), 1.0))
    people = np.bincount(question, minlength=history.n_questions)
    contested = (resolved & (people > 1))[question]
    matches = history.per_user(contested.astype(np.float64))
    wins = history.per_user((contested & history.is_accepted).astype(np.float64))
    par = history.per_user(np.where(contested, 1.0 / np.maximum(people[question], 1), 0))
    noise = usual * (1.0 - usual)
    pull = max(noise / _spread(won, decided, usual, noise) - 1.0, _LEAST_PULL)
    rate = np.clip((won + pull * usual) / (decided + pull), 1e-4, 1 - 1e-4)
    return {
        "acceptance_rate": np.log(rate / (1 - rate)),
        # Against the chance of winning among that many answers.
        "win_rate": (wins - par) / np.sqrt(matches + _SHRINK),
    }


def _votes(history: History) -> dict[str, Float64Array]:
    given, votes, question = history.n_given, history.answer_votes, history.answers.question
    mean = float(votes.mean()) if len(votes) else 0.0
    count = np.maximum(np.bincount(question, minlength=history.n_questions), 1)
    gap = votes - (np.bincount(question, votes, history.n_questions) / count)[question]
    ahead = history.per_user(np.sign(np.where(np.abs(gap) > 1e-9, gap, 0.0)))
    total, owner = history.per_user(votes), history.answers.owner
    own = total / np.maximum(given, 1.0)
    apart = (votes - own[owner])[owner >= 0]
    noise = float(np.mean(apart**2)) if len(apart) else 1.0
    pull = max(noise / _spread(total, given, mean, noise), _LEAST_PULL)
    return {
        "mean_votes": np.arcsinh((total + pull * mean) / (given + pull)),
        # Answers with more votes than the mean of their question, less those with fewer.
        "vote_wins": ahead / np.sqrt(given + _SHRINK),
    }


def _spread(total: Float64Array, count: Float64Array, usual: float, noise: float) -> float:
    """Return the variance of people's true means: the observed variance minus that of the noise."""
    some = count >= 2
    if not some.any():
        return _LEAST_SPREAD
    seen = total[some] / count[some]
    return max(float(np.mean((seen - usual) ** 2 - noise / count[some])), _LEAST_SPREAD)


def _pace(history: History) -> dict[str, Float64Array]:
    """Return how soon people answer, and how often before everybody else."""
    given, question = history.n_given, history.answers.question
    delay = (history.answers.given_ms - history.questions.asked_ms[question]) / DAY_MS
    log_delay = np.log(np.maximum(delay, 1e-3))
    usual = float(log_delay.mean()) if len(log_delay) else 0.0
    first = np.zeros(history.n_answers)
    if history.n_answers:
        first[np.unique(question, return_index=True)[1]] = 1.0
    return {
        "speed": -(history.per_user(log_delay) + 3 * usual) / (given + 3.0),
        "first": (history.per_user(first) + 1.0) / (given + 2.0),
    }


def elo_ratings(history: History) -> Float64Array:
    """Return Elo ratings from votes, in hundreds; 0 for people who were never compared.

    Two answers to a question are a match: the answer with more votes thirty days after the question
    wins. Wins against people who usually win count more, which rates and counts cannot express.
    """
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
    """Rate the answers of each question as matches, question by question; changes `rating`.

    Answers of question q are ``starts[q] : starts[q + 1]``. All pairs play, with the ratings from
    before the question.
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
