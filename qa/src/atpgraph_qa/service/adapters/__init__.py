"""Adapters to sites and tools; Standard Webhooks carry signed JSON in both directions."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2 as httpx

from atpgraph.errors import InputError
from atpgraph_qa.service.adapters import base
from atpgraph_qa.service.adapters.discourse import Discourse
from atpgraph_qa.service.adapters.github import GitHub
from atpgraph_qa.service.adapters.slack import Slack
from atpgraph_qa.service.schemas import SIGNED
from atpgraph_qa.service.tables import Row


class StandardWebhooks(base.Adapter):
    """Events in the form of the API, and suggestions as JSON."""

    repeatable = True

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> base.Incoming:
        """Read ``{"type": "question.created", "data": {…}}``, with data as the API takes it."""
        base.verify(self.hooks.generic_secrets, headers, body, now_ms)
        content = base.read_object(body)
        kind = content.text("type")
        if kind == "person.forgotten":
            return base.Incoming(forget=[content.part("data").id()])
        if kind not in SIGNED:
            raise InputError(f"type is one of {', '.join([*SIGNED, 'person.forgotten'])}.")
        given = SIGNED[kind].model_validate(content.values.get("data"))
        return base.Incoming(events=[given.arrival()])

    def deliver(self, message: str, payload: Row, now_ms: int) -> httpx.Request:
        """Return the payload, signed."""
        body = json.dumps(payload, separators=(",", ":")).encode()
        headers = base.sign(self.out.webhook_secrets, message, now_ms // 1000, body)
        headers["content-type"] = "application/json"
        return httpx.Request("POST", self.out.webhook_url, headers=headers, content=body)


ADAPTERS: dict[str, type[base.Adapter]] = {
    "webhook": StandardWebhooks, "discourse": Discourse, "slack": Slack, "github": GitHub
}  # fmt: skip
# By the last part of the address of a hook.
SOURCES: dict[str, type[base.Adapter]] = {
    "discourse": Discourse, "github": GitHub, "slack": Slack, "generic": StandardWebhooks
}  # fmt: skip
