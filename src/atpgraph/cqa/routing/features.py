"""What the router looks at: one row of numbers per person for a question.

Everything is computed for all users of a history at once, from its answers: a weight per answer,
summed by owner. Counts enter as logarithms, rates are shrunk to the mean of the site, so that one
lucky answer is not worth a hundred good ones.
"""

from __future__ import annotations

import numpy as np

from atpgraph.cqa.routing.history import FOREVER, Floats, History, Question
from atpgraph.cqa.routing.structural import Structure
from atpgraph.cqa.routing.textual import tag_match
from atpgraph.cqa.site import DAY_MS, Int64

POPULARITY = ("answers", "accepted", "acceptance_rate", "win_rate", "mean_votes")
RECENCY = (
    "days_since",
    "answers_30",
    "answers_90",
    "answers_365",
    "accepted_90",
    "fading_7",
    "fading_60",
)
HABIT = ("hour", "speed", "first", "tenure", "asked")
TEXT = ("bm25_sum", "bm25_max", "bm25_recent", "bm25_accepted", "bm25_mean")
TAGS = ("tag_sum", "tag_accepted", "tag_share", "tag_recent")
ASKER = ("helped_asker", "accepted_by_asker")
ATP = ("atp_score", "atp_fold", "level", "level_gap", "atp_target")
GROUPS = {
    "popularity": POPULARITY,
    "recency": RECENCY,
    "habit": HABIT,
    "text": TEXT,
    "tags": TAGS,
    "asker": ASKER,
    "atp": ATP,
}
NAMES = tuple(name for group in GROUPS.values() for name in group)
_SHRINK = 5.0
_WEEK = 7 * DAY_MS
_HOUR = DAY_MS // 24
_MONDAY = 4 * DAY_MS  # 1970-01-05


def user_features(history: History) -> dict[str, Floats]:
    """The part that does not depend on the question, but for the time."""
    given, won = history.n_given, history.n_won
    resolved = history.best_answer >= 0
    decided = history.per_user(resolved[history.answer_question].astype(np.float64))
    usual = float(won.sum() / max(decided.sum(), 1.0))
    people = np.bincount(history.answer_question, minlength=history.n_questions)
    contested = (resolved & (people > 1))[history.answer_question]
    matches = history.per_user(contested.astype(np.float64))
    wins = history.per_user((contested & history.is_accepted).astype(np.float64))
    par = history.per_user(
        np.where(contested, 1.0 / np.maximum(people[history.answer_question], 1), 0)
    )
    votes = history.answer_votes
    mean = float(votes.mean()) if len(votes) else 0.0
    delay = (history.answer_ms - history.question_ms[history.answer_question]) / DAY_MS
    log_delay = np.log(np.maximum(delay, 1e-3))
    usual_delay = float(log_delay.mean()) if len(log_delay) else 0.0
    first = np.zeros(history.n_answers)
    if history.n_answers:
        first[np.unique(history.answer_question, return_index=True)[1]] = 1.0
    asked = np.bincount(history.asker[history.asker >= 0], minlength=history.n_users)
    return {
        "answers": np.log1p(given),
        "accepted": np.log1p(won),
        "acceptance_rate": _logit((won + _SHRINK * usual) / (decided + _SHRINK)),
        # Against the chance of winning among so many answers.
        "win_rate": (wins - par) / np.sqrt(matches + _SHRINK),
        "mean_votes": np.arcsinh((history.per_user(votes) + 3 * mean) / (given + 3.0)),
        "speed": -(history.per_user(log_delay) + 3 * usual_delay) / (given + 3.0),
        "first": (history.per_user(first) + 1.0) / (given + 2.0),
        "asked": np.log1p(asked),
    }


def time_features(question: Question) -> dict[str, Floats]:
    """Activity around the time of the question."""
    history = question.history
    away = np.abs(question.asked_ms - history.answer_ms) / DAY_MS
    owner = history.answer_owner
    known = np.flatnonzero(owner >= 0)
    longest = np.zeros(history.n_users)
    longest[owner[known[::-1]]] = away[known[::-1]]  # answers come by date: the first one stays
    nearest = np.full(history.n_users, 3650.0)
    if history.now < FOREVER:
        nearest[owner[known]] = away[known]
    else:
        np.minimum.at(nearest, owner[known], away[known])
    hours = np.abs((question.asked_ms - history.answer_ms) / (DAY_MS / 24)) % 24
    near = (np.minimum(hours, 24 - hours) <= 3).astype(np.float64)
    return {
        "days_since": -np.log(nearest + 0.05),
        "answers_30": np.log1p(history.per_user((away <= 30).astype(np.float64))),
        "answers_90": np.log1p(history.per_user((away <= 90).astype(np.float64))),
        "answers_365": np.log1p(history.per_user((away <= 365).astype(np.float64))),
        "accepted_90": np.log1p(history.per_user(((away <= 90) & history.is_accepted) * 1.0)),
        "fading_7": np.log1p(history.per_user(np.exp2(-away / 7.0))),
        "fading_60": np.log1p(history.per_user(np.exp2(-away / 60.0))),
        "hour": np.log((history.per_user(near) + 1.75) / (history.n_given + 7.0)),
        "tenure": np.log1p(longest),
    }


