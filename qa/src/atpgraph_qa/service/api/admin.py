"""Routes for who runs the service: tokens, models, messages, hooks, health."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy import select, text
from starlette.concurrency import run_in_threadpool

from atpgraph.errors import AtpError
from atpgraph_qa.service import schemas
from atpgraph_qa.service.api import answers
from atpgraph_qa.service.api.idempotency import Key, run_once
from atpgraph_qa.service.api.problems import ProblemError, described, problem
from atpgraph_qa.service.api.routes import MayRule, MaySee, RowId, service_of
from atpgraph_qa.service.out.adapters import ADAPTERS
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import outbox, tables, tokens
from atpgraph_qa.service.store.database import DatabaseGoneError
from atpgraph_qa.service.store.tokens import Token

router = APIRouter()
_SOURCES = {"discourse": "discourse", "generic": "webhook", "slack": "slack"}


@router.post(
    "/v1/tokens", status_code=201, summary="A new token", tags=["administration"],
    responses={201: {"model": answers.TokenOut}, **described()},
)  # fmt: skip
def new_token(request: Request, given: schemas.TokenIn, token: Token = MayRule) -> Response:
    """Shown this once; only a digest is kept."""
    service = service_of(request)
    with service.database.write() as connection:
        name = given.name.replace("\0", "")
        number, secret = tokens.create_token(connection, name, given.scopes, service.clock())
    scopes = list(tokens.check_scopes(given.scopes))
    return JSONResponse({"id": number, "token": secret, "scopes": scopes}, 201)


@router.delete(
    "/v1/tokens/{number}", summary="Revoke a token", tags=["administration"],
    responses={200: {"model": answers.StatusOut}, **described(404)},
)  # fmt: skip
def revoke(request: Request, number: RowId, token: Token = MayRule) -> Response:
    """It and its logins end at once."""
    service = service_of(request)
    with service.database.write() as connection:
        done = tokens.revoke_token(connection, number, service.clock())
    if not done:
        raise ProblemError(404, "There is no such token.")
    request.app.state.auth.forget()
    return JSONResponse({"status": "revoked"})


@router.post(
    "/v1/models/retrain", status_code=202, summary="Learn again", tags=["administration"],
    responses={202: {"model": answers.StatusOut}, **described(409)},
)  # fmt: skip
def retrain(request: Request, key: Key = None, token: Token = MayRule) -> Response:
    """In a process of its own; new weights are used if they rank the last questions no worse."""
    service = service_of(request)

    def make() -> tuple[int, Any]:
        if service.trainer.running:
            raise ProblemError(409, "The service is learning already.", {"Retry-After": "60"})
        service.trainer.start()
        return 202, {"status": "learning"}

    return run_once(request, token, key, {}, make)


@router.get(
    "/v1/models", summary="Models and how they were judged", tags=["administration"],
    responses={200: {"model": dict[str, Any]}, **described()},
)  # fmt: skip
def models(request: Request, token: Token = MaySee) -> Response:
    """The one in use, and what became of those that were trained."""
    service = service_of(request)
    with service.database.read() as connection:
        query = select(tables.models).order_by(tables.models.c.id.desc()).limit(20)
        rows = [dict(row._mapping) for row in connection.execute(query)]
    return JSONResponse(
        {"in_use": service.engine.model, "learning": service.trainer.running, "trained": rows}
    )


@router.get(
    "/v1/messages", summary="What went out", tags=["administration"],
    responses={200: {"model": answers.MessagesOut}, **described()},
)  # fmt: skip
def messages(request: Request, token: Token = MayRule) -> Response:
    """The delivery log: state, attempts and last error of the newest messages."""
    with service_of(request).database.read() as connection:
        items = outbox.listed(connection)
        off = [dict(row._mapping) for row in connection.execute(select(tables.switched_off))]
    return JSONResponse({"items": items, "switched_off": off})


@router.post(
    "/v1/messages/{message}/redeliver", status_code=202, summary="Send a message again",
    tags=["administration"], responses={202: {"model": answers.StatusOut}, **described(404)},
)  # fmt: skip
def redeliver(
    request: Request, message: str = Path(max_length=64), token: Token = MayRule
) -> Response:
    """Also one that is dead or uncertain; an adapter that was switched off is used again."""
    service = service_of(request)
    with service.database.write() as connection:
        done = outbox.redeliver(connection, message.replace("\0", ""), service.clock())
    if not done:
        raise ProblemError(404, "There is no such message, or it is on its way.")
    return JSONResponse({"status": "waiting"}, 202)


@router.post(
    "/v1/hooks/{source}", status_code=202, summary="Signed events of a site", tags=["events"],
    responses={202: {"model": answers.HookOut}, **described(404)},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {}}}},
)  # fmt: skip
async def hook(request: Request, source: str = Path(max_length=40)) -> Response:
    """``discourse``, ``slack`` or ``generic``: no token, the signature over the raw body counts."""
    service = service_of(request)
    if source not in _SOURCES:
        raise ProblemError(404, f"Hooks are {', '.join(_SOURCES)}.")
    body = await request.body()
    adapter = ADAPTERS[_SOURCES[source]](service.settings)

    def work() -> dict[str, Any]:
        # Signature first: what strangers send must not use up the rate of the real sender.
        incoming = adapter.parse(request.headers, body, service.clock())
        wait = request.app.state.auth.rates.take(f"hook:{source}")
        if wait:
            raise ProblemError(429, f"Try again in {wait} s.", {"Retry-After": str(wait)})
        return service.receive(incoming)

    return JSONResponse(await run_in_threadpool(work), 202)


@router.get("/livez", summary="Is the process alive", tags=["health"])
def live() -> Response:
    """Says yes."""
    return JSONResponse({"status": "alive"})


@router.get(
    "/readyz", summary="Can it work", tags=["health"],
    responses={503: {"description": "Not available now"}},
)  # fmt: skip
def ready(request: Request) -> Response:
    """Whether the database answers and the history is loaded."""
    service: Service = request.app.state.service
    if not service.ready:
        return problem(503, "Starting, stopping, or not in charge.", {"Retry-After": "5"})
    try:
        ahead = service.engine.dated_ahead()
        if ahead:
            return problem(503, ahead, {"Retry-After": "60"})
        with service.database.read() as connection:
            connection.execute(text("SELECT 1"))
    except (DatabaseGoneError, AtpError):
        return problem(503, "The database does not answer.", {"Retry-After": "5"})
    return JSONResponse({"status": "ready"})
