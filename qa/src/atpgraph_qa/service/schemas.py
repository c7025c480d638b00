"""What the API takes and returns, with limits and examples; signed events have the same form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from atpgraph_qa.advisor.people import parse_day, parse_hours
from atpgraph_qa.advisor.people import time_zone as parse_zone
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.store.events import (
    Arrival,
    Closed,
    Edited,
    Event,
    Reopened,
    name_of,
)
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

MOST = 2**53 - 1  # what JavaScript counts exactly
_FIRST, _LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def printable(text: str) -> str:
    """Return a text without NUL and half surrogates, which databases refuse."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _in_range(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _FIRST <= moment <= _LAST:
        raise ValueError("a time between 1990 and 2200")
    return moment


def _http(url: str) -> str:
    if url and not url.startswith(("https://", "http://")):
        raise ValueError("an address that begins with https://")
    return url


def _checked(check: Any) -> AfterValidator:
    def validate(text: str) -> str:
        if text:
            check(text)
        return text

    return AfterValidator(validate)


def _text(most: int, least: int = 0) -> Any:
    """Limits before the text is cleaned, which may make it shorter."""
    return StringConstraints(max_length=most, min_length=least)


Clean = AfterValidator(printable)
Id = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Title = Annotated[str, _text(500), Clean]
Body = Annotated[str, _text(100_000), Clean]
Tag = Annotated[str, _text(100, 1), Clean]
Tags = Annotated[list[Tag], Field(max_length=30)]
Name = Annotated[str, _text(200, 1), Clean]
Url = Annotated[str, _text(500), Clean, AfterValidator(_http)]
Moment = Annotated[datetime, AfterValidator(_in_range)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class _EventIn(_In):
    """Something that happened on the site."""

    at: Moment

    def event(self) -> Event:
        """Return the event."""
        raise NotImplementedError

    def arrival(self) -> Arrival:
        """Return the event with its name."""
        event = self.event()
        return Arrival(name_of(event), event)

    @property
    def ms(self) -> int:
        """The moment in milliseconds."""
        return int(self.at.timestamp() * 1000)


class QuestionIn(_EventIn):
    """A question that was asked on the site."""

    model_config = _example(
        id=501, title="Why do tomato leaves turn yellow?", body="They started at the bottom.",
        tags=["tomatoes"], asker=7, at="2026-11-17T09:00:00Z",
        url="https://example.org/questions/501",
    )  # fmt: skip
    id: Id
    title: Title
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    url: Url = Field(default="", description="Where people see it.")

    def event(self) -> Event:
        asker = NOBODY if self.asker is None else self.asker
        tags = tuple(dict.fromkeys(self.tags))
        return Asked(self.id, self.title, self.body, tags, asker, self.ms)

    def arrival(self) -> Arrival:
        event = self.event()
        return Arrival(name_of(event), event, {"url": self.url} if self.url else {})


class EditIn(_EventIn):
    """A question was edited; what is left out stayed."""

    model_config = _example(
        question=501, title="Why do leaves turn yellow?", at="2026-11-17T09:05Z"
    )
    question: Id
    title: Title | None = None
    body: Body | None = None
    tags: Tags | None = None

    def event(self) -> Event:
        tags = None if self.tags is None else tuple(dict.fromkeys(self.tags))
        return Edited(self.question, self.ms, self.title, self.body, tags)


class ClosureIn(_EventIn):
    """A question was closed, deleted or opened again."""

    model_config = _example(question=501, state="closed", at="2026-11-17T09:05:00Z")
    question: Id
    state: Literal["closed", "deleted", "open"]

    def event(self) -> Event:
        if self.state == "open":
            return Reopened(self.question, self.ms)
        return Closed(self.question, self.ms, deleted=self.state == "deleted")


class AnswerIn(_EventIn):
    """An answer that was given."""

    model_config = _example(id=9001, question=501, user=27, at="2026-11-17T09:30:00Z")
    id: Id
    question: Id
    user: Id | None = None

    def event(self) -> Event:
        user = NOBODY if self.user is None else self.user
        return Answered(self.id, self.question, user, self.ms)


class AcceptanceIn(_EventIn):
    """The asker accepted an answer."""

    model_config = _example(question=501, answer=9001, at="2026-11-17T10:00:00Z")
    question: Id
    answer: Id

    def event(self) -> Event:
        return Accepted(self.question, self.answer, self.ms)


class VoteIn(_EventIn):
    """A vote for an answer."""

    model_config = _example(id="vote-77", answer=9001, value=1, at="2026-11-17T11:00:00Z")
    id: Name = Field(description="Tells this vote from others; the same when it is sent again.")
    answer: Id
    value: Literal[-1, 1]

    def event(self) -> Event:
        return Voted(self.answer, self.value, self.ms)

    def arrival(self) -> Arrival:
        event = self.event()
        return Arrival(name_of(event, self.id), event)


SIGNED: dict[str, type[_EventIn]] = {
    "question.created": QuestionIn,
    "question.edited": EditIn,
    "question.closed": ClosureIn,
    "answer.created": AnswerIn,
    "answer.accepted": AcceptanceIn,
    "answer.voted": VoteIn,
}


class RouteIn(_In):
    """A question to find people for; nothing is stored."""

    model_config = _example(
        title="Why do tomato leaves turn yellow?", body="", tags=["tomatoes"], asker=7, top=3
    )
    title: Title = ""
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    top: Annotated[int, Field(ge=1, le=20)] | None = Field(
        default=None, description="How many people; by default as the policy says."
    )


class PersonIn(_In):
    """What to change of a person; what is left out stays."""

    model_config = _example(opted_out=False, hours="09:00-17:00", time_zone="Europe/Vienna")
    handle: Annotated[str, _text(100), Clean] | None = None
    opted_out: Annotated[bool, Field(strict=True)] | None = None
    away_until: Annotated[str, _text(10), _checked(parse_day)] | None = None
    hours: Annotated[str, _text(11), _checked(parse_hours)] | None = None
    time_zone: Annotated[str, _text(64), _checked(parse_zone)] | None = None
    capacity: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None, description="Most asks a week; null for the site's."
    )
    groups: Tags | None = None
    topics: Tags | None = None

    def changes(self) -> dict[str, Any]:
        """Return what was given, lists as tuples."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None or name == "capacity"
        }


class FeedbackIn(_In):
    """What somebody decided about a suggestion."""

    model_config = _example(verdict="accepted", note="")
    verdict: Literal["accepted", "declined", "reassigned", "comment"]
    person: Id | None = Field(default=None, description="For reassigned: to whom.")
    note: Annotated[str, _text(2000), Clean] = ""


class AskIn(_In):
    """Somebody was asked outside of the service."""

    model_config = _example(kind="by mail")
    kind: Annotated[str, _text(50, 1), Clean]


class ModeIn(_In):
    """Whether people are asked."""

    model_config = _example(mode="approve")
    mode: Literal["shadow", "approve", "automatic"]


class TokenIn(_In):
    """A new token."""

    model_config = _example(name="forum", scopes=["write"])
    name: Name
    scopes: Annotated[
        list[Literal["read", "route", "write", "admin"]], Field(min_length=1, max_length=4)
    ]


class _Out(BaseModel):
    model_config = ConfigDict(extra="ignore", from_attributes=True)


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
    mode: str


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
    """One of the best, whatever the caps said."""

    person: int
    confidence: float


class FeedbackOut(_Out):
    """What somebody said, and who."""

    verdict: str
    person: int | None
    at_ms: int
    note: str
    given_by: str


class SuggestionOut(_Out):
    """A suggestion, the question it is about, and what came of it."""

    id: int
    question: int
    title: str | None
    body: str
    url: str
    tags: list[str]
    asker: int | None
    asked_ms: int | None
    answers: int | None
    answered_ms: int | None
    closed_ms: int | None
    round: int
    created_ms: int
    changed_ms: int
    sent_ms: int | None
    shadow: bool
    mode: str
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


class KnownTokenOut(_Out):
    """A token as it is known: not what it is, but what it may do."""

    id: int
    name: str
    scopes: str
    created_ms: int
    used_ms: int | None


class HookOut(_Out):
    """What a hook brought."""

    events: int
    duplicates: int
    forgotten: int
    feedback: int


class StatusOut(_Out):
    """A sentence."""

    status: str


class AuditOut(_Out):
    """Who did what."""

    at_ms: int
    who: str
    what: str
    person: int | None


class MessagesOut(_Out):
    """The newest messages and their last attempts."""

    items: list[dict[str, Any]]
    switched_off: list[dict[str, Any]]


class ModelsOut(_Out):
    """The model in use, and what became of those that were trained."""

    in_use: str
    learning: bool
    trained: list[dict[str, Any]]


class TagOut(_Out):
    """A tag with more questions than people who can answer them."""

    tag: str
    questions: int
    unanswered: int
    experts: int


class QualityOut(BaseModel):
    """See the page on operations for every figure."""

    days: int
    baseline: str
    questions: int
    answered: int
    coverage: float | None
    mrr: float | None
    baseline_mrr: float | None
    hits_at_5: float | None
    asked_answered: float | None
    accepted: int
    declined: int
    by_day: list[dict[str, Any]]
    calibration: list[dict[str, Any]]
    load: dict[str, Any]
