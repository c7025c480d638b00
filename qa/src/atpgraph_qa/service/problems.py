"""Errors with a status: problem details (RFC 9457) for machines, a page for people."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from atpgraph.errors import AtpError, InputError

LOG = logging.getLogger("atpgraph.serve")
MEDIA = "application/problem+json"
TITLES = {
    400: "Bad request", 401: "Token needed", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 408: "Too slow", 409: "Conflict", 413: "Too large", 415: "Not JSON",
    422: "Not valid", 429: "Too many requests", 500: "A bug", 503: "Not available now",
}  # fmt: skip


class ProblemOut(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = ""


class ProblemError(AtpError):
    """An error response; `wait` is the number of seconds after which to try again."""

    def __init__(
        self, status: int, detail: str = "", headers: dict[str, str] | None = None, wait: int = 0
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})
        self.title = TITLES.get(status, "Error")
        if wait:
            self.headers["Retry-After"] = str(wait)

    def response(self) -> Response:
        """Return the answer as JSON."""
        name = f"urn:atpgraph:problem:{self.title.lower().replace(' ', '-')}"
        content = ProblemOut(type=name, title=self.title, status=self.status, detail=self.detail)
        return JSONResponse(content.model_dump(), self.status, self.headers, MEDIA)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route may answer with, for the OpenAPI document."""
    content = {MEDIA: {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    return {status: {"description": TITLES[status], "content": content} for status in statuses}


def as_problem(error: Exception) -> ProblemError:
    """Return the problem that answers an exception."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, (RequestValidationError, ValidationError)):
        # The place and the error, but not the value, which may be personal.
        said = [
            f"{'.'.join(map(str, entry['loc']))}: {entry['msg'].removeprefix('Value error, ')}"
            for entry in error.errors()[:5]
        ]
        return ProblemError(422, "; ".join(said))
    if isinstance(error, HTTPException):
        return ProblemError(error.status_code, str(error.detail), dict(error.headers or {}))
    if isinstance(error, InputError):
        return ProblemError(422, str(error))
    # The message of an unexpected error may quote data; its kind and place do not.
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    LOG.error("bug", extra={"facts": {"kind": type(error).__name__, "place": place}})
    return ProblemError(500, f"{type(error).__name__} at {place}.")
