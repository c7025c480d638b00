"""Issues and discussions of GitHub: webhooks in, comments and assignments out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atpgraph.errors import InputError
from atpgraph_qa.service.out import signing
from atpgraph_qa.service.out.payloads import (
    Call,
    Incoming,
    letter,
    plain_markdown,
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
    Event,
    Reopened,
    name_of,
)
from atpgraph_qa.service.store.outbox import Message
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

# Discussions and their comments are numbered apart from issues and theirs.
_DISCUSSIONS = 2**51
_COMMENT = (
    "mutation($id: ID!, $body: String!) "
    "{ addDiscussionComment(input: {discussionId: $id, body: $body}) { comment { id } } }"
)


class GitHub:
    """Questions are issues and discussions, answers are comments on them."""

    repeatable = False

    def __init__(self, settings: Settings) -> None:
        self._in, self._out = settings.hooks, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Read issues, discussions and comments; ignore pull requests and anything else."""
        signing.verify_digest(self._in.github_secret, headers.get("x-hub-signature-256", ""), body)
        kind = headers.get("x-github-event", "")
        if kind not in ("issues", "issue_comment", "discussion", "discussion_comment"):
            return Incoming()
        content = read_object(body)
        repository = read_text(read_inner(content, "repository").get("full_name"))
        if self._in.github_repositories and repository not in self._in.github_repositories:
            return Incoming()
        topic = read_inner(content, "discussion" if kind.startswith("discussion") else "issue")
        if "pull_request" in topic:
            return Incoming()
        shift = _DISCUSSIONS if kind.startswith("discussion") else 0
        number = read_id(topic.get("id"), "id") + shift
        action = read_text(content.get("action"))
        if kind.endswith("_comment"):
            return self._comment(action, number, read_inner(content, "comment"), shift, now_ms)
        return self._topic(action, number, topic, content, shift, now_ms)

    def _topic(
        self, action: str, number: int, topic: dict[str, Any], content: dict[str, Any], shift: int,
        now_ms: int,
    ) -> Incoming:  # fmt: skip
        title, text = read_text(topic.get("title")), read_text(topic.get("body"))
        tags = read_names(topic.get("labels"))
        category = topic.get("category")
        if isinstance(category, dict) and read_text(category.get("slug")):
            tags.append(read_text(category["slug"])[:100])
        changed_ms = read_time(topic.get("updated_at"), now_ms)
        event: Event | None = None
        origin: dict[str, str] = {}
        if action in ("opened", "created"):
            asker, names = _user(topic)
            created = read_time(topic.get("created_at"), now_ms)
            event = Asked(number, title, text, tuple(tags), asker, created)
            url = read_text(topic.get("html_url"))
            origin = {"source": "github", "url": url, "node": read_text(topic.get("node_id"))}
            origin["kind"] = "discussion" if shift else "issue"
            return Incoming(events=(Arrival(name_of(event), event, origin),), names=names)
        if action in ("edited", "labeled", "unlabeled"):
            event = Edited(number, changed_ms, title, text, tuple(tags))
        elif action in ("deleted", "transferred"):
            event = Closed(number, changed_ms, deleted=True)
        elif action in ("closed", "locked"):
            event = Closed(number, changed_ms)
        elif action in ("reopened", "unlocked"):
            event = Reopened(number, changed_ms)
        elif action == "answered":
            answer = read_id(read_inner(content, "answer").get("id"), "answer.id") + shift
            event = Accepted(number, answer, changed_ms)
        return Incoming() if event is None else Incoming(events=(Arrival(name_of(event), event),))

    def _comment(
        self, action: str, number: int, comment: dict[str, Any], shift: int, now_ms: int
    ) -> Incoming:
        user = comment.get("user")
        if action != "created" or (isinstance(user, dict) and user.get("type") == "Bot"):
            return Incoming()
        who, names = _user(comment)
        at_ms = read_time(comment.get("created_at"), now_ms)
        event = Answered(read_id(comment.get("id"), "comment.id") + shift, number, who, at_ms)
        return Incoming(events=(Arrival(name_of(event), event),), names=names)

    def deliver(self, message: Message, now_ms: int) -> Call:
        """Return a comment that names the people, or the assignment of the issue."""
        data, out = message.payload["data"], self._out
        origin = data["question"].get("origin", {})
        handles = [p["handle"] for p in data["people"] if p.get("handle")]
        if not handles:
            raise InputError("None of the people has a handle; GitHub sends it with a comment.")
        headers = {
            "authorization": f"Bearer {out.github_token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
            "content-type": "application/json",
            "user-agent": "atpgraph",
        }
        base = out.github_url.rstrip("/")
        if origin.get("kind") == "discussion":
            variables = {"id": origin.get("node", ""), "body": _comment_text(data, handles)}
            query = {"query": _COMMENT, "variables": variables}
            return Call("POST", f"{base}/graphql", headers, json.dumps(query).encode())
        # https://github.com/owner/name/issues/7
        parts = str(origin.get("url", "")).split("/")
        if len(parts) < 7 or parts[5] != "issues" or not parts[6].isdigit():
            raise InputError("The question does not say which issue it is.")
        issue = f"{base}/repos/{parts[3]}/{parts[4]}/issues/{parts[6]}"
        if out.github_how == "assign":
            body = json.dumps({"assignees": handles}).encode()
            return Call("POST", f"{issue}/assignees", headers, body)
        body = json.dumps({"body": _comment_text(data, handles)}).encode()
        return Call("POST", f"{issue}/comments", headers, body)


def _comment_text(data: dict[str, Any], handles: list[str]) -> str:
    """Return a comment; on one's own page the question needs no title, in public no reasons."""
    if len(data["people"]) == 1:
        one = {**data["people"][0], "reasons": []}
        return f"@{handles[0]} " + letter(
            {**data, "question": {**data["question"], "url": ""}}, one
        )
    names = " ".join(f"@{handle}" for handle in handles)
    stops = [
        f"[{plain_markdown(p['handle'])}]({p['opt_out']})"
        for p in data["people"]
        if p.get("opt_out") and p.get("handle")
    ]
    stop = f" Do not ask me any more: {', '.join(stops)}." if stops else ""
    return f"{names} You may be able to answer this. No answer is needed if you have no time.{stop}"


def _user(entry: dict[str, Any]) -> tuple[int, dict[int, tuple[str, None]]]:
    user = entry.get("user")
    if not isinstance(user, dict):
        return -1, {}
    number, login = read_id(user.get("id", -1), "user.id", -1), read_text(user.get("login"))
    return number, {number: (login, None)} if login and number >= 0 else {}
