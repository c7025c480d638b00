"""Suggestions for one new question: ranked people, confidence, reasons; or none."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from atpgraph.cqa.routing.history import History, Question
from atpgraph.cqa.routing.method import Floats, Int64
from atpgraph.cqa.routing.policies import Dispatcher, Policy
from atpgraph.cqa.routing.protocols import active_users
from atpgraph.cqa.routing.reasons import Reason, explain
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.site import DAY_MS

LEAST_CONFIDENCE = 0.01
HOUR_MS = DAY_MS // 24


@dataclass(frozen=True)
class Suggestion:
    """One person to ask.

    Attributes
    ----------
    user : int
        User id.
    score : float
        Of the router; differences are log-odds.
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
    question: Question,
    *,
    top: int = 5,
    policy: Policy | None = None,
    dispatcher: Dispatcher | None = None,
    least_confidence: float = LEAST_CONFIDENCE,
) -> Suggestions:
    """Rank everybody who ever answered and explain the first few.

    Parameters
    ----------
    router : Router
        Fitted, with ``pool="all"``.
    question : Question
    top : int
        How many people.
    policy : Policy, optional
        Rules; or a `dispatcher`, which also knows who was asked before.
    least_confidence : float
        Abstain if nobody reaches it.
    """
    keeper = dispatcher or Dispatcher(policy)
    now, notes = question.asked_ms, _unknown(question)
    # Activity is looked at by the hour, so that the questions of an hour share the work.
    question = replace(question, asked_ms=now // HOUR_MS * HOUR_MS)
    people = active_users(question)
    if not len(people):
        return Suggestions((), "Nobody has answered a question on this site yet.", 0, notes)
    learnt = router.questions_ > 0
    scores = router.score(question, people) if learnt else _plain_scores(question, people)
    chosen = keeper.choose(replace(question, asked_ms=now), people, scores, top)
    if not len(chosen):
        return Suggestions((), "The policy leaves nobody to ask.", len(people), notes)
    confidence = router.confidence(scores, chosen)
    structure = router.space_.structure
    found = tuple(
        Suggestion(
            int(people[i]),
            float(scores[i]),
            sure,
            tuple(explain(question, int(people[i]), structure)),
        )
        for i, sure in zip(chosen.tolist(), confidence.tolist(), strict=True)
    )
    best = float(confidence.max())
    why = ""
    if not learnt:
        why = (
            "There is no accepted answer to learn from: people are ranked by the similar questions "
            "they answered and how many, and the confidence is not calibrated."
        )
    elif best < least_confidence:
        why = (
            f"The evidence is weak: the best confidence is {best:.1%}, "
            f"below {least_confidence:.1%}."
        )
    return Suggestions(found, why, len(people), notes)


def warm_up(router: Router, history: History) -> None:
    """Compute what all questions share, so that the first ones do not have to wait for it.

    For a service that loads a router once and is then asked often.
    """
    title = history.title(history.n_questions - 1) if history.n_questions else ""
    for _ in range(2):
        suggest(router, Question(history, history.last_ms, title=title), top=1)


def _plain_scores(question: Question, people: Int64) -> Floats:
    """Similar questions answered, then number of answers: what can be said without learning."""
    history = question.history
    match = question.match / (float(question.match.max(initial=0.0)) or 1.0)
    similar = np.log1p(history.per_user((match**2)[history.answer_question]))
    codes = history.codes(people)
    return np.asarray(similar[codes] + 0.1 * np.log1p(history.n_given[codes]))


def _unknown(question: Question) -> tuple[str, ...]:
    history = question.history
    known = set(history.tag_names)
    notes = [f"No question here has the tag {tag!r}." for tag in question.tags if tag not in known]
    text = (question.title + question.body).strip()
    if text and not len(history.corpus.query(question.title, question.body, ())[0]):
        notes.append("No word of the question was used here before.")
    if question.asker >= 0 and history.codes([question.asker])[0] < 0:
        notes.append(f"User {question.asker} never posted here: taken for a new asker.")
    return tuple(notes)
