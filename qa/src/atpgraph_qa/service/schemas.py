"""What the API takes, with limits and examples; signed events have the same form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.settings import parse_day, parse_hours, time_zone
from atpgraph_qa.service.store.events import Arrival, name_of
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

MOST = 2**53 - 1  # what JavaScript counts exactly
Id = Annotated[int, Field(ge=0, le=MOST, strict=True)]
Title = Annotated[str, StringConstraints(max_length=500)]
Body = Annotated[str, StringConstraints(max_length=100_000)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Tags = Annotated[list[Tag], Field(max_length=30)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_FIRST, _LAST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _printable(text: str) -> str:
    """No NUL and no half surrogates: databases refuse them."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _in_range(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _FIRST <= moment <= _LAST:
        raise ValueError("a time between 1990 and 2200")
    return moment


Moment = Annotated[datetime, AfterValidator(_in_range)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


def _shape(**example: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class QuestionIn(_Model):
    """A question that was asked on the site."""

    model_config = _shape(
        id=501, title="Why do tomato leaves turn yellow?", body="They started at the bottom.",
        tags=["tomatoes"], asker=7, at="2026-11-17T09:00:00Z",
    )  # fmt: skip
    id: Id
    title: Title
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    at: Moment

    def arrival(self) -> Arrival:
        """As an event."""
        asker = NOBODY if self.asker is None else self.asker
        tags = tuple(dict.fromkeys(_printable(tag) for tag in self.tags))
        event = Asked(
            self.id, _printable(self.title), _printable(self.body), tags, asker, _ms(self.at)
        )
        return Arrival(name_of(event), event)


class AnswerIn(_Model):
    """An answer that was given."""

    model_config = _shape(id=9001, question=501, user=27, at="2026-11-17T09:30:00Z")
    id: Id
    question: Id
    user: Id | None = None
    at: Moment

    def arrival(self) -> Arrival:
        """As an event."""
        user = NOBODY if self.user is None else self.user
        event = Answered(self.id, self.question, user, _ms(self.at))
        return Arrival(name_of(event), event)


class AcceptanceIn(_Model):
    """The asker accepted an answer."""

    model_config = _shape(question=501, answer=9001, at="2026-11-17T10:00:00Z")
    question: Id
    answer: Id
    at: Moment

    def arrival(self) -> Arrival:
        """As an event."""
        event = Accepted(self.question, self.answer, _ms(self.at))
        return Arrival(name_of(event), event)


class VoteIn(_Model):
    """A vote for an answer."""

    model_config = _shape(id="vote-77", answer=9001, value=1, at="2026-11-17T11:00:00Z")
    id: Name = Field(description="Tells this vote from others; the same when it is sent again.")
    answer: Id
    value: Literal[-1, 1]
    at: Moment

    def arrival(self) -> Arrival:
        """As an event."""
        event = Voted(self.answer, self.value, _ms(self.at))
        return Arrival(name_of(event, _printable(self.id)), event)


class RouteIn(_Model):
    """A question to find people for; nothing is stored."""

    model_config = _shape(
        title="Why do tomato leaves turn yellow?", body="", tags=["tomatoes"], asker=7, top=3
    )
    title: Title = ""
    body: Body = ""
    tags: Tags = []
    asker: Id | None = None
    top: Annotated[int, Field(ge=1, le=20)] | None = Field(
        default=None, description="How many people; by default as the policy says."
    )


def _hours(text: str) -> str:
    if text:
        parse_hours(text)
    return text


def _zone(text: str) -> str:
    if text:
        time_zone(text)
    return text


def _day(text: str) -> str:
    if text:
        parse_day(text)
    return text


class PersonIn(_Model):
    """What to change of a person; what is left out stays."""

    model_config = _shape(opted_out=False, hours="09:00-17:00", time_zone="Europe/Vienna")
    handle: Annotated[str, StringConstraints(max_length=100)] | None = None
    opted_out: Annotated[bool, Field(strict=True)] | None = None
    away_until: Annotated[str, StringConstraints(max_length=10), AfterValidator(_day)] | None = None
    hours: Annotated[str, StringConstraints(max_length=11), AfterValidator(_hours)] | None = None
    time_zone: Annotated[str, StringConstraints(max_length=64), AfterValidator(_zone)] | None = None
    capacity: Annotated[int, Field(ge=0, le=1000, strict=True)] | None = Field(
        default=None, description="Most asks a week; null for the site's."
    )
    groups: Tags | None = None
    topics: Tags | None = None

    def changes(self) -> dict[str, Any]:
        """What was given; lists as tuples, texts clean."""
        given: dict[str, Any] = {}
        for name in self.model_fields_set:
            value = getattr(self, name)
            if isinstance(value, list):
                value = tuple(_printable(part) for part in value)
            elif isinstance(value, str):
                value = _printable(value)
            elif value is None and name != "capacity":
                continue
            given[name] = value
        return given


class FeedbackIn(_Model):
    """What somebody decided about a suggestion."""

    model_config = _shape(verdict="accepted", note="")
    verdict: Literal["accepted", "declined", "reassigned", "comment"]
    person: Id | None = Field(default=None, description="For reassigned: to whom.")
    note: Annotated[str, StringConstraints(max_length=2000)] = ""


class AskIn(_Model):
    """Somebody was asked outside of the service."""

    model_config = _shape(kind="by mail")
    kind: Annotated[str, StringConstraints(min_length=1, max_length=50)]


class TokenIn(_Model):
    """A new token."""

    model_config = _shape(name="forum", scopes=["write"])
    name: Name
    scopes: Annotated[
        list[Literal["read", "route", "write", "admin"]], Field(min_length=1, max_length=4)
    ]


SIGNED: dict[str, type[QuestionIn | AnswerIn | AcceptanceIn | VoteIn]] = {
    "question.created": QuestionIn,
    "answer.created": AnswerIn,
    "answer.accepted": AcceptanceIn,
    "answer.voted": VoteIn,
}


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
