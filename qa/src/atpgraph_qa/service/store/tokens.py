"""Tokens and logins: random, stored as digests, with scopes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from atpgraph.errors import InputError
from atpgraph_qa.service.store.tables import sessions, tokens

SCOPES = ("read", "route", "write", "admin")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Token:
    """Who calls, and what they may do.

    Attributes
    ----------
    id : int
    name : str
    scopes : frozenset of str
    csrf : str
        For logins on the page; empty for tokens.
    """

    id: int
    name: str
    scopes: frozenset[str]
    csrf: str = ""

    def may(self, scope: str) -> bool:
        """Whether it has a scope; ``admin`` has all."""
        return scope in self.scopes or "admin" in self.scopes


def digest(secret: str) -> str:
    """What is stored of a token: enough to know it again, not enough to use it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def check_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes in order, or one sentence."""
    given = set(scopes)
    if not given or not given <= set(SCOPES):
        raise InputError(f"Scopes are some of {', '.join(SCOPES)}.")
    return tuple(scope for scope in SCOPES if scope in given)


def create_token(
    connection: Connection, name: str, scopes: Iterable[str], now_ms: int
) -> tuple[int, str]:
    """A new token: its id, and the token itself, which is not kept."""
    secret = f"atp_{secrets.token_urlsafe(32)}"
    made = connection.execute(
        insert(tokens)
        .values(
            name=name,
            digest=digest(secret),
            scopes=" ".join(check_scopes(scopes)),
            created_ms=now_ms,
        )
        .returning(tokens.c.id)
    )
    return int(made.scalar_one()), secret


def find_token(connection: Connection, secret: str) -> Token | None:
    """The token that a secret belongs to, unless it was revoked."""
    row = connection.execute(
        select(tokens.c.id, tokens.c.name, tokens.c.scopes).where(
            tokens.c.digest == digest(secret), tokens.c.revoked_ms.is_(None)
        )
    ).first()
    return None if row is None else Token(row.id, row.name, frozenset(row.scopes.split()))


def touch_token(connection: Connection, token: int, now_ms: int) -> None:
    """Remember that a token was used, to the hour: more would be a record of habits."""
    hour = now_ms // HOUR_MS * HOUR_MS
    connection.execute(
        update(tokens)
        .where(tokens.c.id == token, func.coalesce(tokens.c.used_ms, 0) < hour)
        .values(used_ms=hour)
    )


def had_admin(connection: Connection) -> bool:
    """Whether a token for everything was ever made, revoked or not."""
    rows = connection.execute(select(tokens.c.scopes))
    return any("admin" in row.scopes.split() for row in rows)


def list_tokens(connection: Connection) -> list[dict[str, Any]]:
    """Return the tokens that are not revoked, without their digests."""
    wanted = (tokens.c.id, tokens.c.name, tokens.c.scopes, tokens.c.created_ms, tokens.c.used_ms)
    rows = select(*wanted).where(tokens.c.revoked_ms.is_(None)).order_by(tokens.c.id)
    return [dict(row._mapping) for row in connection.execute(rows)]


def revoke_token(connection: Connection, token: int, now_ms: int) -> bool:
    """Make a token and its logins useless; False if there is none."""
    done = connection.execute(
        update(tokens)
        .where(tokens.c.id == token, tokens.c.revoked_ms.is_(None))
        .values(revoked_ms=now_ms)
    )
    connection.execute(delete(sessions).where(sessions.c.token == token))
    return bool(done.rowcount)


def create_session(connection: Connection, token: int, expires_ms: int, now_ms: int) -> str:
    """A login; returns what the cookie holds."""
    secret = secrets.token_urlsafe(32)
    connection.execute(delete(sessions).where(sessions.c.expires_ms < now_ms))
    connection.execute(
        insert(sessions).values(
            digest=digest(secret),
            token=token,
            csrf=secrets.token_urlsafe(24),
            expires_ms=expires_ms,
        )
    )
    return secret


def find_session(connection: Connection, secret: str, now_ms: int) -> Token | None:
    """Who is logged in."""
    row = connection.execute(
        select(tokens.c.id, tokens.c.name, tokens.c.scopes, sessions.c.csrf)
        .join(sessions, sessions.c.token == tokens.c.id)
        .where(
            sessions.c.digest == digest(secret),
            sessions.c.expires_ms > now_ms,
            tokens.c.revoked_ms.is_(None),
        )
    ).first()
    return None if row is None else Token(row.id, row.name, frozenset(row.scopes.split()), row.csrf)


def end_session(connection: Connection, secret: str) -> None:
    """Log out."""
    connection.execute(delete(sessions).where(sessions.c.digest == digest(secret)))
