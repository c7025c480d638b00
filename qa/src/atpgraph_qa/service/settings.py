"""The settings of the service: one TOML file, overridden by environment variables.

A setting ``name`` of a section ``[policy]`` is ``ATP_SERVE_POLICY_NAME`` in the environment. Lists
are separated by commas there.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic.functional_validators import AfterValidator, BeforeValidator
from pydantic_settings import BaseSettings, SettingsConfigDict
from standardwebhooks.webhooks import Webhook

from atpgraph.errors import InputError
from atpgraph.util.checks import unknown_name
from atpgraph_qa.advisor.people import parse_day, parse_hours, time_zone
from atpgraph_qa.advisor.policies import Policy

PREFIX = "ATP_SERVE_"
Mode = Literal["shadow", "approve", "automatic"]


def _listed(value: Any) -> Any:
    """Split the text of an environment variable at commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) if isinstance(part, int) else part for part in value]


def checked(check: Callable[[str], Any]) -> AfterValidator:
    """Return a validator of texts that may be empty; `check` raises an error if one is wrong."""

    def validate(text: str) -> str:
        if text:
            check(text)
        return text

    return AfterValidator(validate)


def _starts(*beginnings: str) -> AfterValidator:
    def check(text: str) -> None:
        if not text.startswith(beginnings) or text in beginnings:
            raise ValueError(f"begins with {' or '.join(beginnings)}")

    return checked(check)


def webhook_key(text: str) -> Webhook:
    """Return a key of Standard Webhooks: base64 after ``whsec_``, or any other text as it is."""
    if text == "whsec_":  # 1.0.1 takes an empty key
        raise ValueError("what follows whsec_ is not base64")
    try:
        return Webhook(text if text.startswith("whsec_") else text.encode())
    except Exception:  # versions differ in which
        raise ValueError("what follows whsec_ is not base64") from None


SPLIT = BeforeValidator(_listed)
Texts = Annotated[tuple[str, ...], SPLIT]
Keys = Annotated[tuple[Annotated[str, checked(webhook_key)], ...], SPLIT]
Url = Annotated[str, _starts("https://", "http://")]
DatabaseUrl = Annotated[str, _starts("postgresql://", "postgres://", "sqlite:///")]
Hours = Annotated[str, checked(parse_hours)]
Zone = Annotated[str, AfterValidator(lambda name: str(time_zone(name)))]
# As the policy compares them: Python also takes 20261225.
DAY = AfterValidator(lambda day: day and str(parse_day(day)))
Days = Annotated[tuple[Annotated[str, DAY], ...], SPLIT]
Weekdays = Annotated[tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...], SPLIT]
Adapters = Annotated[tuple[Literal["webhook", "discourse", "slack", "github"], ...], SPLIT]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


def _is(default: Any, text: str, **more: Any) -> Any:
    return Field(default, description=text, **more)


def _secret(default: Any, text: str) -> Any:
    return _is(default, text, json_schema_extra={"secret": True}, repr=False)


