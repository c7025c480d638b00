"""What hooks bring and what goes out, and how JSON of strangers is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from typing import Any, Protocol

from atpgraph.errors import InputError
from atpgraph_qa.service.store.events import Arrival
from atpgraph_qa.service.store.outbox import Message


@dataclass(frozen=True)
class TopicPart:
    """One part of a new question: a site may send title and tags apart from the text."""

    question: int
    at_ms: int
    asker: int
    values: Mapping[str, Any]  # title, tags; or title, body
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What somebody decided in another tool."""

    suggestion: int
    verdict: str
    who: str


@dataclass(frozen=True)
class Incoming:
    """What a message says.

    Attributes
    ----------
    events : tuple of Arrival
    topic_parts : tuple of TopicPart
    names : mapping
        Handle and groups (None if the message does not tell) of users.
    verdicts : tuple of Verdict
    forget : tuple of int
        Users who left the site and want to be forgotten.
    once : str
        What tells a repetition of this request, which would have an effect; empty if it has none.
    once_for_good : bool
        Whether to remember that for ever, since the signature does not age.
    """

    events: tuple[Arrival, ...] = ()
    topic_parts: tuple[TopicPart, ...] = ()
    names: Mapping[int, tuple[str, tuple[str, ...] | None]] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    forget: tuple[int, ...] = ()
    once: str = ""
    once_for_good: bool = False


@dataclass(frozen=True)
class Call:
    """An HTTP request to make."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


class Adapter(Protocol):
    """A site or tool: what comes in from it and what goes out to it.

    ``parse`` checks a signature over the raw body; ``deliver`` returns the request that brings a
    suggestion there.
    """

    repeatable: bool  # whether the receiver knows a repetition and ignores it

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming: ...

    def deliver(self, message: Message, now_ms: int) -> Call: ...


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("The body is not JSON.") from None
    if not isinstance(content, dict):
        raise InputError("The body is not a JSON object.")
    return content


def read_inner(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object within an object."""
    inner = content.get(name)
    if not isinstance(inner, dict):
        raise InputError(f"The body has no {name}.")
    return inner


def read_id(value: object, name: str, least: int = 0) -> int:
    """Return a number that identifies something."""
    if type(value) is not int or not least <= value < 2**53:
        raise InputError(f"{name} is not an id.")
    return value


def read_text(value: object) -> str:
    """Return a text, empty if it is none."""
    return value.replace("\0", "")[:100_000] if isinstance(value, str) else ""


def read_names(value: object) -> list[str]:
    """Return names of tags, which sites send as texts or as objects with a name."""
    entries = value if isinstance(value, list) else []
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in entries]
    return [read_text(name)[:100] for name in names if isinstance(name, str) and name][:30]


def read_time(value: object, now_ms: int) -> int:
    """Return a moment in milliseconds; now if there is none."""
    if not isinstance(value, str):
        return now_ms
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError):
        return now_ms


def plain_markdown(text: str) -> str:
    r"""Return text of strangers as Markdown that shows it as it is: no markup, link or mention.

    Examples
    --------
    >>> print(plain_markdown("[badge](https://evil.example) *now*, @all"))
    \[badge\]\(https: //evil.example\) \*now\*, @ all
    """
    text = re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", " ".join(text.split()))
    return text.replace("://", ": //").replace("@", "@ ").replace("www.", "www. ")


def plain_text(html: str) -> str:
    """Return the text of HTML, for people to read.

    Examples
    --------
    >>> plain_text("<p>In the <b>greenhouse</b> &amp; out.</p>")
    'In the greenhouse & out.'
    """
    without = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.S | re.I)
    lines = re.sub(r"<(br|/p|/li|/div|/h\d)\b[^>]*>", "\n", without, flags=re.I)
    return re.sub(r"[ \t]+", " ", unescape(re.sub(r"<[^>]+>", "", lines))).strip()


def letter(data: dict[str, Any], person: dict[str, Any]) -> str:
    """Return the Markdown message that asks somebody."""
    question = data["question"]
    reasons = [plain_markdown(r["text"]) for r in person["reasons"] if r["kind"] != "level"]
    parts = [f"You may be able to answer this question: **{plain_markdown(question['title'])}**"]
    if question.get("url"):
        parts.append(question["url"])
    if reasons:
        parts.append("Why you:\n\n" + "\n".join(f"- {text}" for text in reasons))
    if person.get("opt_out"):
        stop = f"[Do not ask me any more]({person['opt_out']})"
    else:
        stop = "If you do not want to be asked, tell a moderator."
    parts.append(f"No answer is needed if you have no time. {stop}")
    return "\n\n".join(parts)
