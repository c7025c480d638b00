"""Adapters: each site or tool is two functions, what comes in and what goes out.

``parse(headers, body, now_ms)`` checks a signature over the raw body and gives an
:class:`Incoming`. ``deliver(message, now_ms)`` gives the :class:`Call` that brings a suggestion
there; sending it, and trying again, is :mod:`~atpgraph_qa.service.out.sender`'s work.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import parse_qs

from pydantic import ValidationError

from atpgraph.errors import InputError
from atpgraph.util.registry import Registry
from atpgraph_qa.service.out import signing
from atpgraph_qa.service.schemas import SIGNED
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.events import Arrival, name_of
from atpgraph_qa.service.store.outbox import Message
from atpgraph_qa.timeline.events import Accepted, Answered, Voted


@dataclass(frozen=True)
class TopicPart:
    """One half of a new question: a site may send its title and tags apart from its text."""

    question: int
    at_ms: int
    asker: int
    values: Mapping[str, Any]  # title, tags; or title, body


@dataclass(frozen=True)
class Verdict:
    """What somebody decided in another tool."""

    suggestion: int
    verdict: str


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
    """See the module."""

    repeatable: bool  # whether the receiver knows a repetition and ignores it

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming: ...

    def deliver(self, message: Message, now_ms: int) -> Call: ...


class Generic:
    """Signed JSON both ways, by the Standard Webhooks."""

    repeatable = True

    def __init__(self, settings: Settings) -> None:
        self._in, self._out = settings.hooks.generic_secrets, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """``{"type": "question.created", "data": {…}}``, data as the API takes it."""
        signing.verify(self._in, headers, body, now_ms // 1000)
        content = _object(body)
        kind, data = content.get("type"), content.get("data")
        if kind == "person.forgotten":
            person = data.get("id") if isinstance(data, dict) else None
            return Incoming(forget=(_number(person, "data.id"),))
        if not isinstance(kind, str) or kind not in SIGNED:
            raise InputError(f"type is one of {', '.join([*SIGNED, 'person.forgotten'])}.")
        try:
            made = SIGNED[kind].model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(f"data.{place}: {first['msg']}.") from None
        return Incoming(events=(made.arrival(),))

    def deliver(self, message: Message, now_ms: int) -> Call:
        """The payload, signed."""
        body = json.dumps(message.payload, separators=(",", ":")).encode()
        signed = signing.sign(self._out.webhook_secrets, message.id, now_ms // 1000, body)
        headers = {"content-type": "application/json", **signed}
        return Call("POST", self._out.webhook_url, headers, body)


class Discourse:
    """Webhooks of a Discourse forum; private messages or assignments through its API."""

    repeatable = False

    def __init__(self, settings: Settings) -> None:
        self._in, self._out = settings.hooks, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Topics, posts, likes, solutions and users; anything else is nothing to us."""
        signing.verify_discourse(self._in.discourse_secret, headers, body)
        instance = headers.get("x-discourse-instance", "").rstrip("/")
        if self._in.discourse_instance and instance != self._in.discourse_instance.rstrip("/"):
            raise signing.ForgedError("The webhook comes from another forum.")
        event = headers.get("x-discourse-event", "")
        reader = {
            "topic_created": self._topic,
            "post_created": self._post,
            "accepted_solution": self._solved,
            "post_liked": self._liked,
            "user_destroyed": self._destroyed,
            "user_updated": self._user,
        }.get(event)
        return Incoming() if reader is None else reader(_object(body), now_ms)

    def _topic(self, content: dict[str, Any], now_ms: int) -> Incoming:
        topic = _inner(content, "topic")
        if topic.get("archetype", "regular") != "regular" or not self._wanted(topic):
            return Incoming()
        by = topic.get("created_by") if isinstance(topic.get("created_by"), dict) else {}
        asker = _number(topic.get("user_id", (by or {}).get("id", -1)), "topic.user_id", -1)
        values = {"title": _text(topic.get("title")), "tags": _tags(topic.get("tags"))}
        half = TopicPart(
            _number(topic.get("id"), "topic.id"), _time(topic.get("created_at"), now_ms), asker,
            values,
        )  # fmt: skip
        name = _text((by or {}).get("username"))
        return Incoming(topic_parts=(half,), names={asker: (name, None)} if name else {})

    def _post(self, content: dict[str, Any], now_ms: int) -> Incoming:
        post = _inner(content, "post")
        regular = post.get("topic_archetype", "regular") == "regular"
        if not regular or post.get("post_type", 1) != 1 or not self._wanted(post):
            return Incoming()  # a private message, a small action or a whisper
        number, topic = post.get("post_number"), _number(post.get("topic_id"), "post.topic_id")
        user = _number(post.get("user_id", -1), "post.user_id", -1)
        at_ms = _time(post.get("created_at"), now_ms)
        name = _text(post.get("username"))
        names = {user: (name, _groups(post))} if name and user >= 0 else {}
        if number == 1:
            text = _text(post.get("cooked") or post.get("raw"))
            values = {"body": text}
            if post.get("topic_title"):
                values["title"] = _text(post["topic_title"])
            return Incoming(topic_parts=(TopicPart(topic, at_ms, user, values),), names=names)
        answer = Answered(_number(post.get("id"), "post.id"), topic, user, at_ms)
        return Incoming(events=(Arrival(name_of(answer), answer),), names=names)

    def _solved(self, content: dict[str, Any], now_ms: int) -> Incoming:
        post = _inner(content, "solved")
        question, answer = (_number(post.get(key), f"solved.{key}") for key in ("topic_id", "id"))
        event = Accepted(question, answer, now_ms)
        return Incoming(events=(Arrival(name_of(event, "solved"), event),))

    def _liked(self, content: dict[str, Any], now_ms: int) -> Incoming:
        like = _inner(content, "like")
        post, user = like.get("post"), like.get("user")
        if not isinstance(post, dict) or not isinstance(user, dict) or post.get("post_number") == 1:
            return Incoming()
        answer = _number(post.get("id"), "like.post.id")
        # Who liked is not kept: only that a second message is about the same like.
        who = str(user.get("id")).encode()
        mark = hmac.digest(self._in.discourse_secret.encode(), who, "sha256").hex()[:32]
        event = Voted(answer, 1, now_ms)
        return Incoming(events=(Arrival(name_of(event, f"like:{answer}:{mark}"), event),))

    def _destroyed(self, content: dict[str, Any], now_ms: int) -> Incoming:
        return Incoming(forget=(_number(_inner(content, "user").get("id"), "user.id"),))

    def _user(self, content: dict[str, Any], now_ms: int) -> Incoming:
        user = _inner(content, "user")
        number, name = _number(user.get("id"), "user.id"), _text(user.get("username"))
        # No time is signed, so an old message could bring back an old name or old groups.
        seen = hashlib.sha256(b"user_updated" + json.dumps(user, sort_keys=True).encode())
        names = {number: (name, _groups(user))} if name else {}
        return Incoming(names=names, once=seen.hexdigest(), once_for_good=True)

    def _wanted(self, post: dict[str, Any]) -> bool:
        wanted = self._in.discourse_categories
        return not wanted or str(post.get("category_id")) in wanted

    def deliver(self, message: Message, now_ms: int) -> Call:
        """A private message to the one person of the message, or the topic assigned to them."""
        data, out = message.payload["data"], self._out
        handle = data["people"][0].get("handle", "")
        if not handle:
            raise InputError("The person has no handle; the forum sends it with their next post.")
        headers = {
            "api-key": out.discourse_key,
            "api-username": out.discourse_user,
            "content-type": "application/json",
        }
        base, topic = out.discourse_url.rstrip("/"), data["question"]["id"]
        if out.discourse_how == "assign":
            target = {"target_id": topic, "target_type": "Topic", "username": handle}
            return Call("PUT", f"{base}/assign/assign.json", headers, json.dumps(target).encode())
        content = {
            "title": f"Could you answer this? {data['question']['title']}"[:200],
            "raw": _letter(data, f"{base}/t/{topic}"),
            "target_recipients": handle,
            "archetype": "private_message",
        }
        return Call("POST", f"{base}/posts.json", headers, json.dumps(content).encode())


