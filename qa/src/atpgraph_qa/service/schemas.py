"""Requests and responses of the API, with limits and examples; signed events use the same form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from atpgraph_qa.advisor.people import Person, parse_hours
from atpgraph_qa.advisor.people import time_zone as parse_zone
from atpgraph_qa.advisor.policies import Decision
from atpgraph_qa.advisor.suggest import Suggestion
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.events import Arrival, Edited, Event, StatusChanged
from atpgraph_qa.service.settings import DAY, Mode, Url, checked
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

MOST = 2**53 - 1  # the largest integer that JavaScript represents exactly
_FIRST, _LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def printable(text: str) -> str:
    """Return a text without NUL and lone surrogates, which databases reject."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _in_range(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _FIRST <= moment <= _LAST:
        raise ValueError("a time between 1990 and 2200")
    return moment


# Limits apply before a text is cleaned, which may shorten it.
Clean = AfterValidator(printable)
Id = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Title = Annotated[str, Field(max_length=500), Clean]
Body = Annotated[str, Field(max_length=100_000), Clean]
Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100), Clean]], Field(max_length=30)
]
Name = Annotated[str, Field(min_length=1, max_length=200), Clean]
Moment = Annotated[datetime, AfterValidator(_in_range)]
Scope = Literal["read", "route", "write", "admin"]
Item = TypeVar("Item")


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class _EventIn(_In):
    """Something that happened on the site."""

    makes: ClassVar[type[Event]]
    at: Moment

    def arrival(self) -> Arrival:
        """Return the event with its name."""
        values = self.model_dump(exclude={"at"})
        for person in {"asker", "user"} & values.keys():
            values[person] = NOBODY if values[person] is None else values[person]
        mark = values.pop("id") if self.makes is Voted else ""
        url = values.pop("url", "")
        event = self.makes(**values, at_ms=int(self.at.timestamp() * 1000))
        return Arrival.of(event, mark, {"url": url} if url else {})


class QuestionIn(_EventIn):
    """A question was asked. It is stored at once and routed a moment later."""

    model_config = _example(
        id=501, title="Why do tomato leaves turn yellow?", body="They started at the bottom.",
        tags=["tomatoes"], asker=7, at="2026-11-17T09:00:00Z",
        url="https://example.org/questions/501",
    )  # fmt: skip
    makes = Asked
    id: Id
    title: Title
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    url: Annotated[Url, Field(max_length=500), Clean] = Field(
        "", description="Where people see it."
    )


class EditIn(_EventIn):
    """A question was edited. Omitted fields do not change; a suggestion not sent yet is renewed."""

    model_config = _example(question=501, title="Why yellow leaves?", at="2026-11-17T09:05Z")
    makes = Edited
    question: Id
    title: Title | None = None
    body: Body | None = None
    tags: Tags | None = None


class ClosureIn(_EventIn):
    """A question was closed, deleted (which removes its title and text) or opened again."""

    model_config = _example(question=501, state="closed", at="2026-11-17T09:05:00Z")
    makes = StatusChanged
    question: Id
    state: Literal["closed", "deleted", "open"]


class AnswerIn(_EventIn):
    """An answer was given. It ends the asking about the question and counts as expertise of the
    person.
    """

    model_config = _example(id=9001, question=501, user=27, at="2026-11-17T09:30:00Z")
    makes = Answered
    id: Id
    question: Id
    user: Id | None = None


class AcceptanceIn(_EventIn):
    """The asker accepted an answer."""

    model_config = _example(question=501, answer=9001, at="2026-11-17T10:00:00Z")
    makes = Accepted
    question: Id
    answer: Id


class VoteIn(_EventIn):
    """An answer got a vote."""

    model_config = _example(id="vote-77", answer=9001, value=1, at="2026-11-17T11:00:00Z")
    makes = Voted
    id: Name = Field(description="Identifies this vote; the same when the vote is sent again.")
    answer: Id
    value: Literal[-1, 1]


EVENTS: dict[str, type[_EventIn]] = {
    "questions": QuestionIn, "edits": EditIn, "closures": ClosureIn, "answers": AnswerIn,
    "acceptances": AcceptanceIn, "votes": VoteIn,
}  # fmt: skip
SIGNED: dict[str, type[_EventIn]] = {
    "question.created": QuestionIn, "question.edited": EditIn, "question.closed": ClosureIn,
    "answer.created": AnswerIn, "answer.accepted": AcceptanceIn, "answer.voted": VoteIn,
}  # fmt: skip


