"""Every setting of the service: one TOML file, overridden by environment variables.

A setting ``name`` of a section ``[policy]`` is ``ATP_SERVE_POLICY_NAME`` in the environment. Lists
are separated by commas there.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from atpgraph.errors import InputError
from atpgraph.util.registry import unknown_name

PREFIX = "ATP_SERVE_"
_HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")


def _setting(default: Any, text: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": text, "secret": secret}, repr=not secret)


@dataclass(frozen=True)
class Server:
    """Where it listens."""

    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8722, "Port; 0 takes a free one.")
    public_url: str = _setting("", "Its address as others see it, for links in messages.")
    behind_proxy: bool = _setting(
        False, "Trust X-Forwarded-For and X-Forwarded-Proto of trusted_proxies."
    )
    trusted_proxies: tuple[str, ...] = _setting(
        ("127.0.0.1", "::1"), "Addresses or networks of the proxies in front of the service."
    )
    cors_origins: tuple[str, ...] = _setting(
        (), "Origins whose scripts may call the API; none by default."
    )
    public_metrics: bool = _setting(False, "Serve /metrics without a token.")


@dataclass(frozen=True)
class Storage:
    """What it keeps, and where."""

    folder: str = _setting("atp-serve", "Work folder: SQLite database, snapshots, models.")
    database: str = _setting(
        "", "postgresql://… for PostgreSQL; empty for SQLite in the work folder.", secret=True
    )
    snapshot_events: int = _setting(5000, "Write a snapshot after this many events.")
    snapshot_minutes: float = _setting(60.0, "And after this long, if anything happened.")


@dataclass(frozen=True)
class Limits:
    """What one request or one token may do."""

    body_bytes: int = _setting(262_144, "Largest request.")
    per_second: float = _setting(50.0, "Requests a second of one token, on average.")
    burst: int = _setting(200, "Requests of one token at once.")
    failures_per_minute: float = _setting(30.0, "Wrong tokens a minute from one address.")
    session_hours: float = _setting(12.0, "How long a login on the page lasts.")
    header_seconds: float = _setting(10.0, "How long a request may take to send its headers.")
    body_seconds: float = _setting(20.0, "How long a request may take to send its body.")
    connections: int = _setting(1000, "Connections open at the same time.")
    queue_routes: int = _setting(50, "Routes under way or waiting before callers get a 503.")
    queue_events: int = _setting(20_000, "Events waiting to be applied before writers get a 503.")


@dataclass(frozen=True)
class Rules:
    """Who may be asked, and when: what keeps it quiet."""

    shadow: bool = _setting(True, "Log only: nothing is delivered, nobody is asked.")
    people: int = _setting(2, "At most this many people a question.")
    least_confidence: float = _setting(0.01, "Ask nobody if the best confidence is below.")
    groups: tuple[str, ...] = _setting((), "Ask only members of these groups; empty: everybody.")
    least_answers: int = _setting(3, "Ask only people who gave this many answers, or who declared.")
    inactive_days: float = _setting(180.0, "Never ask who has not answered for so long.")
    hours: str = _setting("", "Working hours like 09:00-17:00, in each person's time zone.")
    weekdays: tuple[str, ...] = _setting((), "Days to ask on, like mon, tue; empty: every day.")
    time_zone: str = _setting("UTC", "For people who have set none, and for holidays.")
    holidays: tuple[str, ...] = _setting((), "Days on which nobody is asked, like 2026-12-25.")
    per_day: int = _setting(2, "Asks of one person in 24 hours.")
    per_week: int = _setting(5, "Asks in seven days, for people without a capacity of their own.")
    rest_hours: float = _setting(4.0, "Leave people alone for so long after any ask.")
    escalate_hours: float = _setting(24.0, "Ask the next people after so much silence; 0: never.")
    escalations: int = _setting(1, "How often to do so for one question.")
    fallback: bool = _setting(
        True, "If the rules leave none of the best, ask who was asked least recently."
    )
    candidates: int = _setting(20, "How many of the best are looked at, and kept for the report.")
    declared_bonus: float = _setting(1.0, "Log-odds for people who declared a tag of the question.")
    spread: float = _setting(0.5, "Log-odds lost when the asks of a week double.")
    stale_hours: float = _setting(48.0, "Do not route questions that arrive later than this.")
    expire_days: float = _setting(14.0, "When a suggestion without an answer is closed.")


@dataclass(frozen=True)
class Retraining:
    """When to learn again."""

    every_days: float = _setting(0.0, "Retrain by itself so often; 0: only on request.")
    least_questions: int = _setting(
        50, "Judge on at least this many answered questions since the last training."
    )
    most_questions: int = _setting(500, "Judge on at most this many, the last ones.")


@dataclass(frozen=True)
class Hooks:
    """What comes in from other sites."""

    discourse_secret: str = _setting("", "Secret of the webhook in Discourse.", secret=True)
    discourse_instance: str = _setting("", "Its address, like https://forum.example.org; checked.")
    discourse_categories: tuple[str, ...] = _setting(
        (), "Ids of the categories to read; empty: all."
    )
    discourse_wait_seconds: float = _setting(
        30.0, "How long to wait for the other half of a new topic (its tags or its text)."
    )
    generic_secrets: tuple[str, ...] = _setting((), "whsec_… keys of signed events.", secret=True)
    slack_secret: str = _setting("", "Signing secret of the Slack app.", secret=True)


@dataclass(frozen=True)
class Delivery:
    """What goes out."""

    adapters: tuple[str, ...] = _setting((), "Which of webhook, discourse and slack to use.")
    allow_private: tuple[str, ...] = _setting((), "Hosts that may have private addresses.")
    timeout_seconds: float = _setting(10.0, "For one attempt.")
    webhook_url: str = _setting("", "Where signed webhooks go.")
    webhook_secrets: tuple[str, ...] = _setting(
        (), "whsec_… keys to sign with; two while rotating.", secret=True
    )
    discourse_url: str = _setting("", "Address of the forum.")
    discourse_key: str = _setting("", "API key.", secret=True)
    discourse_user: str = _setting("system", "Who sends.")
    discourse_how: str = _setting("message", "message (to the person) or assign (the topic).")
    slack_url: str = _setting("", "Incoming webhook of the channel of moderators.", secret=True)


@dataclass(frozen=True)
class Logs:
    """What it writes to standard error: one JSON object a line, no personal data."""

    level: str = _setting("info", "debug, info, warning or error.")
    requests: bool = _setting(True, "One line for each request.")


@dataclass(frozen=True)
class Settings:
    """All settings, section by section.

    Examples
    --------
    >>> given = Settings.read(environment={"ATP_SERVE_POLICY_PEOPLE": "3"})
    >>> given.policy.people, given.policy.shadow
    (3, True)
    """

    server: Server = field(default_factory=Server)
    store: Storage = field(default_factory=Storage)
    limits: Limits = field(default_factory=Limits)
    policy: Rules = field(default_factory=Rules)
    retrain: Retraining = field(default_factory=Retraining)
    hooks: Hooks = field(default_factory=Hooks)
    deliver: Delivery = field(default_factory=Delivery)
    log: Logs = field(default_factory=Logs)

    @classmethod
    def read(
        cls,
        file: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Settings:
        """From a TOML file and the environment; one sentence about the first thing wrong."""
        given = {} if file is None else _toml(Path(file))
        source = str(file) if file is not None else "settings"
        result = cls()
        for section in sorted(set(given) - {item.name for item in fields(cls)}):
            raise unknown_name(f"section in {source}", section, _sections())
        for item in fields(cls):
            values = given.get(item.name, {})
            if not isinstance(values, dict):
                raise InputError(f"{source}: [{item.name}] is a section, not a value.")
            result = result.changed(item.name, values, source)
        for name, text in sorted((os.environ if environment is None else environment).items()):
            if name.startswith(PREFIX):
                result = _from_environment(result, name, text)
        result.check()
        return result

    def changed(self, section: str, values: Mapping[str, Any], source: str) -> Settings:
        """With other values in a section; they are checked for kind."""
        old = getattr(self, section)
        known = {item.name: item for item in fields(old)}
        for name in values:
            if name not in known:
                raise unknown_name(f"setting in {source}, [{section}]", name, known)
        made = {
            name: _of_kind(known[name], value, f"{source}: {section}.{name}")
            for name, value in values.items()
        }
        return replace(self, **{section: replace(old, **made)})

    def check(self) -> None:
        """Refuse values that do not make sense, alone or together."""
        rules, out = self.policy, self.deliver
        if rules.hours:
            parse_hours(rules.hours)
        time_zone(rules.time_zone)
        for day in rules.holidays:
            parse_day(day)
        for day in rules.weekdays:
            if day not in WEEKDAYS:
                raise InputError(f"policy.weekdays: {day!r} is none of {', '.join(WEEKDAYS)}.")
        for name in ("people", "candidates"):
            if getattr(rules, name) < 1:
                raise InputError(f"policy.{name} is at least 1.")
        for name in ("least_confidence", "rest_hours", "escalate_hours", "spread", "per_day"):
            if getattr(rules, name) < 0:
                raise InputError(f"policy.{name} is a number from 0.")
        if not 0 <= self.server.port <= 65535:
            raise InputError(f"server.port is 0 to 65535, not {self.server.port}.")
        if self.limits.per_second <= 0 or self.limits.burst < 1 or self.limits.body_bytes < 1024:
            raise InputError("limits: per_second above 0, burst from 1, body_bytes from 1024.")
        for name in ("header_seconds", "body_seconds", "connections"):
            if getattr(self.limits, name) <= 0:
                raise InputError(f"limits.{name} is above 0.")
        if self.limits.queue_routes < 1 or self.limits.queue_events < 1:
            raise InputError("limits: queue_routes and queue_events from 1.")
        self._check_delivery(out)
        if self.log.level not in ("debug", "info", "warning", "error"):
            raise InputError(f"log.level is debug, info, warning or error, not {self.log.level!r}.")
        database = self.store.database
        if database and not database.startswith(("postgresql://", "postgres://", "sqlite:///")):
            raise InputError("store.database begins with postgresql:// or sqlite:///.")

    def _check_delivery(self, out: Delivery) -> None:
        needed = {
            "webhook": ("webhook_url", "webhook_secrets"),
            "discourse": ("discourse_url", "discourse_key"),
            "slack": ("slack_url",),
        }
        for adapter in out.adapters:
            if adapter not in needed:
                raise unknown_name("adapter", adapter, needed)
            for name in needed[adapter]:
                if not getattr(out, name):
                    raise InputError(f"deliver.{name} is needed for the adapter {adapter}.")
        if out.discourse_how not in ("message", "assign"):
            raise InputError("deliver.discourse_how is message or assign.")
        for name in ("webhook_url", "discourse_url", "slack_url"):
            url = getattr(out, name)
            if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc):
                raise InputError(f"deliver.{name} is an address that begins with https://.")
        if self.server.public_url and urlsplit(self.server.public_url).scheme not in (
            "http",
            "https",
        ):
            raise InputError("server.public_url begins with https:// or http://.")

    def shown(self) -> dict[str, dict[str, Any]]:
        """Plain values, with secrets hidden."""
        result: dict[str, dict[str, Any]] = {}
        for section, item, value in self.items():
            hidden = item.metadata["secret"] and value
            plain = list(value) if isinstance(value, tuple) else value
            result.setdefault(section, {})[item.name] = "(set)" if hidden else plain
        return result

    def items(self) -> Iterator[tuple[str, Field[Any], Any]]:
        """Section, field and value of every setting."""
        for section in fields(self):
            held = getattr(self, section.name)
            for item in fields(held):
                yield section.name, item, getattr(held, item.name)


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def parse_hours(text: str) -> tuple[int, int]:
    """Minutes of the day from and to, of ``09:00-17:00``; over midnight is fine.

    Examples
    --------
    >>> parse_hours("09:00-17:30")
    (540, 1050)
    """
    match = _HOURS.fullmatch(text)
    if match is None:
        raise InputError(f"Working hours are like 09:00-17:00, not {text!r}.")
    a, b, c, d = (int(part) for part in match.groups())
    start, end = 60 * a + b, 60 * c + d
    if start > 1440 or end > 1440 or start == end:
        raise InputError(f"Working hours are like 09:00-17:00, not {text!r}.")
    return start, end


def time_zone(name: str) -> ZoneInfo:
    """A time zone by name, like Europe/Vienna."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"There is no time zone {name!r}; use one like Europe/Vienna.") from None