class Slack:
    """A message to a channel, with buttons to accept and decline."""

    repeatable = False

    def __init__(self, settings: Settings) -> None:
        self._secret, self._url = settings.hooks.slack_secret, settings.deliver.slack_url

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """A press of a button."""
        signing.verify_slack(self._secret, headers, body, now_ms // 1000)
        fields = parse_qs(body.decode("utf-8", "replace"))
        content = _object(fields.get("payload", [""])[0].encode())
        actions = content.get("actions")
        if content.get("type") != "block_actions" or not isinstance(actions, list):
            return Incoming()
        verdicts = [
            Verdict(int(action["value"]), action["action_id"])
            for action in actions
            if isinstance(action, dict)
            and action.get("action_id") in ("accepted", "declined")
            and str(action.get("value", "")).isdigit()
        ]
        seen = hashlib.sha256(headers["x-slack-signature"].encode()).hexdigest()
        return Incoming(verdicts=tuple(verdicts), once=seen)

    def deliver(self, message: Message, now_ms: int) -> Call:
        """The question, the people with reasons, two buttons."""
        data = message.payload["data"]
        people = "\n".join(
            f"• *{_slack(p.get('handle') or 'user ' + str(p['user']))}* {p['confidence']:.0%}: "
            + _slack("; ".join(reason["text"] for reason in p["reasons"][:2]))
            for p in data["people"]
        )
        title = _slack(data["question"]["title"])
        text = f"Who could answer *{title}*?\n{people}"
        buttons = [
            {
                "type": "button",
                "action_id": verdict,
                "value": str(data["suggestion"]),
                "text": {"type": "plain_text", "text": label},
            }
            for verdict, label in (("accepted", "Ask them"), ("declined", "No"))
        ]
        blocks = [
            {"type": "section", "text": {"type": "mrkdwn", "text": text[:2900]}},
            {"type": "actions", "elements": buttons},
        ]
        body = json.dumps({"text": f"Who could answer {title}?", "blocks": blocks}).encode()
        return Call("POST", self._url, {"content-type": "application/json"}, body)


ADAPTERS: Registry[Callable[[Settings], Adapter]] = Registry(
    "adapter", {"webhook": Generic, "discourse": Discourse, "slack": Slack}
)


def _letter(data: dict[str, Any], link: str) -> str:
    person = data["people"][0]
    reasons = "\n".join(f"- {plain_markdown(reason['text'])}" for reason in person["reasons"])
    title = plain_markdown(data["question"]["title"])
    return (
        f"You may be able to answer this question: **{title}**\n\n{link}\n\n"
        f"Why you:\n\n{reasons}\n\n"
        "No answer is needed if you have no time. A moderator can see to it that you are not asked."
    )


def plain_markdown(text: str) -> str:
    """Return text of strangers as Markdown that shows it as it is: no markup, link or mention.

    Examples
    --------
    >>> print(plain_markdown("[badge](https://evil.example) *now*, @all"))
    \\[badge\\]\\(https: //evil.example\\) \\*now\\*, @ all
    """
    text = re.sub(
        r"://|\bwww\.", lambda found: found[0].replace("/", " /", 1), " ".join(text.split())
    )
    text = re.sub(r"([\\`*_{}\[\]()<>#+!|~&-])", r"\\\1", text)
    return text.replace("@", "@ ").replace("www.", "www. ")


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("The body is not JSON.") from None
    if not isinstance(content, dict):
        raise InputError("The body is not a JSON object.")
    return content


def _inner(content: dict[str, Any], name: str) -> dict[str, Any]:
    inner = content.get(name)
    if not isinstance(inner, dict):
        raise InputError(f"The body has no {name}.")
    return inner


def _number(value: object, name: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 2**53:
        raise InputError(f"{name} is not an id.")
    return value


def _text(value: object) -> str:
    return value.replace("\0", "")[:100_000] if isinstance(value, str) else ""


def _tags(value: object) -> list[str]:
    """Names of tags, which Discourse sends as texts or as objects with a name."""
    entries = value if isinstance(value, list) else []
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in entries]
    return [_text(name)[:100] for name in names if isinstance(name, str) and name][:30]


def _groups(user: dict[str, Any]) -> tuple[str, ...] | None:
    if isinstance(user.get("groups"), list):
        return tuple(_tags(user["groups"]))
    primary = user.get("primary_group_name")
    return (primary,) if isinstance(primary, str) and primary else None


def _time(value: object, now_ms: int) -> int:
    if not isinstance(value, str):
        return now_ms
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError):
        return now_ms
