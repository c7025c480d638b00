"""Templates, filters and the security headers of the page."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from atpgraph.util.palette import DARK, LIGHT, variables
from atpgraph_qa._version import __version__
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store.tokens import Token

SECTIONS = (
    ("/inbox", "Inbox"), ("/people", "People"), ("/quality", "Quality"), ("/shadow", "Shadow"),
    ("/try", "Try"), ("/settings", "Settings"),
)  # fmt: skip
# What happened, by the word in the address after an action.
SAID = {
    "accepted": "Accepted.", "declined": "Declined.", "reassigned": "Reassigned.",
    "saved": "Saved.", "forgotten": "Forgotten everywhere.", "revoked": "Revoked.",
    "learning": "Learning again; this takes a while.", "waiting": "It will be sent again.",
}  # fmt: skip
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY"}


def when(moment_ms: int) -> str:
    """A moment for people, in UTC.

    Examples
    --------
    >>> when(1_790_000_000_000)
    '2026-09-21 14:13 UTC'
    """
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def percent(value: float | None) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.123), percent(0.004), percent(None)
    ('12 %', '0.4 %', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.0%}".replace("%", " %") if value >= 0.0095 else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """A figure with three digits."""
    return "–" if value is None else f"{value:.3f}"


def setting(value: object) -> str:
    """A value of a setting as in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "–"


_TEMPLATES = Environment(
    loader=PackageLoader("atpgraph_qa.service.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {"when": when, "percent": percent, "number": number, "setting": setting}


def render(
    request: Request, name: str, token: Token | None = None, *, status: int = 200, **values: Any
) -> Response:
    """A page."""
    service: Service = request.app.state.service

    def names(user: int) -> str:
        return service.engine.directory[user].handle or f"user {user}"

    def csrf() -> Markup:
        hidden = Markup('<input type="hidden" name="csrf" value="{}">')
        return hidden.format(token.csrf if token is not None else "")

    here = "/" + request.url.path.strip("/").partition("/")[0]
    context = {
        "who": None if token is None else token.name,
        "may_write": token is not None and token.may("write"),
        "may_rule": token is not None and token.may("admin"),
        "sections": [s for s in SECTIONS if token is None or _shown(s[0], token)],
        "here": here,
        "shadow": service.settings.policy.shadow,
        "said": SAID.get(request.query_params.get("said", "")),
        "version": __version__,
        "model": service.engine.model,
        "names": names,
        "csrf": csrf,
        "per_week": service.settings.policy.per_week,
        **values,
    }
    return HTMLResponse(_TEMPLATES.get_template(name).render(context), status, HEADERS)


def _shown(path: str, token: Token) -> bool:
    return token.may({"/try": "route", "/settings": "admin"}.get(path, "read"))


def static(name: str) -> Response:
    """A file of the page."""
    text = files("atpgraph_qa.service.web").joinpath("static", name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        light = f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
        dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
        return Response(light + dark + text, media_type="text/css")
    return Response(text, media_type="text/javascript")