def parse_day(text: str) -> date:
    """A day of ``2026-12-25``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"A day is like 2026-12-25, not {text!r}.") from None


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not TOML: {error}.") from error


def _sections() -> list[str]:
    return [item.name for item in fields(Settings)]


def _from_environment(settings: Settings, name: str, text: str) -> Settings:
    section, _, rest = name.removeprefix(PREFIX).lower().partition("_")
    if section not in _sections():
        raise unknown_name(f"section for {name}", section, _sections())
    known = {item.name: item for item in fields(getattr(settings, section))}
    if rest not in known:
        raise unknown_name(f"setting for {name}", rest, known)
    return settings.changed(section, {rest: _parsed(known[rest], text, name)}, name)


def _parsed(item: Field[Any], text: str, name: str) -> Any:
    """A value of the environment, of the kind the setting has."""
    kind: type = type(item.default)
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise InputError(f"{name} is true or false, not {text!r}.")
        return text.lower() in ("true", "1", "yes")
    if kind is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} is a number, not {text!r}.") from None


def _of_kind(item: Field[Any], value: Any, where: str) -> Any:
    kind: type = type(item.default)
    if kind is tuple:
        if not isinstance(value, list) or not all(isinstance(part, (str, int)) for part in value):
            raise InputError(f"{where} is a list of texts.")
        return tuple(str(part) for part in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        said = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
        raise InputError(f"{where} is {said}.")
    return value
