"""Who calls: tokens in the Authorization header, with scopes and rates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from atpgraph_qa.service.api.limits import Buckets
from atpgraph_qa.service.api.problems import ProblemError
from atpgraph_qa.service.settings import Limits
from atpgraph_qa.service.store import tokens
from atpgraph_qa.service.store.database import Database, DatabaseGoneError
from atpgraph_qa.service.store.tokens import Token

_KEPT_S = 30.0  # how long a token is known without asking the database
_BEARER = HTTPBearer(auto_error=False, description="A token, see POST /v1/tokens.")


class Authenticator:
    """Knows tokens, and stops callers who do too much."""

    def __init__(self, database: Database, limits: Limits, clock: Callable[[], int]) -> None:
        self.database, self.clock = database, clock
        self.rates = Buckets(limits.per_second, limits.burst)
        self.failures = Buckets(limits.failures_per_minute / 60, limits.failures_per_minute)
        self._known: dict[str, tuple[Token, float]] = {}
        self._lock = threading.Lock()

    def known(self, secret: str) -> Token | None:
        """Return the token of a secret that was looked up a moment ago."""
        known = self._known.get(tokens.digest(secret))
        return known[0] if known is not None and time.monotonic() < known[1] else None

    def token(self, secret: str, client: str) -> Token:
        """Return the token of a secret, or raise a problem. A wrong one costs no write."""
        found = self.known(secret)
        if found is None:
            found = self._look_up(secret, client)
        self.check_rate(found.id)
        return found

    def _look_up(self, secret: str, client: str) -> Token:
        digest = tokens.digest(secret)
        try:
            with self.database.read() as connection:
                found = tokens.find_token(connection, secret)
            if found is not None:
                with self.database.write() as connection:
                    tokens.touch_token(connection, found.id, self.clock())
        except DatabaseGoneError:
            # Whoever was known goes on routing meanwhile; a revoked token is not in there.
            if digest not in self._known:
                raise
            return self._known[digest][0]
        if found is None:
            _check(self.failures, client)
            raise ProblemError(401, "The token is not known.", {"WWW-Authenticate": "Bearer"})
        with self._lock:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[digest] = found, time.monotonic() + _KEPT_S
        return found

    def check_rate(self, caller: Hashable) -> None:
        """Raise a problem if a caller does too much."""
        _check(self.rates, caller)

    def forget(self) -> None:
        """Look every token up again: one was revoked."""
        with self._lock:
            self._known.clear()


def _check(buckets: Buckets, caller: Hashable) -> None:
    wait = buckets.take(caller)
    if wait:
        raise ProblemError(429, f"Try again in {wait} s.", {"Retry-After": str(wait)})


def client_of(request: Request) -> str:
    """Return the address of the caller."""
    return request.client.host if request.client else ""


async def token_of(request: Request, scope: str) -> Token:
    """Return the caller's token, which must have a scope."""
    auth: Authenticator = request.app.state.auth
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise ProblemError(
            401, "Send a token: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
        )
    secret, client = secret.strip(), client_of(request)
    if auth.known(secret) is None:  # the database is asked off the event loop
        token = await run_in_threadpool(auth.token, secret, client)
    else:
        token = auth.token(secret, client)
    if not token.may(scope):
        raise ProblemError(403, f"The token lacks the scope {scope!r}.")
    request.state.token = token.id
    return token


def needs(scope: str) -> Any:
    """Return a dependency: the caller's token, which must have a scope."""

    async def checked(
        request: Request,
        _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    ) -> Token:
        return await token_of(request, scope)

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)
