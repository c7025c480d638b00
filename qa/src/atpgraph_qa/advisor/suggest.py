"""Suggestions for one new question: ranked people, confidence, reasons; or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.advisor.policies import Dispatcher
from atpgraph_qa.advisor.reasons import Hierarchy, Reason, explain
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.corpus import words
from atpgraph_qa.timeline.query import Query, by_id

LEAST_CONFIDENCE = 0.01
_UNLEARNED = (
    "There is no accepted answer to learn from: people are ranked by the similar questions they "
    "answered and how many, and the confidence is not calibrated."
)


@dataclass(frozen=True)
class Suggestion:
    """One person to ask.

    Attributes
    ----------
    user : int
        User id.
    score : float
        The router's score; differences are log-odds.
    confidence : float
        Calibrated probability that this person gives the accepted answer.
    reasons : tuple of Reason
    """

    user: int
    score: float
    confidence: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Suggestions:
    """Whom to ask.

    Attributes
    ----------
    people : tuple of Suggestion
        Best first.
    abstains : str
        Why nobody is suggested, or why the list should not be trusted; empty if it may be.
    candidates : int
        How many people were ranked.
    notes : tuple of str
        The parts of the question that the site does not know.
    """

    people: tuple[Suggestion, ...]
    abstains: str
    candidates: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(eq=False)
class Ranker:
    """Computes scores and reasons in this process; a subclass asks another process for them."""

    router: Router
    hierarchy: Hierarchy | None = None

    def scores(self, query: Query, codes: Int64Array) -> Float64Array:
        """Return one number per user code; differences are log-odds.

        Without anything learned, people are ranked by the similar questions they answered.
        """
        if self.router.questions_:
            return self.router.score_codes(query, codes)
        history = query.history
        match = query.match / (query.best_match or 1.0)
        similar = np.log1p(history.per_user((match**2)[history.answers.question]))
        return np.asarray(similar[codes] + 0.1 * np.log1p(history.n_given[codes]))

    def reasons(self, query: Query, users: Sequence[int]) -> list[tuple[Reason, ...]]:
        """Return why each of the given users should be asked."""
        return [tuple(explain(query, user, self.hierarchy)) for user in users]


def suggest(
    ranker: Ranker,
    query: Query,
    dispatcher: Dispatcher | None = None,
    *,
    top: int = 5,
    least_confidence: float = LEAST_CONFIDENCE,
) -> Suggestions:
    """Rank everybody who answered before and may be asked, and explain the `top` first.

    The ranker's router is fitted with ``pool="all"``.
    """
    notes, rules, router = _unknown(query), dispatcher or Dispatcher(), ranker.router
    # Rank only those whom the rules leave: most people have been away for long.
    worth_ranking = rules.eligible(query)[:-1] & (query.history.last_answer_ms > 0)
    codes = by_id(query, np.flatnonzero(worth_ranking))
    people = query.history.users[codes]
    if not len(people):
        why = "Nobody has answered a question on this site yet."
        if query.history.n_given.any():
            why = rules.explain_nobody(query) or "The policy leaves nobody to ask."
        return Suggestions((), why, 0, notes)
    scores = ranker.scores(query, codes)
    chosen = rules.choose(query, people, scores, top).positions
    if not len(chosen):
        return Suggestions((), "The policy leaves nobody to ask.", len(people), notes)
    # Those who were not ranked may be right, too.
    confidence = router.confidence(scores, chosen) * rules.expected_share(router.presence_)
    users = people[chosen].tolist()
    columns = users, scores[chosen].tolist(), confidence.tolist(), ranker.reasons(query, users)
    best, why = float(confidence.max()), ""
    if not router.questions_:
        why = _UNLEARNED
    elif best < least_confidence:
        why = f"The evidence is weak: the best confidence is {best:.1%}, below "
        why += f"{least_confidence:.1%}."
    return Suggestions(tuple(map(Suggestion, *columns)), why, len(people), notes)


def _unknown(query: Query) -> tuple[str, ...]:
    """Return the tags and words of the question that the site does not know."""
    question, history = query.question, query.history
    tags = history.records.tag_index
    notes = [f"No question here has the tag {tag!r}." for tag in question.tags if tag not in tags]
    # The body is not looked at if a word of the title is known, as it mostly is.
    parts = (words(*part, ()) for part in ((question.title, ""), ("", question.body)))
    if (question.title + question.body).strip() and not any(map(history.corpus.knows, parts)):
        notes.append("No word of the question was used here before.")
    if question.asker >= 0 and query.asker < 0:
        notes.append(f"User {question.asker} has never posted here and is treated as a new asker.")
    return tuple(notes)
