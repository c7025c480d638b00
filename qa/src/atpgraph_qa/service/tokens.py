"""Tokens and sessions: random, with scopes; only digests are stored. Rate limits of callers."""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from atpgraph.errors import InputError
from atpgraph_qa.advisor.policies import HOUR_MS
from atpgraph_qa.service.database import Database, DatabaseGoneError
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.settings import Limits
from atpgraph_qa.service.tables import Row, add, change, find, note, remove, sessions, tokens

_KNOWN_S = 30.0  # how long a token is cached
_MOST = 10_000  # callers that are remembered
SCOPES = ("read", "route", "write", "admin")


@dataclass(frozen=True)
class Token:
    """A caller and their scopes; `csrf` protects forms of a session."""

    id: int
    name: str
    scopes: frozenset[str]
    csrf: str = ""

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope; ``admin`` has all scopes."""
        return scope in self.scopes or "admin" in self.scopes

    def digest(self, call: str, key: str) -> str:
        """Return the digest of a key that this token sent with a call; empty for no key."""
        return digest(f"{self.id} {call} {key}") if key else ""

    def __str__(self) -> str:
        return f"{self.name} (token {self.id})" if self.id else self.name


GUEST = Token(0, "", frozenset())  # nobody is logged in


def digest(secret: str) -> str:
    """Return the digest to store, which is enough to recognize a token but not to use it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def check_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes in order, or raise an error if one is unknown."""
    given = set(scopes)
    if not given or not given <= set(SCOPES):
        raise InputError(f"Choose scopes among {', '.join(SCOPES)}.")
    return [scope for scope in SCOPES if scope in given]


def create_token(
    connection: Connection, name: str, scopes: Iterable[str], now_ms: int, who: str = ""
) -> tuple[int, str]:
    """Create a token; return its id, and the token itself, which is not stored."""
    secret, wanted = f"atp_{secrets.token_urlsafe(32)}", " ".join(check_scopes(scopes))
    values = {"name": name, "digest": digest(secret), "scopes": wanted, "created_ms": now_ms}
    number = add(connection, tokens, **values)
    if who:
        note(connection, now_ms, who, f"made token {number}")
    return number, secret


def find_token(connection: Connection, secret: str) -> Token | None:
    """Return the token that a secret belongs to, unless it was revoked."""
    return _valid(connection, select(tokens).where(tokens.c.digest == digest(secret)))


def list_tokens(connection: Connection) -> list[Row]:
    """Return the tokens that are not revoked, without their digests."""
    t = tokens.c
    query = select(t.id, t.name, t.scopes, t.created_ms, t.used_ms).where(t.revoked_ms.is_(None))
    return find(connection, query.order_by(t.id))


def revoke_token(connection: Connection, token: int, now_ms: int, who: str) -> None:
    """Revoke a token and its sessions."""
    remove(connection, sessions, sessions.c.token == token)
    which = (tokens.c.id == token) & tokens.c.revoked_ms.is_(None)
    if not change(connection, tokens, which, revoked_ms=now_ms):
        raise ProblemError(404, f"There is no token {token}.")
    note(connection, now_ms, who, f"revoked token {token}")


def create_session(connection: Connection, token: int, expires_ms: int, now_ms: int) -> str:
    """Log in; return the content of the cookie."""
    secret, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
    remove(connection, sessions, sessions.c.expires_ms < now_ms)
    add(
        connection, sessions, digest=digest(secret), token=token, csrf=csrf, expires_ms=expires_ms
    )  # fmt: skip
    return secret


def find_session(connection: Connection, secret: str, now_ms: int) -> Token:
    """Return the token of whoever is logged in, or the guest."""
    query = select(tokens, sessions.c.csrf).join(sessions, sessions.c.token == tokens.c.id)
    mine = (sessions.c.digest == digest(secret)) & (sessions.c.expires_ms > now_ms)
    return _valid(connection, query.where(mine)) or GUEST


def _valid(connection: Connection, query: Any) -> Token | None:
    for row in find(connection, query.where(tokens.c.revoked_ms.is_(None))):
        return Token(row["id"], row["name"], frozenset(row["scopes"].split()), row.get("csrf", ""))
    return None


class Buckets:
    """A rate limiter: a bucket for each caller, refilled at a rate."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._held: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: Hashable) -> int:
        """Return 0 if the caller may continue, else the seconds to wait."""
        with self._lock:
            now = self.clock()
            level, then = self._held.pop(caller, (self.burst, now))
            level = min(self.burst, level + (now - then) * self.rate)
            self._held[caller] = (level - 1 if level >= 1 else level), now
            if len(self._held) > _MOST:
                self._held.popitem(last=False)
            return 0 if level >= 1 else max(1, math.ceil((1 - level) / self.rate))

    def check(self, caller: Hashable) -> None:
        """Raise a problem if the caller is over the limit."""
        if wait := self.take(caller):
            raise ProblemError(429, f"Try again in {wait} s.", wait=wait)


class Authenticator:
    """Checks tokens and limits the rate of callers."""

    def __init__(self, database: Database, limits: Limits, clock: Callable[[], int]) -> None:
        self.database, self.clock = database, clock
        self.rates = Buckets(limits.per_second, limits.burst)
        self.failures = Buckets(limits.failures_per_minute / 60, limits.failures_per_minute)
        self._known: dict[str, tuple[Token, float]] = {}

    def known(self, secret: str) -> Token | None:
        """Return the token of a recently checked secret, if it is still in the cache."""
        token, until = self._known.get(digest(secret), (None, 0.0))
        return token if time.monotonic() < until else None

    def look_up(self, secret: str, client: str) -> Token:
        """Return the token of a secret, or raise a problem. A wrong secret causes no write."""
        key, hour_ms = digest(secret), self.clock() // HOUR_MS * HOUR_MS
        try:
            with self.database.read() as connection:
                found = find_token(connection, secret)
            if found is not None:  # the minute of its last use would tell about people's habits
                used = (tokens.c.id == found.id) & (func.coalesce(tokens.c.used_ms, 0) < hour_ms)
                with self.database.write() as connection:
                    change(connection, tokens, used, used_ms=hour_ms)
        except DatabaseGoneError:
            # Callers that were known go on routing meanwhile; a revoked token is not among them.
            if key not in self._known:
                raise
            return self._known[key][0]
        if found is None:
            self.failures.check(client)
            raise ProblemError(401, "The token is not known.", {"WWW-Authenticate": "Bearer"})
        if len(self._known) > _MOST:
            self._known.clear()
        self._known[key] = found, time.monotonic() + _KNOWN_S
        return found

    def forget(self) -> None:
        """Clear the cached tokens, because one was revoked."""
        self._known.clear()
