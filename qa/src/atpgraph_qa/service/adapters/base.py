"""The base of adapters: signatures, reading JSON of other sites, the message to a person."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape

import httpx2 as httpx
from jinja2 import Environment, PackageLoader

from atpgraph.errors import InputError
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.events import Arrival
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.schemas import printable
from atpgraph_qa.service.settings import Settings, webhook_key
from atpgraph_qa.service.tables import Row

TOLERANCE_S = 300
Names = Mapping[int, tuple[str, tuple[str, ...] | None]]  # handle and groups, None if not told


@dataclass(frozen=True)
class Incoming:
    """The content of a message from a site."""

    events: Sequence[Arrival] = ()
    topic_parts: Sequence[Arrival] = ()  # a site may send title and tags apart from the text
    names: Names = field(default_factory=dict)
    # Suggestion, decision in another tool, by whom, and the people that were shown.
    verdicts: Sequence[tuple[int, str, str, list[int]]] = ()
    forget: Sequence[int] = ()  # users who left the site
    once: str = ""  # digest of a request that must not take effect twice
    once_for_good: bool = False  # remember it forever, because the signature does not expire


class Adapter:
    """A site or tool: translates its messages into events, and suggestions into its messages."""

    repeatable = False  # whether the receiver recognizes and ignores a repeated message

    def __init__(self, settings: Settings) -> None:
        self.hooks, self.out = settings.hooks, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Check the signature over the raw body, then return the content."""
        raise NotImplementedError

    def deliver(self, message: str, payload: Row, now_ms: int) -> httpx.Request:
        """Return the request that delivers a message, whose id is the same in every attempt."""
        raise NotImplementedError


def verify_mac(secret: str, prefix: str, signed: bytes, given: str) -> None:
    """Check the HMAC-SHA256 in a header."""
    expected = prefix + hmac.digest(secret.encode(), signed, "sha256").hex()
    if not secret or not hmac.compare_digest(given.encode(), expected.encode()):
        raise ProblemError(401, "The signature is wrong.")


def check_time(stamp: str, now_ms: int) -> None:
    """Raise an error if a signed time is not within five minutes of now."""
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise ProblemError(401, "The message has no timestamp.")
    if abs(int(stamp) - now_ms // 1000) > TOLERANCE_S:
        raise ProblemError(401, "The timestamp is too far from now.")


def sign(secrets: Sequence[str], name: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a Standard Webhook, with a signature for each key."""
    moment, text = datetime.fromtimestamp(timestamp, UTC), body.decode()
    signed = [webhook_key(key).sign(name, moment, text) for key in secrets]
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signed),
    }


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now_ms: int) -> None:
    """Check a Standard Webhook; the library's check would use the machine's clock, not ours."""
    name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    check_time(stamp, now_ms)
    if not name or len(name) > 200:
        raise ProblemError(401, "The message has no webhook-id.")
    try:
        expected = sign(secrets, name, int(stamp), body)["webhook-signature"].split()
    except UnicodeDecodeError:
        raise ProblemError(401, "The body is not text.") from None
    given = headers.get("webhook-signature", "").split()[:10]
    pairs = [(theirs.encode(), ours.encode()) for theirs in given for ours in expected]
    if not any(hmac.compare_digest(theirs, ours) for theirs, ours in pairs):
        raise ProblemError(401, "The signature is wrong.")


class Given:
    """Read an untrusted JSON object: a missing value, or one of the wrong type, counts as empty."""

    def __init__(self, values: object, name: str = "") -> None:
        self.values: Row = values if isinstance(values, dict) else {}
        self.name = name

    def part(self, name: str) -> Given:
        """Return the object with this name."""
        return Given(self.values.get(name), f"{self.name}.{name}".strip("."))

    def parts(self, name: str) -> list[Given]:
        """Return the objects in the list with this name."""
        entries = self.values.get(name)
        return [Given(entry) for entry in entries] if isinstance(entries, list) else []

    def number(self, name: str, default: int = NOBODY) -> int:
        """Return a whole number."""
        value = self.values.get(name)
        fits = isinstance(value, int) and not isinstance(value, bool) and -1 <= value < 2**53
        return value if fits else default  # type: ignore[return-value]

    def id(self, name: str = "id") -> int:
        """Return a number, or raise an error if it is missing."""
        number = self.number(name)
        if number < 0:
            raise InputError(f"{self.name}.{name} is not an id.")
        return number

    def text(self, name: str) -> str:
        """Return a text that databases accept."""
        value = self.values.get(name)
        return printable(value)[:100_000] if isinstance(value, str) else ""

    def names(self, name: str) -> tuple[str, ...]:
        """Return names of tags or groups, which sites send as texts or as objects with a name."""
        value = self.values.get(name)
        entries = value if isinstance(value, list) else []
        given = (entry if isinstance(entry, dict) else {"name": entry} for entry in entries)
        return tuple(text for entry in given if (text := Given(entry).text("name")[:100]))[:30]

    def moment(self, name: str, default_ms: int) -> int:
        """Return a time in milliseconds."""
        try:
            return int(datetime.fromisoformat(self.text(name)).timestamp() * 1000)
        except (ValueError, OverflowError):
            return default_ms

    def digest(self, kind: str) -> str:
        """Return a digest of the kind and the content."""
        text = json.dumps(self.values, sort_keys=True)
        return hashlib.sha256(f"{kind} {text}".encode()).hexdigest()


def read_object(body: bytes) -> Given:
    """Return the JSON object of a body."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("The body is not JSON.") from None
    if not isinstance(content, dict):
        raise InputError("The body is not a JSON object.")
    return Given(content)


def plain_markdown(text: str) -> str:
    """Return Markdown that shows a text as it is: without markup, links or mentions."""
    text = re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", " ".join(text.split()))
    return text.replace("://", ": //").replace("@", "@ ").replace("www.", "www. ")


def plain_text(html: str) -> str:
    """Return the readable text of HTML, in linear time even if parts only look like tags."""
    within = r"<(script|style)\b(?:(?!<\1\b).)*?</\1>"
    without = re.sub(within, " ", html, flags=re.S | re.I)
    lines = re.sub(r"<(br|/p|/li|/div|/h\d)\b[^<>]*>", "\n", without, flags=re.I)
    return re.sub(r"[ \t]+", " ", unescape(re.sub(r"<[^<>]+>", "", lines))).strip()


def plain_slack(text: str) -> str:
    """Return text that Slack shows as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_MESSAGES = Environment(
    loader=PackageLoader("atpgraph_qa.service"), trim_blocks=True, lstrip_blocks=True
)
_MESSAGES.filters |= {"markdown": plain_markdown, "slack": plain_slack}


def message_text(template: str, **values: object) -> str:
    """Return a message."""
    return _MESSAGES.get_template(template).render(values).strip()
