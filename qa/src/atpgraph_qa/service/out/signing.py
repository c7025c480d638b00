"""Signatures of messages: Standard Webhooks, Discourse, Slack."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence

from atpgraph.errors import AtpError

TOLERANCE_S = 300


class ForgedError(AtpError):
    """The signature is missing, wrong or too old."""


def key_of(secret: str) -> bytes:
    """The key of ``whsec_…`` (base64), or the text itself."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def sign(secrets: Sequence[str], name: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Headers of a Standard Webhook; one signature for each key, so that keys can rotate.

    Examples
    --------
    >>> sign(["whsec_MDEyMw=="], "msg_1", 1, b"{}")["webhook-signature"]
    'v1,Av0HX1gzw7RddM0UFumqA1evFQj7px3Js1XtQV6kx0E='
    """
    signed = b".".join([name.encode(), str(timestamp).encode(), body])
    parts = [
        base64.b64encode(hmac.digest(key_of(secret), signed, "sha256")).decode()
        for secret in secrets
    ]
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{part}" for part in parts),
    }


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now_s: int) -> str:
    """Check a Standard Webhook; its id, or :class:`ForgedError`."""
    name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    _check_time(stamp, now_s)
    if not name or len(name) > 200:
        raise ForgedError("The message has no webhook-id.")
    expected = sign(secrets, name, int(stamp), body)["webhook-signature"].split()
    given = headers.get("webhook-signature", "").split()
    if not any(_same(theirs, ours) for theirs in given[:10] for ours in expected):
        raise ForgedError("The signature is wrong.")
    return name


def verify_discourse(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    """Check the signature of a Discourse webhook, over the raw body."""
    expected = "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()
    if not secret or not _same(headers.get("x-discourse-event-signature", ""), expected):
        raise ForgedError("The signature is wrong.")


def verify_slack(secret: str, headers: Mapping[str, str], body: bytes, now_s: int) -> None:
    """Check the signature of a request from Slack."""
    stamp = headers.get("x-slack-request-timestamp", "")
    _check_time(stamp, now_s)
    signed = b"v0:" + stamp.encode() + b":" + body
    expected = "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not secret or not _same(headers.get("x-slack-signature", ""), expected):
        raise ForgedError("The signature is wrong.")


def _check_time(stamp: str, now_s: int) -> None:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise ForgedError("The message has no timestamp.")
    if abs(int(stamp) - now_s) > TOLERANCE_S:
        raise ForgedError("The timestamp is too far from now.")


def _same(theirs: str, ours: str) -> bool:
    return hmac.compare_digest(theirs.encode(), ours.encode())
