"""Issues and discussions of GitHub: webhooks in, comments and assignments out."""

from __future__ import annotations

from collections.abc import Mapping

from atpgraph.errors import InputError
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.events import Arrival, Closed, Edited, Event, Reopened
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

# Discussions and their comments are numbered apart from issues and theirs.
_DISCUSSIONS = 2**51
_COMMENT = (
    "mutation($id: ID!, $body: String!) "
    "{ addDiscussionComment(input: {discussionId: $id, body: $body}) { comment { id } } }"
)


class _User(base.Part):
    id: base.MaybeId = NOBODY
    login: base.AnyText = ""
    type: base.AnyText = ""

    def named(self) -> base.Names:
        """Return the name of the user, if the message has it."""
        return {self.id: (self.login, None)} if self.login and self.id >= 0 else {}


class _Repository(base.Part):
    full_name: base.AnyText = ""


class _Category(base.Part):
    slug: base.AnyText = ""


class _Entry(base.Part):
    """An issue, a discussion or a comment."""

    id: base.SiteId
    node_id: base.AnyText = ""
    html_url: base.AnyText = ""
    title: base.AnyText = ""
    body: base.AnyText = ""
    labels: base.AnyNames = ()
    category: _Category = _Category()
    user: _User = _User()
    created_at: base.AnyMoment = None
    updated_at: base.AnyMoment = None


class GitHub(base.Adapter):
    """Questions are issues and discussions, answers are comments on them."""

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read issues, discussions and comments; ignore pull requests and anything else."""
        given = headers.get("x-hub-signature-256", "")
        base.verify_mac(self.hooks.github_secret, "sha256=", body, given)
        kind = headers.get("x-github-event", "")
        if kind not in ("issues", "issue_comment", "discussion", "discussion_comment"):
            return base.Incoming()
        content = base.read_object(body)
        repository = base.read_part(_Repository, content, "repository").full_name
        if self.hooks.github_repositories and repository not in self.hooks.github_repositories:
            return base.Incoming()
        name = "discussion" if kind.startswith("discussion") else "issue"
        topic, shift = base.read_part(_Entry, content, name), _DISCUSSIONS * (name == "discussion")
        if "pull_request" in content[name]:
            return base.Incoming()
        question, action = topic.id + shift, content.get("action")
        if kind.endswith("_comment"):
            comment = base.read_part(_Entry, content, "comment")
            by = comment.user
            if action != "created" or by.type == "Bot":
                return base.Incoming()
            at_ms = comment.created_at or now_ms
            answer = Answered(comment.id + shift, question, by.id, at_ms)
            return base.Incoming(events=[Arrival.of(answer)], names=by.named())
        tags = [*topic.labels, *([topic.category.slug[:100]] if topic.category.slug else [])]
        changed_ms = topic.updated_at or now_ms
        event: Event | None = None
        match action:
            case "opened" | "created":
                by, at_ms = topic.user, topic.created_at or now_ms
                event = Asked(question, topic.title, topic.body, tags, by.id, at_ms)
                origin = {"source": "github", "url": topic.html_url, "node": topic.node_id}
                arrival = Arrival.of(event, origin={**origin, "kind": name})
                return base.Incoming(events=[arrival], names=by.named())
            case "edited" | "labeled" | "unlabeled":
                event = Edited(question, changed_ms, topic.title, topic.body, tags)
            case "deleted" | "transferred":
                event = Closed(question, changed_ms, deleted=True)
            case "closed" | "locked":
                event = Closed(question, changed_ms)
            case "reopened" | "unlocked":
                event = Reopened(question, changed_ms)
            case "answered":
                accepted = base.read_part(_Entry, content, "answer").id + shift
                event = Accepted(question, accepted, changed_ms)
        return base.Incoming() if event is None else base.Incoming(events=[Arrival.of(event)])

    def deliver(self, message: base.Message, now_ms: int) -> base.Call:
        """Return a comment that names the people, or the assignment of the issue."""
        data, api = message.payload["data"], self.out.github_url.rstrip("/")
        origin = data["question"].get("origin", {})
        people = [person for person in data["people"] if person.get("handle")]
        if not people:
            raise InputError("None of the people has a handle; GitHub sends it with a comment.")
        headers = {
            "authorization": f"Bearer {self.out.github_token}",
            "accept": "application/vnd.github+json",
            "x_github_api_version": "2022-11-28",
            "user_agent": "atpgraph",
        }
        text = _comment_text(data["question"], people)
        if origin.get("kind") == "discussion":
            variables = {"id": origin.get("node", ""), "body": text}
            query = {"query": _COMMENT, "variables": variables}
            return base.Call.of("POST", f"{api}/graphql", query, **headers)
        # https://github.com/owner/name/issues/7
        parts = str(origin.get("url", "")).split("/")
        if len(parts) < 7 or parts[5] != "issues" or not parts[6].isdigit():
            raise InputError("The question does not say which issue it is.")
        issue = f"{api}/repos/{parts[3]}/{parts[4]}/issues/{parts[6]}"
        if self.out.github_how == "assign":
            assigned = {"assignees": [person["handle"] for person in people]}
            return base.Call.of("POST", f"{issue}/assignees", assigned, **headers)
        return base.Call.of("POST", f"{issue}/comments", {"body": text}, **headers)


def _comment_text(question: Row, people: list[Row]) -> str:
    """Return a comment; on one's own page the question needs no link, in public no reasons."""
    if len(people) == 1:
        return f"@{people[0]['handle']} " + base.letter(question, "", people[0], [])
    names = " ".join(f"@{person['handle']}" for person in people)
    stops = [
        f"[{base.plain_markdown(person['handle'])}]({person['opt_out']})"
        for person in people
        if person.get("opt_out")
    ]
    stop = f" Do not ask me any more: {', '.join(stops)}." if stops else ""
    return f"{names} You may be able to answer this. No answer is needed if you have no time.{stop}"
