"""Errors as problem details (RFC 9457); for people in a browser, as a page."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from atpgraph.errors import InputError
from atpgraph_qa.service.limiter import BusyError
from atpgraph_qa.service.out.signing import ForgedError
from atpgraph_qa.service.store.database import DatabaseGoneError, NotInChargeError
from atpgraph_qa.service.suggester import ConflictError

LOG = logging.getLogger("atpgraph.serve")
MEDIA = "application/problem+json"
TITLES = {
    400: "Bad request", 401: "Token needed", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 408: "Too slow", 409: "Conflict", 413: "Too large", 415: "Not JSON",
    422: "Not valid", 429: "Too many requests", 500: "A bug", 503: "Not available now",
}  # fmt: skip
# Status and seconds to wait for errors that say in words what is wrong.
_STATUS: dict[type[Exception], tuple[int, int]] = {
    InputError: (422, 0), ForgedError: (401, 0), ConflictError: (409, 0), BusyError: (503, 1),
    DatabaseGoneError: (503, 5), NotInChargeError: (503, 30),
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
    """Return the answer for a problem."""
    title = TITLES.get(status, "Error")
    name = title.lower().replace(" ", "-")
    content = {
        "type": f"urn:atpgraph:problem:{name}", "title": title, "status": status, "detail": detail
    }  # fmt: skip
    return JSONResponse(content, status, headers, MEDIA)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route may answer besides success, for the OpenAPI document."""
    wanted = sorted({400, 401, 403, 408, 413, 422, 429, 503, *statuses})
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {
        status: {"description": TITLES[status], "content": {MEDIA: {"schema": schema}}}
        for status in wanted
    }


def as_problem(error: Exception) -> ProblemError:
    """Return what to answer when something was raised."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        # Where and what, never the value: it may be personal.
        said = [
            f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}"
            for entry in error.errors()[:5]
        ]
        return ProblemError(422, "; ".join(said))
    if isinstance(error, HTTPException):
        return ProblemError(error.status_code, str(error.detail), dict(error.headers or {}))
    for kind, (status, wait) in _STATUS.items():
        if isinstance(error, kind):
            return ProblemError(status, str(error), {"Retry-After": str(wait)} if wait else {})
    # The message of an unforeseen error may quote data; its kind and place do not.
    trace, last = error.__traceback__, ""
    while trace is not None:
        last = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
        trace = trace.tb_next
    LOG.error("bug", extra={"facts": {"kind": type(error).__name__, "place": last}})
    return ProblemError(500, f"{type(error).__name__} at {last}.")


def answer_problems(
    app: FastAPI, page: Callable[[Request, ProblemError], Response] | None = None
) -> None:
    """Answer whatever is raised with a problem; with `page`, in a browser with a page."""

    def answer(request: Request, error: Exception) -> Response:
        found = as_problem(error)
        machine = request.url.path.startswith(("/v1", "/metrics", "/livez", "/readyz", "/openapi"))
        if page is not None and not machine:
            return page(request, found)
        return problem(found.status, found.detail, found.headers)

    for kind in (ProblemError, RequestValidationError, HTTPException, Exception, *_STATUS):
        app.add_exception_handler(kind, answer)