class Section(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Server(Section):
    """Where the service listens."""

    host: str = _is("127.0.0.1", "Address to listen on.")
    port: int = _is(8722, "Port; 0 chooses a free one.", ge=0, le=65535)
    public_url: Url = _is("", "Public address of the service, for links in messages.")
    question_url: Url = _is("", "Address of questions without a link: https://example.org/q/{id}.")
    behind_proxy: bool = _is(False, "Trust X-Forwarded-For and -Proto from trusted_proxies.")
    trusted_proxies: Texts = _is(
        ("127.0.0.1", "::1"), "Addresses or networks of the proxies in front of the service."
    )
    cors_origins: Texts = _is((), "Origins whose scripts may call the API; none by default.")
    public_metrics: bool = _is(False, "Serve /metrics without a token.")
    readers: int = _is(0, "Number of ranking processes; 0: rank in the service.", ge=0, le=64)


class Storage(Section):
    """Where data is stored."""

    folder: str = _is("atp-serve", "Work folder: SQLite database, snapshots, models.")
    database: DatabaseUrl = _secret(
        "", "postgresql://… for PostgreSQL; empty for SQLite in the work folder."
    )
    snapshot_events: AtLeastOne = _is(5000, "Write a snapshot after this many events.")
    snapshot_minutes: Positive = _is(60.0, "Also after this many minutes, if there were events.")


class Limits(Section):
    """Limits for requests, tokens and queues."""

    body_bytes: int = _is(262_144, "Largest size of a request.", ge=1024)
    per_second: Positive = _is(50.0, "Average requests per second allowed per token.")
    burst: AtLeastOne = _is(200, "Requests that one token may send in a burst.")
    failures_per_minute: Positive = _is(30.0, "Wrong tokens allowed per minute from one address.")
    session_hours: Positive = _is(12.0, "How long a login on the page lasts.")
    header_seconds: Positive = _is(10.0, "How long a request may take to send its headers.")
    body_seconds: Positive = _is(20.0, "How long a request may take to send its body.")
    connections: AtLeastOne = _is(1000, "Maximum number of open connections.")
    queue_routes: AtLeastOne = _is(50, "Routes that may run or wait before callers get a 503.")
    queue_events: AtLeastOne = _is(20_000, "Events that may wait before writers get a 503.")


class Rules(Section):
    """Who may be asked, and when."""

    mode: Mode = _is(
        "shadow",
        "shadow: nobody is asked. approve: a moderator accepts first. automatic: people are asked "
        "at once. A mode set on the page applies until this setting changes.",
    )
    people: AtLeastOne = _is(2, "At most this many people per question.")
    least_confidence: NotNegative = _is(0.01, "Ask nobody if no confidence reaches this value.")
    groups: Texts = _is((), "Ask only members of these groups; empty: everybody.")
    least_answers: int = _is(3, "Ask only people who gave this many answers or declared topics.")
    inactive_days: Positive = _is(180.0, "Do not ask people who have not answered for this long.")
    hours: Hours = _is("", "Working hours like 09:00-17:00, in each person's time zone.")
    weekdays: Weekdays = _is((), "Days on which people are asked, like mon, tue; empty: every day.")
    time_zone: Zone = _is("UTC", "Time zone of holidays, the page, and people without their own.")
    holidays: Days = _is((), "Days on which nobody is asked, like 2026-12-25.")
    per_day: Count = _is(2, "Ask a person at most this often in 24 hours.")
    per_week: Count = _is(5, "At most this often in seven days, for people without a capacity.")
    rest_hours: NotNegative = _is(4.0, "Leave people alone for this long after an ask.")
    escalate_hours: NotNegative = _is(
        24.0, "Ask more people after this long without an answer; 0: never."
    )
    escalations: Count = _is(1, "How often to ask more people about one question.")
    escalate_people: Count = _is(1, "How many people to add each time.")
    escalate_groups: Texts = _is((), "Groups that may also be asked then; * means everybody.")
    fallback: bool = _is(True, "If none of them may be asked, ask who was asked least recently.")
    candidates: AtLeastOne = _is(20, "How many people to consider, and keep for the report.")
    declared_bonus: float = _is(1.0, "Log-odds added for people who declared a tag.")
    spread: NotNegative = _is(0.5, "Log-odds subtracted when a person's asks in a week double.")
    stale_hours: Positive = _is(48.0, "Do not route questions that arrive later than this.")
    expire_days: Positive = _is(14.0, "Close a suggestion without an answer after this long.")

    @model_validator(mode="before")
    @classmethod
    def _old_name(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "shadow" in values:
            text = str(values["shadow"]).lower()
            if text not in ("true", "false", "1", "0", "yes", "no"):
                raise ValueError("policy.shadow must be true or false")
            notice = "policy.shadow is now policy.mode; the old name will be removed in 0.4."
            warnings.warn(notice, DeprecationWarning, stacklevel=2)
            mode = "shadow" if text in ("true", "1", "yes") else "automatic"
            values = {k: v for k, v in values.items() if k != "shadow"} | {"mode": mode}
        return values

    def policy(self) -> Policy:
        """Return the policy that these settings describe."""
        shared = {field.name for field in fields(Policy)} & set(type(self).model_fields)
        given = {name: getattr(self, name) for name in shared}
        return Policy(considered=self.candidates, **given)


class Retraining(Section):
    """When to train again."""

    every_days: NotNegative = _is(0.0, "Retrain regularly after this long; 0: only on request.")
    least_questions: int = _is(50, "Evaluate on at least this many questions asked since training.")
    most_questions: int = _is(500, "Evaluate on at most this many of the newest questions.")


class Hooks(Section):
    """Incoming webhooks."""

    discourse_secret: str = _secret("", "Secret of the webhook in Discourse.")
    discourse_instance: Url = _is("", "Address of the forum; webhooks of others are rejected.")
    discourse_categories: Texts = _is((), "Ids of the categories to read; empty: all.")
    discourse_wait_seconds: NotNegative = _is(
        30.0, "How long to wait for the other part of a new topic (its tags or its text)."
    )
    discourse_post_offset: int = _is(
        10**9, "Offset added to post ids, as in the import of the tutorial; 0 for none."
    )
    generic_secrets: Keys = _secret((), "whsec_… keys of signed events.")
    slack_secret: str = _secret("", "Signing secret of the Slack app.")
    github_secret: str = _secret("", "Secret of the webhook in GitHub.")
    github_repositories: Texts = _is((), "Repositories to read, like owner/name; empty: all.")


class Delivery(Section):
    """Outgoing messages."""

    adapters: Adapters = _is((), "Adapters to use: webhook, discourse, slack, github.")
    allow_private: Texts = _is((), "Hosts that may have a private address.")
    timeout_seconds: Positive = _is(10.0, "Timeout of one attempt.")
    webhook_url: Url = _is("", "Address to send signed webhooks to.")
    webhook_secrets: Keys = _secret((), "whsec_… keys to sign with; two during a rotation.")
    discourse_url: Url = _is("", "Address of the forum.")
    discourse_key: str = _secret("", "API key.")
    discourse_user: str = _is("system", "User who sends the messages.")
    discourse_how: Literal["message", "assign"] = _is(
        "message", "message (to the person) or assign (the topic)."
    )
    slack_url: Url = _secret("", "Incoming webhook of the moderators' channel.")
    github_token: str = _secret("", "Token with access to issues and discussions.")
    github_url: Url = _is("https://api.github.com", "Address of GitHub's API.")
    github_how: Literal["comment", "assign"] = _is(
        "comment", "comment (naming the people) or assign (the issue; discussions get a comment)."
    )

    @model_validator(mode="after")
    def _complete(self) -> Delivery:
        needed = {
            "webhook": ("webhook_url", "webhook_secrets"), "slack": ("slack_url",),
            "discourse": ("discourse_url", "discourse_key"), "github": ("github_token",),
        }  # fmt: skip
        for adapter in self.adapters:
            for name in needed[adapter]:
                if not getattr(self, name):
                    raise ValueError(f"{name} is needed for the adapter {adapter}")
        return self


class Logs(Section):
    """The log on standard error: one JSON object per line, without personal data."""

    level: Literal["debug", "info", "warning", "error"] = _is(
        "info", "debug, info, warning or error."
    )
    requests: bool = _is(True, "Log one line for each request.")


class Settings(BaseSettings):
    """All settings, section by section."""

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
        cls, settings_cls: Any, init_settings: Any, env_settings: Any, *_: Any, **__: Any
    ) -> tuple[Any, ...]:
        """Rank the environment above the file, which is given to the constructor."""
        return env_settings, init_settings

    @classmethod
    def read(cls, file: str | os.PathLike[str] | None = None) -> Settings:
        """Return the settings of a TOML file and the environment."""
        try:
            given = {} if file is None else tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"Cannot read {file}: {error.strerror}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{file} is not TOML: {error}.") from error
        for name, values in given.items():
            if name not in cls.model_fields:
                raise unknown_name(f"section in {file}", name, list(cls.model_fields))
            if not isinstance(values, dict):
                raise InputError(f"{file}: [{name}] is a section, not a value.")
        default = cls.model_construct()
        known = {f"{PREFIX}{section}_{name}".upper() for section, name, *_ in default.items()}
        known.add(f"{PREFIX}POLICY_SHADOW")  # until the next release
        for name in os.environ:
            if name.startswith(PREFIX) and name.upper() not in known:
                raise unknown_name("setting in the environment", name, sorted(known))
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

    def items(self) -> Iterator[tuple[str, str, FieldInfo, Any]]:
        """Yield section, name, declaration and value of every setting, with secrets hidden."""
        for section, values in self:
            for name, about in type(values).model_fields.items():
                value = getattr(values, name)
                yield section, name, about, "(set)" if value and is_secret(about) else value

    def shown(self) -> dict[str, dict[str, Any]]:
        """Return plain values, with secrets hidden."""
        result: dict[str, dict[str, Any]] = {}
        for section, name, _, value in self.items():
            result.setdefault(section, {})[name] = value
        return result


def as_text(value: object) -> str:
    """Return the value of a setting as it would be typed; – for an empty one."""
    if isinstance(value, bool):
        return str(value).lower()
    return (", ".join(value) if isinstance(value, tuple) else str(value)) or "–"


def is_secret(about: FieldInfo) -> bool:
    """Return whether the value of a setting must not be shown."""
    return bool(about.json_schema_extra)


def _sentence(error: ValidationError, source: str, section: str = "") -> InputError:
    """Return the first error as one sentence."""
    first = error.errors()[0]
    place = [part for part in (section, *map(str, first["loc"])) if part and not part.isdigit()]
    kind: Any = Settings.model_fields[place[0]].annotation
    known: dict[str, FieldInfo] = kind.model_fields
    if first["type"] == "extra_forbidden":
        return unknown_name(f"setting in {source}, [{place[0]}]", place[-1], list(known))
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    variable = f"{PREFIX}{'_'.join(place[:2])}".upper()
    where = variable if variable in os.environ else f"{source}: {'.'.join(place)}"
    about = known.get(place[-1])
    shown = about is not None and not is_secret(about) and "not '" not in said
    value = f", not {first['input']!r}" if shown else ""
    return InputError(f"{where}: {said[:1].lower()}{said[1:]}{value}.")
