"""What the API gives back, for the OpenAPI document; the tests hold the answers to it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Out(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReasonOut(_Out):
    """Why somebody is suggested."""

    kind: str
    text: str
    questions: list[int]


class SuggestedOut(_Out):
    """One person to ask."""

    user: int
    score: float
    confidence: float
    reasons: list[ReasonOut]


class DecisionOut(_Out):
    """What a rule said about a person."""

    person: int
    rule: str
    text: str


class RouteOut(_Out):
    """Whom to ask; `abstains` says in words why the list should not be trusted."""

    people: list[SuggestedOut]
    abstains: str
    candidates: int
    notes: list[str]
    decisions: list[DecisionOut]
    model: str
    shadow: bool


class EventOut(_Out):
    """An event was stored; `duplicate` if it was there before."""

    name: str
    seq: int | None
    duplicate: bool


class PersonOut(_Out):
    """A person: what they set, what they did, how often they were asked."""

    id: int
    handle: str
    opted_out: bool
    away_until: str
    hours: str
    time_zone: str
    capacity: int | None
    groups: list[str]
    topics: list[str]
    answers: int
    accepted: int
    last_answer_ms: int | None
    asked_day: int
    asked_week: int
    may_be_asked: bool
    why_not: str


class PeoplePage(_Out):
    """Some people, and where to go on."""

    items: list[PersonOut]
    cursor: str


class RankedOut(_Out):
    """One of the best, whatever the rules said."""

    person: int
    confidence: float


class FeedbackOut(_Out):
    """What somebody said."""

    verdict: str
    person: int | None
    at_ms: int
    note: str


class SuggestionOut(_Out):
    """A suggestion: a record that does not change but for its state and outcome."""

    id: int
    question: int
    title: str | None
    tags: list[str]
    asker: int | None
    asked_ms: int | None
    answers: int | None
    answered_ms: int | None
    round: int
    created_ms: int
    changed_ms: int
    shadow: bool
    model: str
    state: str
    people: list[SuggestedOut]
    ranking: list[RankedOut]
    baseline: list[int]
    decisions: list[DecisionOut]
    notes: list[str]
    confidence: float
    abstains: str
    candidates: int
    escalate_ms: int | None
    outcome: int | None
    place: int | None
    baseline_place: int | None
    resolved_ms: int | None
    asked: int
    asked_answered: bool | None
    feedback: list[FeedbackOut] = []


class SuggestionPage(_Out):
    """Some suggestions, newest first, and where to go on."""

    items: list[SuggestionOut]
    cursor: str


class ForgottenOut(_Out):
    """How many rows of each kind were removed or changed."""

    removed: dict[str, int]
    left: list[str]


class TokenOut(_Out):
    """A new token; it is shown this once."""

    id: int
    token: str
    scopes: list[str]


class HookOut(_Out):
    """What a hook brought."""

    events: int
    duplicates: int
    forgotten: int
    feedback: int


class StatusOut(_Out):
    """A sentence."""

    status: str


class MessagesOut(_Out):
    """The newest messages and their last attempts."""

    items: list[dict[str, Any]]
    switched_off: list[dict[str, Any]]


class QualityOut(BaseModel):
    """See the page on operations for every figure."""

    days: int
    questions: int
    answered: int
    coverage: float | None
    mrr: float | None
    baseline_mrr: float | None
    hits_at_5: float | None
