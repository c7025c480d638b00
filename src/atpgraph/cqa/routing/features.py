"""What the router looks at: one row of numbers per person for a question.

Everything is computed for all users of a history at once, from its answers: a weight per answer,
summed by owner. Counts enter as logarithms, rates are shrunk to the mean of the site, so that one
lucky answer is not worth a hundred good ones.
"""

from __future__ import annotations

import numpy as np

from atpgraph.cqa.routing.activity import Activity, is_timeless, log_count, timeless, week_start
from atpgraph.cqa.routing.history import Floats, History, Question
from atpgraph.cqa.routing.structural import Structure
from atpgraph.cqa.routing.textual import tag_match
from atpgraph.cqa.site import DAY_MS, Int64

POPULARITY = (
    "answers",
    "accepted",
    "acceptance_rate",
    "win_rate",
    "mean_votes",
    "vote_wins",
)
RECENCY = (
    "days_since",
    "fading_3",
    "fading_15",
    "fading_60",
    "fading_365",
    "accepted_60",
    "accepted_365",
)
HABIT = ("hour", "speed", "first", "tenure", "asked")
TEXT = (
    "text_sum",
    "text_max",
    "text_near",
    "text_recent",
    "text_accepted",
    "text_mean",
)
TAGS = ("tag_sum", "tag_accepted", "tag_share", "tag_recent", "tag_same")
ASKER = ("helped_asker", "accepted_by_asker")
ATP = ("atp_score", "level", "level_gap", "atp_target")
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
_NEAREST = 30
_HOUR = DAY_MS // 24


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
    ahead = history.per_user(_ahead(history))
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
        # Answers with more votes than the mean of their question, less those with fewer.
        "vote_wins": ahead / np.sqrt(given + _SHRINK),
        "speed": -(history.per_user(log_delay) + 3 * usual_delay) / (given + 3.0),
        "first": (history.per_user(first) + 1.0) / (given + 2.0),
        "asked": np.log1p(asked),
    }


def _ahead(history: History) -> Floats:
    """For every answer, the sign of its votes less the mean of the question's answers."""
    question, votes = history.answer_question, history.answer_votes
    count = np.maximum(np.bincount(question, minlength=history.n_questions), 1)
    mean = np.bincount(question, votes, minlength=history.n_questions) / count
    gap = votes - mean[question]
    return np.asarray(np.sign(np.where(np.abs(gap) > 1e-9, gap, 0.0)))


def text_features(question: Question, fresh: Floats) -> dict[str, Floats]:
    """How much the question is like those somebody answered; `fresh` is :func:`freshness`."""
    history, match = question.history, question.match
    if not match.any():
        return {name: np.zeros(history.n_users) for name in TEXT}
    best = np.sort(np.argpartition(-match, min(_NEAREST, len(match)) - 1)[:_NEAREST])
    near = history.over_answers(best, match) / question.best_match
    ideal = max(history.corpus.ideal(question.terms, history.present), 1e-9)
    # Squares favour a few close questions over many that share a common word.
    total, accepted, recent, largest = history.matching((match / ideal) ** 2, fresh)
    return {
        "text_sum": log_count(total),
        "text_max": np.sqrt(largest),
        "text_near": log_count(near, some=np.flatnonzero(near)),
        "text_recent": log_count(recent),
        "text_accepted": log_count(accepted),
        "text_mean": log_count(total, 0.05) - history.log_given,
    }


def tag_features(question: Question, fresh: Floats) -> dict[str, Floats]:
    """How much somebody answered under the question's tags."""
    history = question.history
    share = tag_match(question)
    if share is None or not share.any():
        return {name: np.zeros(history.n_users) for name in TAGS}
    each = share / float(share.max())
    # Cubes favour questions that share all tags.
    total, accepted, recent, same = history.few_matching(each, fresh)
    some = np.flatnonzero(total)
    return {
        "tag_sum": log_count(total, some=some),
        "tag_accepted": log_count(accepted, some=some),
        "tag_share": log_count(total, 0.5, some) - history.log_given,
        "tag_recent": log_count(recent, some=some),
        "tag_same": log_count(same, some=some),
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
        self._week: History | None = None
        self._users: dict[str, Floats] = {}
        self._activity: Activity | None = None
        self._moment: tuple[History, int, dict[str, Floats], Floats] | None = None
        self._shared: tuple[dict[str, Floats], Floats, Floats] | None = None

    def people(self, question: Question) -> tuple[dict[str, Floats], Floats]:
        """Standing and activity of everybody, and freshness of the answers.

        None of it depends on what is asked; it is kept for the hour for questions with the same
        history.
        """
        history, hour = question.history, question.asked_ms // _HOUR
        if self._moment is None or self._moment[0] is not history or self._moment[1] != hour:
            known = history if is_timeless(history) else week_start(history)
            if self._week is None or not known.same_as(self._week):
                self._week = known
                self._users = user_features(known)
                self._activity = None if is_timeless(known) else Activity(known)
            timing = self._activity.features(question) if self._activity else timeless(question)
            self._moment = history, hour, {**self._users, **timing}, freshness(question)
        return self._moment[2], self._moment[3]

    def own(self, question: Question, fresh: Floats) -> dict[str, Floats]:
        """The part that no two questions share; kept with the question."""
        key = ("features", id(self.structure))
        if key not in question.cache:
            found = {
                **text_features(question, fresh),
                **tag_features(question, fresh),
                **asker_features(question),
            }
            if self.structure is not None:
                found |= self.structure.features(question)
            question.cache[key] = found
        kept: dict[str, Floats] = question.cache[key]
        return kept

    def columns(self, question: Question) -> dict[str, Floats]:
        """Every feature of all users, but those that are 0 for everybody."""
        people, fresh = self.people(question)
        return {**people, **self.own(question, fresh)}

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
        people, fresh = self.people(question)
        kept = self._shared
        if not (kept and kept[0] is people and kept[1] is weight):
            shared = _weighted(people, weight, question.history.n_users)
            self._shared = kept = people, weight, shared
        return kept[2] + _weighted(self.own(question, fresh), weight, question.history.n_users)


def _weighted(columns: dict[str, Floats], weight: Floats, n: int) -> Floats:
    total, part = np.zeros((2, n))
    for name, value in zip(NAMES, weight.tolist(), strict=True):
        if value and name in columns:
            total += np.multiply(columns[name], value, out=part)
    return total


def _logit(p: Floats) -> Floats:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(p / (1 - p)))
