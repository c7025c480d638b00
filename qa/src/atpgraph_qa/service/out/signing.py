"""Signatures of messages: Standard Webhooks, Slack, and digests as Discourse and GitHub send."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

from atpgraph.errors import AtpError

TOLERANCE_S = 300


class ForgedError(AtpError):
    """The signature is missing, wrong or too old."""


def sign(secrets: Sequence[str], name: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a Standard Webhook; one signature for each key, so that keys rotate.

    Examples
    --------
    >>> sign(["whsec_MDEyMw=="], "msg_1", 1, b"{}")["webhook-signature"]
    'v1,Av0HX1gzw7RddM0UFumqA1evFQj7px3Js1XtQV6kx0E='
    """
    moment, text = datetime.fromtimestamp(timestamp, UTC), body.decode()
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_key(s).sign(name, moment, text) for s in secrets),
    }


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now_s: int) -> str:
    """Check a Standard Webhook; return its id.

    The library's own check looks at the clock of the machine; the service has one of its own.
    """
    name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    _check_time(stamp, now_s)
    if not name or len(name) > 200:
        raise ForgedError("The message has no webhook-id.")
    try:
        expected = sign(secrets, name, int(stamp), body)["webhook-signature"].split()
    except UnicodeDecodeError:
        raise ForgedError("The body is not text.") from None
    given = headers.get("webhook-signature", "").split()
    if not any(_same(theirs, ours) for theirs in given[:10] for ours in expected):
        raise ForgedError("The signature is wrong.")
    return name


def verify_digest(secret: str, given: str, body: bytes) -> None:
    """Check ``sha256=`` and the HMAC of the raw body."""
    expected = "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()
    if not secret or not _same(given, expected):
        raise ForgedError("The signature is wrong.")


def verify_slack(secret: str, headers: Mapping[str, str], body: bytes, now_s: int) -> None:
    """Check the signature of a request from Slack."""
    stamp = headers.get("x-slack-request-timestamp", "")
    _check_time(stamp, now_s)
    signed = b"v0:" + stamp.encode() + b":" + body
    expected = "v0=" + hmac.digest(secret.encode(), signed, "sha256").hex()
    if not secret or not _same(headers.get("x-slack-signature", ""), expected):
        raise ForgedError("The signature is wrong.")


def _key(secret: str) -> Webhook:
    """Return the key of ``whsec_…`` (base64), or of any other text as it is."""
    return Webhook(secret if secret.startswith("whsec_") else secret.encode())


def _check_time(stamp: str, now_s: int) -> None:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise ForgedError("The message has no timestamp.")
    if abs(int(stamp) - now_s) > TOLERANCE_S:
        raise ForgedError("The timestamp is too far from now.")


def _same(theirs: str, ours: str) -> bool:
    return hmac.compare_digest(theirs.encode(), ours.encode())
