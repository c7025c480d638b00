"""Messages to a Slack channel of moderators, with buttons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import parse_qs

import httpx2 as httpx

from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.tables import Row

# Of a suggestion, and of the people that the message names: with an edit they may change.
_NUMBERS = re.compile("[0-9]{1,18}( [0-9]{1,18})*")


class Slack(base.Adapter):
    """A channel in which moderators see suggestions and decide."""

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read which button was pressed."""
        stamp = headers.get("x-slack-request-timestamp", "")
        base.check_time(stamp, now_ms)
        signature = headers.get("x-slack-signature", "")
        base.verify_mac(self.hooks.slack_secret, "v0=", f"v0:{stamp}:".encode() + body, signature)
        payload = parse_qs(body.decode("utf-8", "replace")).get("payload", [""])[0]
        press = base.read_object(payload.encode())
        if press.text("type") != "block_actions":
            return base.Incoming()
        user = press.part("user")
        who = f"Slack: {user.text('username') or user.text('id') or 'somebody'}"
        verdicts = []
        for each in press.parts("actions"):
            verdict, numbers = each.text("action_id"), each.text("value")
            if verdict in ("accepted", "declined") and _NUMBERS.fullmatch(numbers):
                number, *shown = map(int, numbers.split())
                verdicts.append((number, verdict, who, shown))
        return base.Incoming(verdicts=verdicts, once=hashlib.sha256(signature.encode()).hexdigest())

    def deliver(self, message: str, payload: Row, now_ms: int) -> httpx.Request:
        """Return the question, the people with reasons, and two buttons."""
        data, waits = payload["data"], payload["type"] == "suggestion.proposed"
        text = base.message_text("slack.txt", data=data, waits=waits)
        shown = [person["user"] for person in data["people"]]
        numbers = " ".join(map(str, [data["suggestion"], *shown]))
        labels = ("Ask them", "Not these") if waits else ("Good choice", "Ask somebody else")
        buttons: list[Row] = [
            {"type": "button", "text": {"type": "plain_text", "text": label},
             "action_id": verdict, "value": numbers}
            for label, verdict in zip(labels, ("accepted", "declined"), strict=True)
        ]  # fmt: skip
        buttons[0]["style"] = "primary"
        # Verbatim, so that titles cannot contain links or mentions.
        section = {"type": "mrkdwn", "text": text[:3000], "verbatim": True}
        blocks = [{"type": "section", "text": section}, {"type": "actions", "elements": buttons}]
        content = {"text": text.partition("\n")[0][:300], "blocks": blocks}
        return httpx.Request("POST", self.out.slack_url, json=content)
