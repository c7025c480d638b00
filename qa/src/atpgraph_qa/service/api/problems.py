"""Errors as problem details (RFC 9457)."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from atpgraph.errors import InputError
from atpgraph_qa.service.out.signing import ForgedError
from atpgraph_qa.service.store.database import DatabaseGoneError, NotInChargeError

LOG = logging.getLogger("atpgraph.serve")
MEDIA = "application/problem+json"
TITLES = {
    400: "Bad request", 401: "Token needed", 403: "Scope needed", 404: "Not found",
    405: "Method not allowed", 408: "Too slow", 409: "Conflict", 413: "Too large", 415: "Not JSON",
    422: "Not valid", 429: "Too many requests", 500: "A bug", 503: "Not available now",
}  # fmt: skip


class ProblemOut(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = ""


class ProblemError(Exception):
    """An error to answer with."""

    def __init__(self, status: int, detail: str = "", headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def problem(status: int, detail: str = "", headers: dict[str, str] | None = None) -> Response:
    """The answer for a problem."""
    title = TITLES.get(status, "Error")
    name = title.lower().replace(" ", "-")
    content = {
        "type": f"urn:atpgraph:problem:{name}", "title": title, "status": status, "detail": detail
    }  # fmt: skip
    return JSONResponse(content, status, headers, MEDIA)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer besides success, for the OpenAPI document."""
    wanted = sorted({401, 403, 422, 429, 503, *statuses})
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {
        status: {"description": TITLES[status], "content": {MEDIA: {"schema": schema}}}
        for status in wanted
    }


def answer_problems(app: FastAPI) -> None:
    """Turn whatever is raised into a problem."""

    @app.exception_handler(ProblemError)
    def _(request: Request, error: ProblemError) -> Response:
        return problem(error.status, error.detail, error.headers)

    @app.exception_handler(RequestValidationError)
    def _(request: Request, error: RequestValidationError) -> Response:
        # Where and what, never the value: it may be personal.
        said = [
            f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}"
            for entry in error.errors()[:5]
        ]
        return problem(422, "; ".join(said))

    @app.exception_handler(HTTPException)
    def _(request: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(InputError)
    def _(request: Request, error: InputError) -> Response:
        return problem(422, str(error))

    @app.exception_handler(ForgedError)
    def _(request: Request, error: ForgedError) -> Response:
        return problem(401, str(error))

    @app.exception_handler(DatabaseGoneError)
    def _(request: Request, error: DatabaseGoneError) -> Response:
        return problem(503, str(error), {"Retry-After": "5"})

    @app.exception_handler(NotInChargeError)
    def _(request: Request, error: NotInChargeError) -> Response:
        return problem(503, str(error), {"Retry-After": "30"})

    @app.exception_handler(Exception)
    def _(request: Request, error: Exception) -> Response:
        # The message of an unforeseen error may quote data; its kind and place do not.
        trace, last = error.__traceback__, ""
        while trace is not None:
            last = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
            trace = trace.tb_next
        LOG.error("bug", extra={"facts": {"kind": type(error).__name__, "place": last}})
        return problem(500, f"{type(error).__name__} at {last}.")
