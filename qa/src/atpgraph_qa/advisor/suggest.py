"""Suggestions for one new question: ranked people, confidence, reasons; or none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.advisor.hierarchy import Hierarchy
from atpgraph_qa.advisor.policies import Dispatcher
from atpgraph_qa.advisor.reasons import Reason, explain
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.candidates import active_codes
from atpgraph_qa.timeline.query import Query

LEAST_CONFIDENCE = 0.01


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
        What of the question the site does not know.
    """

    people: tuple[Suggestion, ...]
    abstains: str
    candidates: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def suggest(
    router: Router,
    query: Query,
    dispatcher: Dispatcher | None = None,
    *,
    hierarchy: Hierarchy | None = None,
    top: int = 5,
    least_confidence: float = LEAST_CONFIDENCE,
) -> Suggestions:
    """Rank everybody who answered before and may be asked, and explain the first few.

    Parameters
    ----------
    router : Router
        Fitted, with ``pool="all"``.
    query : Query
    dispatcher : Dispatcher, optional
        Applies the rules for whom to ask.
    hierarchy : Hierarchy, optional
        For reasons.
    top : int
        How many people.
    least_confidence : float
        Abstain if nobody reaches it.
    """
    notes = _unknown(query)
    rules = dispatcher or Dispatcher()
    everybody = active_codes(query)
    codes = everybody[rules.eligible(query, everybody)] if len(everybody) else everybody
    people = query.history.users[codes]
    if not len(people):
        why = "Nobody has answered a question on this site yet."
        if len(query.history.people):
            why = rules.explain_nobody(query, everybody) or "The policy leaves nobody to ask."
        return Suggestions((), why, 0, notes)
    learnt = router.questions_ > 0
    scores = router.score_codes(query, codes) if learnt else _plain_scores(query, codes)
    chosen = rules.choose(query, people, scores, top).positions
    if not len(chosen):
        return Suggestions((), "The policy leaves nobody to ask.", len(people), notes)
    # Those who were not ranked may be right, too.
    confidence = router.confidence(scores, chosen) * rules.expected_share(router.presence_)
    suggested = tuple(
        Suggestion(user, score, sure, tuple(explain(query, user, hierarchy)))
        for user, score, sure in zip(
            people[chosen].tolist(), scores[chosen].tolist(), confidence.tolist(), strict=True
        )
    )
    why = _doubt(learnt, float(confidence.max()), least_confidence)
    return Suggestions(suggested, why, len(people), notes)


def _doubt(learnt: bool, best: float, least: float) -> str:
    """Why the list should not be trusted; empty if it may be."""
    if not learnt:
        return (
            "There is no accepted answer to learn from: people are ranked by the similar questions "
            "they answered and how many, and the confidence is not calibrated."
        )
    if best < least:
        return f"The evidence is weak: the best confidence is {best:.1%}, below {least:.1%}."
    return ""


def _plain_scores(query: Query, codes: Int64Array) -> Float64Array:
    """Similar questions answered, then number of answers: what can be said without learning."""
    history = query.history
    match = query.match / (query.best_match or 1.0)
    similar = np.log1p(history.per_user((match**2)[history.answers.question]))
    return np.asarray(similar[codes] + 0.1 * np.log1p(history.n_given[codes]))


def _unknown(query: Query) -> tuple[str, ...]:
    """What of the question the site does not know."""
    question, history = query.question, query.history
    tags = history.records.tag_index
    notes = [f"No question here has the tag {tag!r}." for tag in question.tags if tag not in tags]
    text = (question.title + question.body).strip()
    if text and len(query.terms[0]) == len(history.corpus.query("", "", question.tags)[0]):
        notes.append("No word of the question was used here before.")
    if question.asker >= 0 and query.asker < 0:
        notes.append(f"User {question.asker} never posted here: taken for a new asker.")
    return tuple(notes)
