"""Links in messages and on the page: to a question, and to one's own opt-out."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.events import KEY_FILE


def question_link(settings: Settings, question: dict[str, Any]) -> str:
    """Return where a question is on its site; empty if that is not known."""
    origin = question.get("origin") or {}
    url = str(question.get("url") or origin.get("url") or "")
    if url:
        return url if url.startswith(("https://", "http://")) else ""
    number = question["id"]
    if settings.server.question_url:
        return settings.server.question_url.replace("{id}", str(number))
    forum = settings.hooks.discourse_instance or settings.deliver.discourse_url
    return f"{forum.rstrip('/')}/t/{number}" if forum else ""


def opt_out_link(settings: Settings, person: int) -> str:
    """Return the link by which somebody opts out without a login; empty without a public URL."""
    base = settings.server.public_url.rstrip("/")
    return f"{base}/opt-out/{person}/{opt_out_code(settings, person)}" if base else ""


def opt_out_code(settings: Settings, person: int) -> str:
    """Return the secret part of the link, which only the service can make."""
    key = bytes.fromhex((Path(settings.store.folder) / KEY_FILE).read_text(encoding="ascii"))
    return hmac.digest(key, f"opt-out {person}".encode(), "sha256").hex()[:32]
