"""Webhooks of a Discourse forum; private messages or assignments through its API."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from atpgraph.errors import InputError
from atpgraph_qa.service.out import signing
from atpgraph_qa.service.out.payloads import (
    Call,
    Incoming,
    TopicPart,
    letter,
    read_id,
    read_inner,
    read_names,
    read_object,
    read_text,
    read_time,
)
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.events import (
    Arrival,
    Closed,
    Edited,
    Reopened,
    TopicChange,
    name_of,
)
from atpgraph_qa.service.store.outbox import Message
from atpgraph_qa.timeline.events import Accepted, Answered, Voted

_STATUS = re.compile(r"topic_(closed_|archived_|visible_)?status_updated")


class Discourse:
    """A Discourse forum.

    A question has the number of its topic; an answer that of its post plus a fixed offset, which
    the import of older topics adds as well.
    """

    repeatable = False

    def __init__(self, settings: Settings) -> None:
        self._in, self._out = settings.hooks, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Read topics, posts, likes, solutions and users; ignore anything else."""
        signing.verify_digest(
            self._in.discourse_secret, headers.get("x-discourse-event-signature", ""), body
        )
        instance = headers.get("x-discourse-instance", "").rstrip("/")
        if self._in.discourse_instance and instance != self._in.discourse_instance.rstrip("/"):
            raise signing.ForgedError("The webhook comes from another forum.")
        event = headers.get("x-discourse-event", "")
        if _STATUS.fullmatch(event):
            event = "topic_status_updated"
        reader = {
            "topic_created": self._topic,
            "topic_edited": self._edited,
            "topic_destroyed": self._gone,
            "topic_recovered": self._recovered,
            "topic_status_updated": self._status,
            "post_created": self._post,
            "post_edited": self._post_edited,
            "accepted_solution": self._solved,
            "post_liked": self._liked,
            "user_destroyed": self._destroyed,
            "user_updated": self._user,
        }.get(event)
        return Incoming() if reader is None else reader(read_object(body), now_ms)

    def _origin(self, topic: int) -> dict[str, str]:
        base = (self._in.discourse_instance or self._out.discourse_url).rstrip("/")
        return {"source": "discourse", **({"url": f"{base}/t/{topic}"} if base else {})}

    def _topic(self, content: dict[str, Any], now_ms: int) -> Incoming:
        topic = read_inner(content, "topic")
        if topic.get("archetype", "regular") != "regular" or not self._wanted(topic):
            return Incoming()
        by = topic.get("created_by") if isinstance(topic.get("created_by"), dict) else {}
        asker = read_id(topic.get("user_id", (by or {}).get("id", -1)), "topic.user_id", -1)
        values = {"title": read_text(topic.get("title")), "tags": read_names(topic.get("tags"))}
        number = read_id(topic.get("id"), "topic.id")
        at_ms = read_time(topic.get("created_at"), now_ms)
        part = TopicPart(number, at_ms, asker, values, self._origin(number))
        name = read_text((by or {}).get("username"))
        return Incoming(topic_parts=(part,), names={asker: (name, None)} if name else {})

    def _changed(self, content: dict[str, Any], event: TopicChange) -> Incoming:
        # No time is signed: an old message must not bring back an old state.
        kind = type(event).__name__.encode()
        seen = hashlib.sha256(kind + json.dumps(content, sort_keys=True).encode()).hexdigest()
        arrival = Arrival(name_of(event, seen[:32]), event)
        return Incoming(events=(arrival,), once=seen, once_for_good=True)

    def _edited(self, content: dict[str, Any], now_ms: int) -> Incoming:
        topic = read_inner(content, "topic")
        if topic.get("archetype", "regular") != "regular" or not self._wanted(topic):
            return Incoming()
        number, tags = read_id(topic.get("id"), "topic.id"), read_names(topic.get("tags"))
        title = read_text(topic.get("title")) or None
        return self._changed(content, Edited(number, now_ms, title, None, tuple(tags)))

    def _post_edited(self, content: dict[str, Any], now_ms: int) -> Incoming:
        post = read_inner(content, "post")
        if post.get("post_number") != 1 or not self._wanted(post):
            return Incoming()
        text = read_text(post.get("cooked") or post.get("raw"))
        title = read_text(post.get("topic_title")) or None
        number = read_id(post.get("topic_id"), "post.topic_id")
        return self._changed(content, Edited(number, now_ms, title, text))

    def _gone(self, content: dict[str, Any], now_ms: int) -> Incoming:
        number = read_id(read_inner(content, "topic").get("id"), "topic.id")
        return self._changed(content, Closed(number, now_ms, deleted=True))

    def _recovered(self, content: dict[str, Any], now_ms: int) -> Incoming:
        number = read_id(read_inner(content, "topic").get("id"), "topic.id")
        return self._changed(content, Reopened(number, now_ms))

    def _status(self, content: dict[str, Any], now_ms: int) -> Incoming:
        topic = read_inner(content, "topic")
        number = read_id(topic.get("id"), "topic.id")
        shut = topic.get("closed") or topic.get("archived") or topic.get("visible") is False
        event = Closed(number, now_ms) if shut else Reopened(number, now_ms)
        return self._changed(content, event)

    def _post(self, content: dict[str, Any], now_ms: int) -> Incoming:
        post = read_inner(content, "post")
        regular = post.get("topic_archetype", "regular") == "regular"
        if not regular or post.get("post_type", 1) != 1 or not self._wanted(post):
            return Incoming()  # a private message, a small action or a whisper
        number, topic = post.get("post_number"), read_id(post.get("topic_id"), "post.topic_id")
        user = read_id(post.get("user_id", -1), "post.user_id", -1)
        at_ms = read_time(post.get("created_at"), now_ms)
        name = read_text(post.get("username"))
        names = {user: (name, _groups(post))} if name and user >= 0 else {}
        if number == 1:
            values = {"body": read_text(post.get("cooked") or post.get("raw"))}
            if post.get("topic_title"):
                values["title"] = read_text(post["topic_title"])
            part = TopicPart(topic, at_ms, user, values, self._origin(topic))
            return Incoming(topic_parts=(part,), names=names)
        answer = Answered(self._answer(post.get("id"), "post.id"), topic, user, at_ms)
        return Incoming(events=(Arrival(name_of(answer), answer),), names=names)

    def _answer(self, value: object, name: str) -> int:
        return read_id(value, name) + self._in.discourse_post_offset

    def _solved(self, content: dict[str, Any], now_ms: int) -> Incoming:
        post = read_inner(content, "solved")
        question = read_id(post.get("topic_id"), "solved.topic_id")
        event = Accepted(question, self._answer(post.get("id"), "solved.id"), now_ms)
        return Incoming(events=(Arrival(name_of(event, "solved"), event),))

    def _liked(self, content: dict[str, Any], now_ms: int) -> Incoming:
        like = read_inner(content, "like")
        post, user = like.get("post"), like.get("user")
        if not isinstance(post, dict) or not isinstance(user, dict) or post.get("post_number") == 1:
            return Incoming()
        answer = self._answer(post.get("id"), "like.post.id")
        # Who liked is not kept: only that a second message is about the same like.
        who = str(user.get("id")).encode()
        mark = hmac.digest(self._in.discourse_secret.encode(), who, "sha256").hex()[:32]
        event = Voted(answer, 1, now_ms)
        return Incoming(events=(Arrival(name_of(event, f"like:{answer}:{mark}"), event),))

    def _destroyed(self, content: dict[str, Any], now_ms: int) -> Incoming:
        return Incoming(forget=(read_id(read_inner(content, "user").get("id"), "user.id"),))

    def _user(self, content: dict[str, Any], now_ms: int) -> Incoming:
        user = read_inner(content, "user")
        number, name = read_id(user.get("id"), "user.id"), read_text(user.get("username"))
        seen = hashlib.sha256(b"user" + json.dumps(user, sort_keys=True).encode()).hexdigest()
        names = {number: (name, _groups(user))} if name else {}
        return Incoming(names=names, once=seen, once_for_good=True)

    def _wanted(self, post: dict[str, Any]) -> bool:
        wanted = self._in.discourse_categories
        return not wanted or str(post.get("category_id")) in wanted

    def deliver(self, message: Message, now_ms: int) -> Call:
        """Return a private message to the one person of the message, or an assignment."""
        data, out = message.payload["data"], self._out
        person = data["people"][0]
        if not person.get("handle"):
            raise InputError("The person has no handle; the forum sends it with their next post.")
        headers = {
            "api-key": out.discourse_key,
            "api-username": out.discourse_user,
            "content-type": "application/json",
        }
        base, topic = out.discourse_url.rstrip("/"), data["question"]["id"]
        if out.discourse_how == "assign":
            target = {"target_id": topic, "target_type": "Topic", "username": person["handle"]}
            return Call("PUT", f"{base}/assign/assign.json", headers, json.dumps(target).encode())
        asked = {**data, "question": {**data["question"], "url": f"{base}/t/{topic}"}}
        content = {
            "title": f"Could you answer this? {data['question']['title']}"[:200],
            "raw": letter(asked, person),
            "target_recipients": person["handle"],
            "archetype": "private_message",
        }
        return Call("POST", f"{base}/posts.json", headers, json.dumps(content).encode())


def _groups(user: dict[str, Any]) -> tuple[str, ...] | None:
    if isinstance(user.get("groups"), list):
        return tuple(read_names(user["groups"]))
    primary = user.get("primary_group_name")
    return (primary,) if isinstance(primary, str) and primary else None
