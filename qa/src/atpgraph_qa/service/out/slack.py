"""Messages to a Slack channel of moderators, with buttons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from atpgraph_qa.service.out import signing
from atpgraph_qa.service.out.payloads import Call, Incoming, Verdict, read_object, read_text
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.outbox import Message


class Slack:
    """A channel in which moderators see suggestions and decide."""

    repeatable = False

    def __init__(self, settings: Settings) -> None:
        self._secret, self._url = settings.hooks.slack_secret, settings.deliver.slack_url

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Read a press of a button."""
        signing.verify_slack(self._secret, headers, body, now_ms // 1000)
        fields = parse_qs(body.decode("utf-8", "replace"))
        content = read_object(fields.get("payload", [""])[0].encode())
        actions = content.get("actions")
        if content.get("type") != "block_actions" or not isinstance(actions, list):
            return Incoming()
        user = content.get("user")
        name = read_text(user.get("username") or user.get("id")) if isinstance(user, dict) else ""
        verdicts = [
            Verdict(int(action["value"]), action["action_id"], f"Slack: {name or 'somebody'}")
            for action in actions
            if isinstance(action, dict)
            and action.get("action_id") in ("accepted", "declined")
            and str(action.get("value", "")).isdigit()
        ]
        seen = hashlib.sha256(headers["x-slack-signature"].encode()).hexdigest()
        return Incoming(verdicts=tuple(verdicts), once=seen)

    def deliver(self, message: Message, now_ms: int) -> Call:
        """Return the question, the people with reasons, and two buttons."""
        data = message.payload["data"]
        waits = message.payload["type"] == "suggestion.proposed"
        people = "\n".join(
            f"• *{_escaped(p.get('handle') or 'user ' + str(p['user']))}* {p['confidence']:.0%}: "
            + _escaped("; ".join(reason["text"] for reason in p["reasons"][:2]))
            for p in data["people"]
        )
        title, url = _escaped(data["question"]["title"]), data["question"].get("url", "")
        said = "Who could answer" if waits else "Asked about"
        text = f"{said} *{title}*?\n{people}" if waits else f"{said} *{title}*:\n{people}"
        for link, name in ((url, "Question"), (data["link"], "All decisions")):
            text += f"\n<{link}|{name}>" if link else ""
        labels = ("Ask them", "Not these") if waits else ("Good choice", "Ask somebody else")
        buttons: list[dict[str, Any]] = [
            {
                "type": "button",
                "text": {"type": "plain_text", "text": label},
                "action_id": verdict,
                "value": str(data["suggestion"]),
                **({"style": "primary"} if verdict == "accepted" else {}),
            }
            for label, verdict in zip(labels, ("accepted", "declined"), strict=True)
        ]
        # Verbatim: titles of strangers make no links and mention nobody.
        section = {"type": "mrkdwn", "text": text[:3000], "verbatim": True}
        blocks = [
            {"type": "section", "text": section},
            {"type": "actions", "elements": buttons},
        ]
        body = json.dumps({"text": f"{said} {title}"[:300], "blocks": blocks}).encode()
        return Call("POST", self._url, {"content-type": "application/json"}, body)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
