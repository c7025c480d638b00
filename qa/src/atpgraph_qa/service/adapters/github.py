"""Issues and discussions of GitHub: webhooks in, comments and assignments out."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2 as httpx

from atpgraph.errors import InputError
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.events import Arrival, Edited, Event, StatusChanged
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

# Added to ids of discussions and their comments, which may equal those of issues.
_DISCUSSIONS = 2**51
_COMMENT = (
    "mutation($id: ID!, $body: String!) "
    "{ addDiscussionComment(input: {discussionId: $id, body: $body}) { comment { id } } }"
)
_STATES = {
    "deleted": "deleted", "transferred": "deleted", "closed": "closed", "locked": "closed",
    "reopened": "open", "unlocked": "open",
}  # fmt: skip


class GitHub(base.Adapter):
    """Issues and discussions, which are the questions; comments are the answers."""

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read issues, discussions and comments; ignore pull requests and anything else."""
        given = headers.get("x-hub-signature-256", "")
        base.verify_mac(self.hooks.github_secret, "sha256=", body, given)
        kind = headers.get("x-github-event", "")
        if kind not in ("issues", "issue_comment", "discussion", "discussion_comment"):
            return base.Incoming()
        content = base.read_object(body)
        repository = content.part("repository").text("full_name")
        if self.hooks.github_repositories and repository not in self.hooks.github_repositories:
            return base.Incoming()
        name = "discussion" if kind.startswith("discussion") else "issue"
        topic, shift = content.part(name), _DISCUSSIONS * (name == "discussion")
        question, action, by = topic.id() + shift, content.text("action"), topic.part("user")
        if "pull_request" in topic.values:
            return base.Incoming()
        if kind.endswith("_comment"):
            comment = content.part("comment")
            by = comment.part("user")
            if action != "created" or by.text("type") == "Bot":
                return base.Incoming()
            at_ms = comment.moment("created_at", now_ms)
            answer = Answered(comment.id() + shift, question, by.number("id"), at_ms)
            return base.Incoming(events=[Arrival.of(answer)], names=_named(by))
        title, text, slug = topic.text("title"), topic.text("body"), topic.part("category")
        tags = [*topic.names("labels"), *filter(None, [slug.text("slug")[:100]])]
        changed_ms = topic.moment("updated_at", now_ms)
        event: Event
        match action:
            case "opened" | "created":
                at_ms = topic.moment("created_at", now_ms)
                event = Asked(question, title, text, tags, by.number("id"), at_ms)
                origin = {"source": "github", "url": topic.text("html_url"), "kind": name}
                arrival = Arrival.of(event, origin={**origin, "node": topic.text("node_id")})
                return base.Incoming(events=[arrival], names=_named(by))
            case "edited" | "labeled" | "unlabeled":
                event = Edited(question, changed_ms, title, text, tags)
            case "answered":
                event = Accepted(question, content.part("answer").id() + shift, changed_ms)
            case _ if action in _STATES:
                event = StatusChanged(question, changed_ms, _STATES[action])
            case _:
                return base.Incoming()
        # Labels that are added at once have the same time, in seconds.
        return base.Incoming(events=[Arrival.of(event, content.digest(action)[:32])])

    def deliver(self, message: str, payload: Row, now_ms: int) -> httpx.Request:
        """Return a comment that names the people, or the assignment of the issue."""
        question, api = payload["data"]["question"], self.out.github_url.rstrip("/")
        people = [person for person in payload["data"]["people"] if person.get("handle")]
        if not people:
            raise InputError("None of the people has a handle; GitHub sends handles with comments.")
        origin = question.get("origin", {})
        # A comment is public: it gives no reasons, and no link by which any reader could opt out.
        text = base.message_text("comment.md", people=people)
        content: Row = {"body": text}
        if origin.get("kind") == "discussion":
            url = f"{api}/graphql"
            content = {"query": _COMMENT, "variables": {"id": origin.get("node", ""), **content}}
        else:
            # https://github.com/owner/name/issues/7
            parts = str(origin.get("url", "")).split("/")
            if len(parts) < 7 or parts[5] != "issues" or not parts[6].isdigit():
                raise InputError("The question does not say which issue it is.")
            url = f"{api}/repos/{parts[3]}/{parts[4]}/issues/{parts[6]}/comments"
            if self.out.github_how == "assign":
                url = url.removesuffix("comments") + "assignees"
                content = {"assignees": [person["handle"] for person in people]}
        headers = {
            "authorization": f"Bearer {self.out.github_token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
            "user-agent": "atpgraph",
        }
        return httpx.Request("POST", url, headers=headers, json=content)


def _named(user: base.Given) -> base.Names:
    """Return the name of a user, if the message has it."""
    number, login = user.number("id"), user.text("login")
    return {number: (login, None)} if login and number >= 0 else {}
