"""Every setting of the service: one TOML file, overridden by environment variables.

A setting ``name`` of a section ``[policy]`` is ``ATP_SERVE_POLICY_NAME`` in the environment. Lists
are separated by commas there.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from atpgraph.errors import InputError
from atpgraph.util.registry import unknown_name
from atpgraph_qa.advisor.people import parse_day, parse_hours, time_zone
from atpgraph_qa.advisor.policies import Policy

PREFIX = "ATP_SERVE_"
MODES = ("shadow", "approve", "automatic")


def _listed(value: Any) -> Any:
    """Split what the environment gives as one text."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) if isinstance(part, int) else part for part in value]


def _url(value: str) -> str:
    if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
        raise ValueError("is an address that begins with https://")
    return value


def _hours(value: str) -> str:
    if value:
        parse_hours(value)
    return value


def _zone(value: str) -> str:
    time_zone(value)
    return value


def _day(value: str) -> str:
    parse_day(value)
    return value


def _database(value: str) -> str:
    if value and not value.startswith(("postgresql://", "postgres://", "sqlite:///")):
        raise ValueError("begins with postgresql:// or sqlite:///")
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Url = Annotated[str, AfterValidator(_url)]
Hours = Annotated[str, AfterValidator(_hours)]
Days = Annotated[tuple[Annotated[str, AfterValidator(_day)], ...], BeforeValidator(_listed)]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Weekdays = Annotated[tuple[Weekday, ...], BeforeValidator(_listed)]
AdapterName = Literal["webhook", "discourse", "slack", "github"]
Adapters = Annotated[tuple[AdapterName, ...], BeforeValidator(_listed)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


def _setting(default: Any, text: str, *, secret: bool = False) -> Any:
    more: Any = {"secret": True} if secret else None
    return Field(default, description=text, json_schema_extra=more, repr=not secret)


class Section(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Server(Section):
    """Where it listens."""

    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: Annotated[int, Field(ge=0, le=65535)] = _setting(8722, "Port; 0 takes a free one.")
    public_url: Url = _setting("", "Its address as others see it, for links in messages.")
    question_url: Url = _setting(
        "", "Where questions are, like https://example.org/q/{id}, if their source does not say."
    )
    behind_proxy: bool = _setting(
        False, "Trust X-Forwarded-For and X-Forwarded-Proto of trusted_proxies."
    )
    trusted_proxies: Texts = _setting(
        ("127.0.0.1", "::1"), "Addresses or networks of the proxies in front of the service."
    )
    cors_origins: Texts = _setting((), "Origins whose scripts may call the API; none by default.")
    public_metrics: bool = _setting(False, "Serve /metrics without a token.")
    readers: Annotated[int, Field(ge=0, le=64)] = _setting(
        0, "Processes that rank, for sites with many people; 0 ranks in the service's own."
    )


class Storage(Section):
    """What it keeps, and where."""

    folder: str = _setting("atp-serve", "Work folder: SQLite database, snapshots, models.")
    database: Annotated[str, AfterValidator(_database)] = _setting(
        "", "postgresql://… for PostgreSQL; empty for SQLite in the work folder.", secret=True
    )
    snapshot_events: Annotated[int, Field(ge=1)] = _setting(
        5000, "Write a snapshot after this many events."
    )
    snapshot_minutes: Positive = _setting(60.0, "And after this long, if anything happened.")


class Limits(Section):
    """What one request or one token may do."""

    body_bytes: Annotated[int, Field(ge=1024)] = _setting(262_144, "Largest request.")
    per_second: Positive = _setting(50.0, "Requests a second of one token, on average.")
    burst: Annotated[int, Field(ge=1)] = _setting(200, "Requests of one token at once.")
    failures_per_minute: Positive = _setting(30.0, "Wrong tokens a minute from one address.")
    session_hours: Positive = _setting(12.0, "How long a login on the page lasts.")
    header_seconds: Positive = _setting(10.0, "How long a request may take to send its headers.")
    body_seconds: Positive = _setting(20.0, "How long a request may take to send its body.")
    connections: Annotated[int, Field(ge=1)] = _setting(1000, "Connections open at the same time.")
    queue_routes: Annotated[int, Field(ge=1)] = _setting(
        50, "Routes under way or waiting before callers get a 503."
    )
    queue_events: Annotated[int, Field(ge=1)] = _setting(
        20_000, "Events waiting to be applied before writers get a 503."
    )


class Rules(Section):
    """Who may be asked, and when: what keeps it quiet."""

    mode: Literal["shadow", "approve", "automatic"] = _setting(
        "shadow",
        "shadow: nobody is asked. approve: a person accepts first. automatic: people are asked at "
        "once. It can be switched on the page; then the page counts until this setting changes.",
    )
    people: Annotated[int, Field(ge=1)] = _setting(2, "At most this many people a question.")
    least_confidence: NotNegative = _setting(0.01, "Ask nobody if the best confidence is below.")
    groups: Texts = _setting((), "Ask only members of these groups; empty: everybody.")
    least_answers: int = _setting(3, "Ask only people who gave this many answers, or who declared.")
    inactive_days: Positive = _setting(180.0, "Never ask who has not answered for so long.")
    hours: Hours = _setting("", "Working hours like 09:00-17:00, in each person's time zone.")
    weekdays: Weekdays = _setting((), "Days to ask on, like mon, tue; empty: every day.")
    time_zone: Annotated[str, AfterValidator(_zone)] = _setting(
        "UTC", "For people who have set none, for holidays, and for times on the page."
    )
    holidays: Days = _setting((), "Days on which nobody is asked, like 2026-12-25.")
    per_day: Annotated[int, Field(ge=0)] = _setting(2, "Asks of one person in 24 hours.")
    per_week: Annotated[int, Field(ge=0)] = _setting(
        5, "Asks in seven days, for people without a capacity of their own."
    )
    rest_hours: NotNegative = _setting(4.0, "Leave people alone for so long after any ask.")
    escalate_hours: NotNegative = _setting(24.0, "Ask more people after so much silence; 0: never.")
    escalations: Annotated[int, Field(ge=0)] = _setting(1, "How often to do so for one question.")
    escalate_people: Annotated[int, Field(ge=0)] = _setting(
        1, "How many people more each time asks."
    )
    escalate_groups: Texts = _setting(
        (), "Groups that may be asked then, besides groups; * for everybody."
    )
    fallback: bool = _setting(
        True, "If the rules leave none of the best, ask who was asked least recently."
    )
    candidates: Annotated[int, Field(ge=1)] = _setting(
        20, "How many of the best are looked at, and kept for the report."
    )
    declared_bonus: float = _setting(1.0, "Log-odds for people who declared a tag of the question.")
    spread: NotNegative = _setting(0.5, "Log-odds lost when the asks of a week double.")
    stale_hours: Positive = _setting(48.0, "Do not route questions that arrive later than this.")
    expire_days: Positive = _setting(14.0, "When a suggestion without an answer is closed.")

    @model_validator(mode="before")
    @classmethod
    def _old_name(cls, values: Any) -> Any:
        if isinstance(values, dict) and "shadow" in values:
            text = str(values["shadow"]).lower()
            if text not in ("true", "false", "1", "0", "yes", "no"):
                raise ValueError("policy.shadow is true or false")
            warnings.warn("policy.shadow is policy.mode now", DeprecationWarning, stacklevel=2)
            mode = "shadow" if text in ("true", "1", "yes") else "automatic"
            values = {k: v for k, v in values.items() if k != "shadow"} | {"mode": mode}
        return values

    def rules(self) -> Policy:
        """Return the policy that these settings describe."""
        names = (
            "groups", "least_answers", "inactive_days", "hours", "weekdays", "time_zone",
            "holidays", "per_day", "per_week", "rest_hours", "fallback", "declared_bonus", "spread",
        )  # fmt: skip
        return Policy(considered=self.candidates, **{name: getattr(self, name) for name in names})


class Retraining(Section):
    """When to train again."""

    every_days: NotNegative = _setting(0.0, "Retrain by itself so often; 0: only on request.")
    least_questions: int = _setting(
        50, "Judge on at least this many answered questions since the last training."
    )
    most_questions: int = _setting(500, "Judge on at most this many, the last ones.")


class Hooks(Section):
    """What comes in from other sites."""

    discourse_secret: str = _setting("", "Secret of the webhook in Discourse.", secret=True)
    discourse_instance: Url = _setting("", "Its address, like https://forum.example.org; checked.")
    discourse_categories: Texts = _setting((), "Ids of the categories to read; empty: all.")
    discourse_wait_seconds: NotNegative = _setting(
        30.0, "How long to wait for the other half of a new topic (its tags or its text)."
    )
    discourse_post_offset: int = _setting(
        10**9, "Added to numbers of posts, as the tutorial's import does; 0 if yours did not."
    )
    generic_secrets: Texts = _setting((), "whsec_… keys of signed events.", secret=True)
    slack_secret: str = _setting("", "Signing secret of the Slack app.", secret=True)
    github_secret: str = _setting("", "Secret of the webhook in GitHub.", secret=True)
    github_repositories: Texts = _setting((), "Repositories to read, like owner/name; empty: all.")


class Delivery(Section):
    """What goes out."""

    adapters: Adapters = _setting((), "Which of webhook, discourse, slack and github to use.")
    allow_private: Texts = _setting((), "Hosts that may have private addresses.")
    timeout_seconds: Positive = _setting(10.0, "For one attempt.")
    webhook_url: Url = _setting("", "Where signed webhooks go.")
    webhook_secrets: Texts = _setting(
        (), "whsec_… keys to sign with; two while rotating.", secret=True
    )
    discourse_url: Url = _setting("", "Address of the forum.")
    discourse_key: str = _setting("", "API key.", secret=True)
    discourse_user: str = _setting("system", "Who sends.")
    discourse_how: Literal["message", "assign"] = _setting(
        "message", "message (to the person) or assign (the topic)."
    )
    slack_url: Url = _setting("", "Incoming webhook of the channel of moderators.", secret=True)
    github_token: str = _setting("", "Token with access to issues and discussions.", secret=True)
    github_url: Url = _setting("https://api.github.com", "Address of GitHub's API.")
    github_how: Literal["comment", "assign"] = _setting(
        "comment", "comment (naming the people) or assign (the issue; discussions get a comment)."
    )

    @model_validator(mode="after")
    def _complete(self) -> Delivery:
        needed = {
            "webhook": ("webhook_url", "webhook_secrets"),
            "discourse": ("discourse_url", "discourse_key"), "slack": ("slack_url",),
            "github": ("github_token",),
        }  # fmt: skip
        for adapter in self.adapters:
            for name in needed[adapter]:
                if not getattr(self, name):
                    raise ValueError(f"deliver.{name} is needed for the adapter {adapter}")
        return self


class Logs(Section):
    """What it writes to standard error: one JSON object a line, no personal data."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "debug, info, warning or error."
    )
    requests: bool = _setting(True, "One line for each request.")


@dataclass(frozen=True)
class Item:
    """A setting as documentation and pages show it."""

    name: str
    help: str
    secret: bool
    default: Any


class Settings(BaseSettings):
    """All settings, section by section.

    Examples
    --------
    >>> Settings.read().changed("policy", {"people": 3}, "example").policy.people
    3
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="_", env_nested_max_split=1, enable_decoding=False,
        frozen=True, extra="forbid",
    )  # fmt: skip

    server: Server = Server()
    store: Storage = Storage()
    limits: Limits = Limits()
    policy: Rules = Rules()
    retrain: Retraining = Retraining()
    hooks: Hooks = Hooks()
    deliver: Delivery = Delivery()
    log: Logs = Logs()

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: Any, init_settings: Any, env_settings: Any, dotenv_settings: Any,
        file_secret_settings: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """The environment counts more than the file, which is given to the constructor."""
        return env_settings, init_settings

    @classmethod
    def read(cls, file: str | os.PathLike[str] | None = None) -> Settings:
        """Return the settings of a TOML file and the environment."""
        given = {} if file is None else _toml(Path(file))
        for name, values in given.items():
            if name not in cls.model_fields:
                raise unknown_name(f"section in {file}", name, list(cls.model_fields))
            if not isinstance(values, dict):
                raise InputError(f"{file}: [{name}] is a section, not a value.")
        known = {f"{section}_{name}" for section, name in _names()}
        for name in os.environ:
            if name.startswith(PREFIX) and name[len(PREFIX) :].lower() not in known:
                full = [f"{PREFIX}{entry}".upper() for entry in sorted(known)]
                raise unknown_name("setting in the environment", name, full)
        try:
            return cls(**given)
        except ValidationError as error:
            raise _sentence(error, "settings" if file is None else str(file)) from None

    def changed(self, section: str, values: Mapping[str, Any], source: str) -> Settings:
        """Return the settings with other values in a section."""
        old = getattr(self, section)
        try:
            new = type(old).model_validate({**old.model_dump(), **values})
        except ValidationError as error:
            raise _sentence(error, source, section) from None
        return self.model_copy(update={section: new})

    def shown(self) -> dict[str, dict[str, Any]]:
        """Return plain values, with secrets hidden."""
        result: dict[str, dict[str, Any]] = {}
        for section, item, value in self.items():
            plain = list(value) if isinstance(value, tuple) else value
            hidden = item.secret and value
            result.setdefault(section, {})[item.name] = "(set)" if hidden else plain
        return result

    def items(self) -> Iterator[tuple[str, Item, Any]]:
        """Yield section, description and value of every setting."""
        for section in type(self).model_fields:
            held = getattr(self, section)
            for name, about in type(held).model_fields.items():
                secret = bool(about.json_schema_extra)
                item = Item(name, about.description or "", secret, about.default)
                yield section, item, getattr(held, name)


def _names() -> Iterator[tuple[str, str]]:
    yield "policy", "shadow"  # until the next release
    for section, about in Settings.model_fields.items():
        kind: Any = about.annotation
        for name in kind.model_fields:
            yield section, name


def _sentence(error: ValidationError, source: str, section: str = "") -> InputError:
    """Return one sentence about the first thing wrong."""
    first = error.errors()[0]
    place = [section, *map(str, first["loc"])] if section else [str(p) for p in first["loc"]]
    if first["type"] == "extra_forbidden":
        held: Any = Settings.model_fields[place[0]].annotation
        return unknown_name(
            f"setting in {source}, [{place[0]}]", place[-1], list(held.model_fields)
        )
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    name = ".".join(part for part in place if not part.isdigit())
    variable = f"{PREFIX}{'_'.join(place[:2])}".upper()
    where = variable if variable in os.environ else f"{source}: {name}"
    held = Settings.model_fields[place[0]].annotation if place[0] in Settings.model_fields else None
    about = held.model_fields.get(place[1]) if held is not None and len(place) > 1 else None
    plain = about is not None and not about.json_schema_extra and "not '" not in said
    value = f", not {first['input']!r}" if plain else ""
    return InputError(f"{where}: {said[:1].lower()}{said[1:]}{value}.")


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not TOML: {error}.") from error
