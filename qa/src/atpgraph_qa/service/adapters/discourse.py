"""Webhooks of a Discourse forum; private messages or assignments through its API."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

import httpx2 as httpx

from atpgraph.errors import InputError
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.events import Arrival, Edited, StatusChanged
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Voted

_STATUS = re.compile(r"topic_(closed_|autoclosed_|archived_|visible_)?status_updated")


class Discourse(base.Adapter):
    """A Discourse forum.

    A question has the id of its topic, an answer that of its post plus an offset, which the import
    of older topics also adds.
    """

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read topics, posts, likes, solutions and users; ignore anything else."""
        given = headers.get("x-discourse-event-signature", "")
        base.verify_mac(self.hooks.discourse_secret, "sha256=", body, given)
        instance = headers.get("x-discourse-instance", "").rstrip("/")
        wanted = self.hooks.discourse_instance.rstrip("/")
        if wanted and instance != wanted:
            raise ProblemError(401, "The webhook comes from another forum.")
        event = headers.get("x-discourse-event", "")
        if _STATUS.fullmatch(event):
            event = "topic_status_updated"
        content = base.read_object(body)
        topic, post = content.part("topic"), content.part("post")
        match event:
            case "topic_created" if self._wanted(topic, "archetype"):
                by, at_ms = topic.part("created_by"), topic.moment("created_at", now_ms)
                asker = topic.number("user_id", by.number("id"))
                title, tags = topic.text("title"), topic.names("tags")
                part = Asked(topic.id(), title, tags=tags, asker=asker, at_ms=at_ms)
                return base.Incoming(topic_parts=[self._part(part)], names=_named(by, asker))
            case "topic_edited" if self._wanted(topic, "archetype"):
                title, tags = topic.text("title"), topic.names("tags")
                return self._changed(topic, Edited(topic.id(), now_ms, title or None, None, tags))
            case "topic_edited" if topic.number("category_id") >= 0:  # it moved
                return self._changed(topic, StatusChanged(topic.id(), now_ms, "closed"))
            case "topic_recovered" | "topic_status_updated":
                said = topic.values
                shut = said.get("closed") or said.get("archived") or said.get("visible") is False
                state = "closed" if shut else "open"
                return self._changed(topic, StatusChanged(topic.id(), now_ms, state))
            case "topic_destroyed":
                return self._changed(topic, StatusChanged(topic.id(), now_ms, "deleted"))
            case "post_created" if self._wanted(post, "topic_archetype"):
                return self._post(post, now_ms)
            case "post_edited" if self._wanted(post, "topic_archetype"):
                if post.number("post_number") == 1:
                    number, title = post.id("topic_id"), post.text("topic_title")
                    edited = Edited(number, now_ms, title or None, _text(post))
                    return self._changed(post, edited)
            case "accepted_solution":
                post = content.part("solved")
                accepted = Accepted(post.id("topic_id"), self._answer(post), now_ms)
                return base.Incoming(events=[Arrival.of(accepted, "solved")])
            case "post_liked":
                return self._like(content.part("like"), now_ms)
            case "user_destroyed":
                return base.Incoming(forget=[content.part("user").id()])
            case "user_updated":
                user = content.part("user")
                names, once = _named(user, user.id()), user.digest("user")
                return base.Incoming(names=names, once=once, once_for_good=True)
        return base.Incoming()

    def _wanted(self, given: base.Given, kind: str) -> bool:
        """Return whether a topic or post is public and in a category to read."""
        wanted = self.hooks.discourse_categories
        in_category = not wanted or str(given.number("category_id", 0)) in wanted
        return in_category and given.text(kind) in ("regular", "")

    def _answer(self, post: base.Given) -> int:
        return post.id() + self.hooks.discourse_post_offset

    def _part(self, part: Asked) -> Arrival:
        forum = (self.hooks.discourse_instance or self.out.discourse_url).rstrip("/")
        url = {"url": f"{forum}/t/{part.id}"} if forum else {}
        return Arrival.of(part, origin={"source": "discourse", **url})

    def _changed(self, given: base.Given, event: Edited | StatusChanged) -> base.Incoming:
        # The message has no signed time, so an old one must not restore an old state.
        seen = given.digest(getattr(event, "state", "edited"))
        arrival = Arrival.of(event, seen[:32])
        return base.Incoming(events=[arrival], once=seen, once_for_good=True)

    def _post(self, post: base.Given, now_ms: int) -> base.Incoming:
        """Read a new post: the text of a topic, or an answer."""
        topic, user = post.id("topic_id"), post.number("user_id")
        if post.number("post_type", 1) != 1:
            return base.Incoming()  # a small action or a whisper
        at_ms, names = post.moment("created_at", now_ms), _named(post, user)
        if post.number("post_number") == 1:
            part = Asked(topic, post.text("topic_title"), _text(post), asker=user, at_ms=at_ms)
            return base.Incoming(topic_parts=[self._part(part)], names=names)
        answered = Answered(self._answer(post), topic, user, at_ms)
        return base.Incoming(events=[Arrival.of(answered)], names=names)

    def _like(self, like: base.Given, now_ms: int) -> base.Incoming:
        post = like.part("post")
        answer = self._answer(post)
        if post.number("post_number") == 1:
            return base.Incoming()
        # Keep a digest of the user, only to recognize a second message about the same like.
        secret, who = self.hooks.discourse_secret.encode(), str(like.part("user").number("id"))
        mark = hmac.digest(secret, who.encode(), "sha256").hex()[:32]
        return base.Incoming(events=[Arrival.of(Voted(answer, 1, now_ms), f"like:{answer}:{mark}")])

    def deliver(self, message: str, payload: Row, now_ms: int) -> httpx.Request:
        """Return a private message to one person, or the assignment of the topic."""
        question, (person, *_) = payload["data"]["question"], payload["data"]["people"]
        if not person.get("handle"):
            raise InputError("The person has no handle; the forum sends it with their next post.")
        headers = {"api-key": self.out.discourse_key, "api-username": self.out.discourse_user}
        forum = self.out.discourse_url.rstrip("/")
        if self.out.discourse_how == "assign":
            content = {"target_id": question["id"], "target_type": "Topic",
                       "username": person["handle"]}  # fmt: skip
            url = f"{forum}/assign/assign.json"
            return httpx.Request("PUT", url, headers=headers, json=content)
        raw = base.message_text(
            "letter.md", question=question, url=f"{forum}/t/{question['id']}", person=person,
            reasons=person["reasons"],
        )  # fmt: skip
        content = {
            "title": f"Could you answer this? {question['title']}"[:200],
            "raw": raw,
            "target_recipients": person["handle"],
            "archetype": "private_message",
        }
        return httpx.Request("POST", f"{forum}/posts.json", headers=headers, json=content)


def _text(post: base.Given) -> str:
    return post.text("cooked") or post.text("raw")


def _named(given: base.Given, user: int) -> base.Names:
    """Return the name and groups of a user, if the message has them."""
    groups: tuple[str, ...] | None = None
    if isinstance(given.values.get("groups"), list):
        groups = given.names("groups")
    elif primary := given.text("primary_group_name"):
        groups = (primary,)
    return {user: (name, groups)} if (name := given.text("username")) and user >= 0 else {}
