"""Signed JSON both ways, by the Standard Webhooks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import ValidationError

from atpgraph.errors import InputError
from atpgraph_qa.service.out import signing
from atpgraph_qa.service.out.payloads import Call, Incoming, read_id, read_object
from atpgraph_qa.service.schemas import SIGNED
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.outbox import Message


class StandardWebhooks:
    """Events as the API takes them, and suggestions as JSON."""

    repeatable = True

    def __init__(self, settings: Settings) -> None:
        self._in, self._out = settings.hooks.generic_secrets, settings.deliver

    def parse(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> Incoming:
        """Read ``{"type": "question.created", "data": {…}}``, data as the API takes it."""
        signing.verify(self._in, headers, body, now_ms // 1000)
        content = read_object(body)
        kind, data = content.get("type"), content.get("data")
        if kind == "person.forgotten":
            person = data.get("id") if isinstance(data, dict) else None
            return Incoming(forget=(read_id(person, "data.id"),))
        if not isinstance(kind, str) or kind not in SIGNED:
            raise InputError(f"type is one of {', '.join([*SIGNED, 'person.forgotten'])}.")
        try:
            made = SIGNED[kind].model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(f"data.{place}: {first['msg']}.") from None
        return Incoming(events=(made.arrival(),))

    def deliver(self, message: Message, now_ms: int) -> Call:
        """Return the payload, signed."""
        body = json.dumps(message.payload, separators=(",", ":")).encode()
        signed = signing.sign(self._out.webhook_secrets, message.id, now_ms // 1000, body)
        headers = {"content-type": "application/json", **signed}
        return Call("POST", self._out.webhook_url, headers, body)
