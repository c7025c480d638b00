"""Webhooks of a Discourse forum; private messages or assignments through its API."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from atpgraph.errors import InputError
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.events import Arrival, Closed, Edited, Reopened, TopicChange
from atpgraph_qa.timeline.events import Accepted, Answered, Voted

_STATUS = re.compile(r"topic_(closed_|archived_|visible_)?status_updated")


class _User(base.Part):
    model_config = ConfigDict(extra="allow")  # whatever differs tells messages apart

    id: base.MaybeId = NOBODY
    username: base.AnyText = ""
    groups: base.AnyNames | None = None
    primary_group_name: base.AnyText = ""

    def named(self, user: int) -> base.Names:
        """Return the name and groups of a user, if the message has them."""
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


# Where each event has what it is about.
_READ: dict[str, tuple[str, Any]] = {
    "topic_created": ("topic", _Topic), "topic_edited": ("topic", _Topic),
    "topic_destroyed": ("topic", _Topic), "topic_recovered": ("topic", _Topic),
    "topic_status_updated": ("topic", _Topic), "post_created": ("post", _Post),
    "post_edited": ("post", _Post), "accepted_solution": ("solved", _Post),
    "post_liked": ("like", _Like), "user_destroyed": ("user", _User),
    "user_updated": ("user", _User),
}  # fmt: skip


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
        if event not in _READ:
            return base.Incoming()
        name, model = _READ[event]
        given = base.read_part(model, base.read_object(body), name)
        match given:
            case _Post():
                return self._post(event, given, now_ms)
            case _Topic():
                return self._topic(event, given, now_ms)
            case _Like():
                return self._like(given, now_ms)
        if event == "user_destroyed":
            return base.Incoming(forget=[given.id])
        once = _digest("user", given)
        return base.Incoming(names=given.named(given.id), once=once, once_for_good=True)

    def _wanted(self, given: _Topic) -> bool:
        """Return whether it is public, and of a category to read."""
        kind = given.topic_archetype if isinstance(given, _Post) else given.archetype
        wanted = self.hooks.discourse_categories
        return kind == "regular" and (not wanted or str(given.category_id) in wanted)

    def _part(self, topic: int, at_ms: int, asker: int, **values: Any) -> base.TopicPart:
        forum = (self.hooks.discourse_instance or self.out.discourse_url).rstrip("/")
        url = {"url": f"{forum}/t/{topic}"} if forum else {}
        return base.TopicPart(topic, at_ms, asker, values, {"source": "discourse", **url})

    def _changed(self, given: BaseModel, event: TopicChange) -> base.Incoming:
        # No time is signed: an old message must not bring back an old state.
        seen = _digest(type(event).__name__, given)
        arrival = Arrival.of(event, seen[:32])
        return base.Incoming(events=[arrival], once=seen, once_for_good=True)

    def _topic(self, event: str, topic: _Topic, now_ms: int) -> base.Incoming:
        match event:
            case "topic_destroyed":
                return self._changed(topic, Closed(topic.id, now_ms, deleted=True))
            case "topic_recovered" | "topic_status_updated":
                shut = topic.closed or topic.archived or not topic.visible
                kind = Closed if shut else Reopened
                return self._changed(topic, kind(topic.id, now_ms))
            case "topic_edited" if self._wanted(topic):
                title = topic.title or None
                return self._changed(topic, Edited(topic.id, now_ms, title, None, topic.tags))
            case "topic_created" if self._wanted(topic):
                asker = topic.user_id if topic.user_id >= 0 else topic.created_by.id
                values = {"title": topic.title, "tags": topic.tags}
                part = self._part(topic.id, topic.created_at or now_ms, asker, **values)
                return base.Incoming(topic_parts=[part], names=topic.created_by.named(asker))
        return base.Incoming()

    def _post(self, event: str, post: _Post, now_ms: int) -> base.Incoming:
        answer = post.id + self.hooks.discourse_post_offset
        if event == "accepted_solution":
            accepted = Accepted(post.topic_id, answer, now_ms)
            return base.Incoming(events=[Arrival.of(accepted, "solved")])
        first, text = post.post_number == 1, post.cooked or post.raw
        title = {"title": post.topic_title} if post.topic_title else {}
        if not self._wanted(post):
            return base.Incoming()
        if event == "post_edited":
            edited = Edited(post.topic_id, now_ms, body=text, **title)
            return self._changed(post, edited) if first else base.Incoming()
        if post.post_type != 1:
            return base.Incoming()  # a small action or a whisper
        at_ms, names = post.created_at or now_ms, post.named(post.user_id)
        if first:
            part = self._part(post.topic_id, at_ms, post.user_id, body=text, **title)
            return base.Incoming(topic_parts=[part], names=names)
        answered = Answered(answer, post.topic_id, post.user_id, at_ms)
        return base.Incoming(events=[Arrival.of(answered)], names=names)

    def _like(self, like: _Like, now_ms: int) -> base.Incoming:
        if like.post.post_number == 1:
            return base.Incoming()
        answer = like.post.id + self.hooks.discourse_post_offset
        # Who liked is not kept: only that a second message is about the same like.
        secret = self.hooks.discourse_secret.encode()
        mark = hmac.digest(secret, str(like.user.id).encode(), "sha256").hex()[:32]
        return base.Incoming(events=[Arrival.of(Voted(answer, 1, now_ms), f"like:{answer}:{mark}")])

    def deliver(self, message: base.Message, now_ms: int) -> base.Call:
        """Return a private message to the one person of the message, or an assignment."""
        data, out = message.payload["data"], self.out
        person, question = data["people"][0], data["question"]
        if not person.get("handle"):
            raise InputError("The person has no handle; the forum sends it with their next post.")
        headers = {"api_key": out.discourse_key, "api_username": out.discourse_user}
        forum = out.discourse_url.rstrip("/")
        if out.discourse_how == "assign":
            target = {"target_id": question["id"], "target_type": "Topic",
                      "username": person["handle"]}  # fmt: skip
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