def text_features(question: Question, fresh: Floats) -> dict[str, Floats]:
    """How much the question is like those somebody answered; `fresh` is :func:`freshness`."""
    history = question.history
    match = question.match
    # Squares favour a few close questions over many that share a common word.
    sharp = (match / (float(match.max(initial=0.0)) or 1.0)) ** 2
    total, accepted, recent, largest = history.matching(sharp, fresh)
    return {
        "bm25_sum": np.log1p(total),
        "bm25_max": np.sqrt(largest),
        "bm25_recent": np.log1p(recent),
        "bm25_accepted": np.log1p(accepted),
        "bm25_mean": np.log(total + 0.05) - history.log_given,
    }


def tag_features(question: Question, fresh: Floats) -> dict[str, Floats]:
    """How much somebody answered under the question's tags."""
    history = question.history
    share = tag_match(question)
    if share is None or not share.any():
        return {name: np.zeros(history.n_users) for name in TAGS}
    total, accepted, recent, _ = history.matching(share / float(share.max()), fresh)
    # Most people have nothing under a tag; logarithms are slow.
    some = np.flatnonzero(total)
    portion = np.log(0.5) - history.log_given
    portion[some] += np.log1p(2.0 * total[some])
    for sums in (total, accepted, recent):
        sums[some] = np.log1p(sums[some])
    return {
        "tag_sum": total,
        "tag_accepted": accepted,
        "tag_share": portion,
        "tag_recent": recent,
    }


def freshness(question: Question) -> Floats:
    """A factor for every answer, person by person, that halves every 180 days."""
    history = question.history
    away = np.abs(question.asked_ms - history.answer_ms[history.by_person.answer]) / DAY_MS
    return np.exp2(-away / 180.0)


def asker_features(question: Question) -> dict[str, Floats]:
    """Who helped this asker before."""
    history = question.history
    asker = int(history.codes([question.asker])[0]) if question.asker >= 0 else -1
    if asker < 0:
        return {name: np.zeros(history.n_users) for name in ASKER}
    answers = history.answers_to(np.flatnonzero(history.asker == asker))
    owner, best = history.answer_owner[answers], history.is_accepted[answers]
    helped, accepted = np.zeros(history.n_users), np.zeros(history.n_users)
    helped[owner[owner >= 0]] = 1.0
    accepted[owner[(owner >= 0) & best]] = 1.0
    return {"helped_asker": helped, "accepted_by_asker": accepted}


class FeatureSpace:
    """Computes features; holds what is costly and changes slowly.

    Parameters
    ----------
    structure : Structure or None
        The embedded competition graph; without one, its features are 0.

    Notes
    -----
    Counts and rates of users are those of the last Monday, which spares most of the work when many
    questions are ranked; activity, text, tags and the asker's own history are of the very moment.
    """

    def __init__(self, structure: Structure | None) -> None:
        self.structure = structure
        self._week: tuple[History, int] | None = None
        self._users: dict[str, Floats] = {}
        self._moment: tuple[History, int, dict[str, Floats], Floats] | None = None
        self._shared: tuple[dict[str, Floats], dict[str, Floats], Floats, Floats] | None = None

    def standing(self, history: History) -> dict[str, Floats]:
        """The features of :func:`user_features`."""
        if history.now == FOREVER:
            known = history
        else:
            known = history.at((history.now - _MONDAY) // _WEEK * _WEEK + _MONDAY)
        if self._week is None or not known.same_as(self._week[0]):
            self._week = known, known.now
            self._users = user_features(known)
        return self._users

    def columns(self, question: Question) -> dict[str, Floats]:
        """Every feature of all users, but those that are 0 for everybody."""
        timing, fresh = self._timing(question)
        return {**self.standing(question.history), **timing, **self._own(question, fresh)}

    def _own(self, question: Question, fresh: Floats) -> dict[str, Floats]:
        """The part that no two questions share."""
        found = {
            **text_features(question, fresh),
            **tag_features(question, fresh),
            **asker_features(question),
        }
        if self.structure is not None:
            found |= self.structure.features(question)
        return found

    def _timing(self, question: Question) -> tuple[dict[str, Floats], Floats]:
        """Time features and freshness, kept for the hour for questions with the same history."""
        history, hour = question.history, question.asked_ms // _HOUR
        if self._moment is None or self._moment[0] is not history or self._moment[1] != hour:
            self._moment = history, hour, time_features(question), freshness(question)
        return self._moment[2], self._moment[3]

    def rows(self, question: Question, codes: Int64) -> Floats:
        """Features of users by code: an array of shape (codes, features), in the order of NAMES."""
        found = self.columns(question)
        rows = np.zeros((len(codes), len(NAMES)))
        known = codes >= 0
        for column, name in enumerate(NAMES):
            if name in found:
                rows[known, column] = found[name][codes[known]]
        return rows

    def weighted(self, question: Question, weight: Floats) -> Floats:
        """Σ weight · feature for every user: what ``rows(…) @ weight`` gives, without the rows."""
        standing = self.standing(question.history)
        timing, fresh = self._timing(question)
        kept = self._shared
        if not (kept and kept[0] is standing and kept[1] is timing and kept[2] is weight):
            shared = _weighted({**standing, **timing}, weight, question.history.n_users)
            self._shared = kept = standing, timing, weight, shared
        return kept[3] + _weighted(self._own(question, fresh), weight, question.history.n_users)


def _weighted(columns: dict[str, Floats], weight: Floats, n: int) -> Floats:
    total, part = np.zeros((2, n))
    for name, value in zip(NAMES, weight.tolist(), strict=True):
        if value and name in columns:
            total += np.multiply(columns[name], value, out=part)
    return total


def _logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(p / (1 - p)))