class RouteIn(_In):
    """A question to find people for; nothing is stored."""

    model_config = _example(
        title="Why do tomato leaves turn yellow?", body="", tags=["tomatoes"], asker=7, top=3
    )
    title: Title = ""
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    top: int | None = Field(
        None, ge=1, le=20, description="How many people; by default, what the policy says."
    )


class PersonIn(_In):
    """Changes to a person; omitted fields do not change."""

    model_config = _example(opted_out=False, hours="09:00-17:00", time_zone="Europe/Vienna")
    handle: Annotated[str, Field(max_length=100), Clean] | None = None
    opted_out: Annotated[bool, Field(strict=True)] | None = None
    away_until: Annotated[str, Field(max_length=10), DAY] | None = None
    hours: Annotated[str, Field(max_length=11), checked(parse_hours)] | None = None
    time_zone: Annotated[str, Field(max_length=64), checked(parse_zone)] | None = None
    capacity: int | None = Field(
        None, ge=0, le=1000, description="Maximum of asks in a week; null: the site's limit."
    )
    groups: Tags | None = None
    topics: Tags | None = None

    def changes(self) -> Row:
        """Return what was given, lists as tuples."""
        given = self.model_dump(exclude_unset=True)
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None or name == "capacity"
        }


class FeedbackIn(_In):
    """A decision about a suggestion."""

    model_config = _example(verdict="accepted", note="")
    verdict: Literal["accepted", "declined", "reassigned", "comment"]
    person: Id | None = Field(None, description="For reassigned: to whom.")
    people: list[Id] = Field([], description="For accepted: who was shown; others are not asked.")
    note: Annotated[str, Field(max_length=2000), Clean] = ""


class AskIn(_In):
    """A person was asked outside of the service."""

    model_config = _example(kind="by mail")
    kind: Annotated[str, Field(min_length=1, max_length=50), Clean]


class ModeIn(_In):
    """The mode: who is asked, and when."""

    model_config = _example(mode="approve")
    mode: Mode


class TokenIn(_In):
    """A new token."""

    model_config = _example(name="forum", scopes=["write"])
    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]


class RouteOut(BaseModel):
    """The people to ask; `abstains` says why the list should not be trusted, or is empty."""

    people: list[Suggestion]
    abstains: str
    candidates: int
    notes: list[str]
    decisions: list[Decision]
    model: str
    mode: Mode


class EventOut(BaseModel):
    """An event was stored; `duplicate` is true if it was already known."""

    name: str
    seq: int | None
    duplicate: bool


@dataclass(frozen=True, kw_only=True)
class PersonOut(Person):
    """A person: their settings, their activity, and how often they were asked."""

    answers: int
    accepted: int
    last_answer_ms: int | None
    asked_day: int
    asked_week: int
    may_be_asked: bool
    why_not: str


class Page(BaseModel, Generic[Item]):
    """A page of a list, and the cursor of the next page."""

    items: list[Item]
    cursor: str


class RankedOut(BaseModel):
    """One of the best people, regardless of caps."""

    person: int
    confidence: float


class FeedbackOut(BaseModel):
    """Feedback, and who gave it."""

    verdict: str
    person: int | None
    at_ms: int
    note: str
    given_by: str


class SuggestionOut(RouteOut):
    """A suggestion, its question, and the outcome."""

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
    state: str
    ranking: list[RankedOut]
    baseline: list[int]
    confidence: float
    escalate_ms: int | None
    outcome: int | None
    place: int | None
    baseline_place: int | None
    resolved_ms: int | None
    feedback: list[FeedbackOut] = []


class ForgottenOut(BaseModel):
    """How many rows of each kind were removed or changed, and what the operator must remove."""

    removed: dict[str, int]
    left: list[str] = ["the model folder that was given at the start, and backups"]


class TokenOut(BaseModel):
    """A new token; this is the only time that it is shown."""

    id: int
    token: str
    scopes: list[str]


class HookOut(BaseModel):
    """How much of a hook was new."""

    events: int = 0
    duplicates: int = 0
    forgotten: int = 0
    feedback: int = 0


class StatusOut(BaseModel):
    """A status word."""

    status: str


class MessagesOut(BaseModel):
    """The newest messages and their last attempts."""

    items: list[Row]
    switched_off: list[Row]


class ModelsOut(BaseModel):
    """The model in use, and the models trained since."""

    in_use: str
    learning: bool
    trained: list[Row]


class TagOut(BaseModel):
    """A tag with more questions than people who can answer them."""

    tag: str
    questions: int
    unanswered: int
    experts: int


class QualityOut(BaseModel):
    """The figures described on the page on operations."""

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
    by_day: list[Row]
    calibration: list[Row]
    load: Row
