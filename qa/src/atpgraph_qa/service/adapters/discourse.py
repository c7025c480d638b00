"""Webhooks of a Discourse forum; private messages or assignments through its API."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from atpgraph.errors import InputError
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.events import Arrival, Closed, Edited, Reopened, TopicChange
from atpgraph_qa.service.outbox import Message
from atpgraph_qa.timeline.events import Accepted, Answered, Voted

_STATUS = re.compile(r"topic_(closed_|archived_|visible_)?status_updated")


class _User(base.Part):
    model_config = ConfigDict(extra="allow")  # whatever differs tells messages apart

    id: base.MaybeId = NOBODY
    username: base.AnyText = ""
    groups: base.AnyNames | None = None
    primary_group_name: base.AnyText = ""

    def named(self, user: int) -> base.Names:
        """Return the name and groups of a user, if they are told."""
        primary = (self.primary_group_name,) if self.primary_group_name else None
        groups = primary if self.groups is None else self.groups
        return {user: (self.username, groups)} if self.username and user >= 0 else {}


class _Topic(_User):
    """A topic, and what posts share with it."""

    id: base.SiteId
    title: base.AnyText = ""
    tags: base.AnyNames = ()
    created_at: base.AnyMoment = None
    created_by: _User = _User()
    user_id: base.MaybeId = NOBODY
    archetype: str = "regular"
    category_id: int = 0
    closed: bool = False
    archived: bool = False
    visible: bool = True
    post_number: int = 0


class _Post(_Topic):
    topic_id: base.SiteId
    topic_title: base.AnyText = ""
    topic_archetype: str = "regular"
    post_type: int = 1
    cooked: base.AnyText = ""
    raw: base.AnyText = ""


class _Like(base.Part):
    post: _Topic
    user: _User


class Discourse(base.Adapter):
    """A Discourse forum.

    A question has the number of its topic; an answer that of its post plus a fixed offset, which
    the import of older topics adds as well.
    """

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read topics, posts, likes, solutions and users; ignore anything else."""
        given = headers.get("x-discourse-event-signature", "")
        base.verify_mac(self.hooks.discourse_secret, "sha256=", body, given)
        instance = headers.get("x-discourse-instance", "").rstrip("/")
        wanted = self.hooks.discourse_instance.rstrip("/")
        if wanted and instance != wanted:
            raise base.ForgedError("The webhook comes from another forum.")
        event = headers.get("x-discourse-event", "")
        if _STATUS.fullmatch(event):
            event = "topic_status_updated"
        readers: dict[str, tuple[str, Any, Callable[[Any, int], base.Incoming]]] = {
            "topic_created": ("topic", _Topic, self._topic),
            "topic_edited": ("topic", _Topic, self._topic_edited),
            "topic_destroyed": ("topic", _Topic, self._topic_gone),
            "topic_recovered": ("topic", _Topic, self._status),
            "topic_status_updated": ("topic", _Topic, self._status),
            "post_created": ("post", _Post, self._post),
            "post_edited": ("post", _Post, self._post_edited),
            "accepted_solution": ("solved", _Post, self._solved),
            "post_liked": ("like", _Like, self._liked),
            "user_destroyed": ("user", _User, self._user_gone),
            "user_updated": ("user", _User, self._user),
        }
        if event not in readers:
            return base.Incoming()
        name, model, read = readers[event]
        return read(base.read_part(model, base.read_object(body), name), now_ms)

    def _wanted(self, given: _Topic) -> bool:
        """Return whether it is public, and of a category to read."""
        kind = given.topic_archetype if isinstance(given, _Post) else given.archetype
        wanted = self.hooks.discourse_categories
        return kind == "regular" and (not wanted or str(given.category_id) in wanted)

    def _part(self, topic: int, at_ms: int, asker: int, **values: Any) -> base.TopicPart:
        forum = (self.hooks.discourse_instance or self.out.discourse_url).rstrip("/")
        url = {"url": f"{forum}/t/{topic}"} if forum else {}
        return base.TopicPart(topic, at_ms, asker, values, {"source": "discourse", **url})

    def _topic(self, topic: _Topic, now_ms: int) -> base.Incoming:
        if not self._wanted(topic):
            return base.Incoming()
        asker = topic.user_id if topic.user_id >= 0 else topic.created_by.id
        at_ms = topic.created_at or now_ms
        part = self._part(topic.id, at_ms, asker, title=topic.title, tags=topic.tags)
        return base.Incoming(topic_parts=[part], names=topic.created_by.named(asker))

    def _changed(self, given: BaseModel, event: TopicChange) -> base.Incoming:
        # No time is signed: an old message must not bring back an old state.
        seen = _digest(type(event).__name__, given)
        arrival = Arrival.of(event, seen[:32])
        return base.Incoming(events=[arrival], once=seen, once_for_good=True)

    def _topic_edited(self, topic: _Topic, now_ms: int) -> base.Incoming:
        if not self._wanted(topic):
            return base.Incoming()
        return self._changed(topic, Edited(topic.id, now_ms, topic.title or None, None, topic.tags))

    def _post_edited(self, post: _Post, now_ms: int) -> base.Incoming:
        if post.post_number != 1 or not self._wanted(post):
            return base.Incoming()
        title, text = post.topic_title or None, post.cooked or post.raw
        return self._changed(post, Edited(post.topic_id, now_ms, title, text))

    def _topic_gone(self, topic: _Topic, now_ms: int) -> base.Incoming:
        return self._changed(topic, Closed(topic.id, now_ms, deleted=True))

    def _status(self, topic: _Topic, now_ms: int) -> base.Incoming:
        shut = topic.closed or topic.archived or not topic.visible
        event = Closed(topic.id, now_ms) if shut else Reopened(topic.id, now_ms)
        return self._changed(topic, event)

    def _post(self, post: _Post, now_ms: int) -> base.Incoming:
        if post.post_type != 1 or not self._wanted(post):
            return base.Incoming()  # a private message, a small action or a whisper
        at_ms, names = post.created_at or now_ms, post.named(post.user_id)
        if post.post_number == 1:
            values = {"body": post.cooked or post.raw}
            if post.topic_title:
                values["title"] = post.topic_title
            part = self._part(post.topic_id, at_ms, post.user_id, **values)
            return base.Incoming(topic_parts=[part], names=names)
        answer = Answered(self._answer(post.id), post.topic_id, post.user_id, at_ms)
        return base.Incoming(events=[Arrival.of(answer)], names=names)

    def _answer(self, post: int) -> int:
        return post + self.hooks.discourse_post_offset

    def _solved(self, post: _Post, now_ms: int) -> base.Incoming:
        event = Accepted(post.topic_id, self._answer(post.id), now_ms)
        return base.Incoming(events=[Arrival.of(event, "solved")])

    def _liked(self, like: _Like, now_ms: int) -> base.Incoming:
        if like.post.post_number == 1:
            return base.Incoming()
        answer, secret = self._answer(like.post.id), self.hooks.discourse_secret.encode()
        # Who liked is not kept: only that a second message is about the same like.
        mark = hmac.digest(secret, str(like.user.id).encode(), "sha256").hex()[:32]
        return base.Incoming(events=[Arrival.of(Voted(answer, 1, now_ms), f"like:{answer}:{mark}")])

    def _user_gone(self, user: _User, now_ms: int) -> base.Incoming:
        return base.Incoming(forget=[user.id])

    def _user(self, user: _User, now_ms: int) -> base.Incoming:
        once = _digest("user", user)
        return base.Incoming(names=user.named(user.id), once=once, once_for_good=True)

    def deliver(self, message: Message, now_ms: int) -> base.Call:
        """Return a private message to the one person of the message, or an assignment."""
        data, out = message.payload["data"], self.out
        person, question = data["people"][0], data["question"]
        if not person.get("handle"):
            raise InputError("The person has no handle; the forum sends it with their next post.")
        headers = {"api_key": out.discourse_key, "api_username": out.discourse_user}
        forum = out.discourse_url.rstrip("/")
        if out.discourse_how == "assign":
            target = {
                "target_id": question["id"],
                "target_type": "Topic",
                "username": person["handle"],
            }
            return base.Call.of("PUT", f"{forum}/assign/assign.json", target, **headers)
        content = {
            "title": f"Could you answer this? {question['title']}"[:200],
            "raw": base.letter(question, f"{forum}/t/{question['id']}", person, person["reasons"]),
            "target_recipients": person["handle"],
            "archetype": "private_message",
        }
        return base.Call.of("POST", f"{forum}/posts.json", content, **headers)


def _digest(kind: str, given: BaseModel) -> str:
    """Return what tells a message from others of its kind."""
    text = json.dumps(given.model_dump(), sort_keys=True)
    return hashlib.sha256(f"{kind} {text}".encode()).hexdigest()
