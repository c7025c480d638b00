"""The routes of the page: log in, inbox, people, quality, shadow report, try, settings."""

from __future__ import annotations

import hmac
import json
from dataclasses import fields, replace
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import ValidationError
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from atpgraph.errors import InputError
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.api.auth import Authenticator
from atpgraph_qa.service.api.problems import ProblemError
from atpgraph_qa.service.api.routes import Cursor, PersonId, RowId, person_view, service_of
from atpgraph_qa.service.quality import quality
from atpgraph_qa.service.schemas import MOST, FeedbackIn, PersonIn
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import outbox, suggestions, tables, tokens
from atpgraph_qa.service.store.tokens import SCOPES, Token
from atpgraph_qa.service.web.charts import figures
from atpgraph_qa.service.web.render import HEADERS, render, static
from atpgraph_qa.timeline.query import Question

COOKIE = "atp_session"
DAYS = 30
FILTERS = {
    "open": ("Open", ("proposed", "delivered")),
    "accepted": ("Accepted", ("accepted",)),
    "declined": ("Declined", ("declined",)),
    "answered": ("Answered", ("answered",)),
    "all": ("All", ()),
}
router = APIRouter(include_in_schema=False)


class LoginNeededError(Exception):
    """Nobody is logged in."""


def visitor(scope: str) -> Any:
    """A dependency: who is logged in, with a scope."""

    def checked(request: Request) -> Token:
        service, auth = service_of(request), request.app.state.auth
        secret = request.cookies.get(COOKIE, "")
        if not secret:
            raise LoginNeededError
        with service.database.read() as connection:
            token = tokens.find_session(connection, secret, service.clock())
        if token is None:
            raise LoginNeededError
        auth.counted(token)
        if not token.may(scope):
            raise ProblemError(403, f"The token lacks the scope {scope!r}.")
        request.state.token = token.id
        return token

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form."""
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        parsed = parse_qs(raw, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise ProblemError(422, "The form has more than 50 fields.") from None
    return {name: values[0].replace("\0", "") for name, values in parsed.items()}


Form = Annotated[dict[str, str], Depends(form_of)]
MaySee: Any = visitor("read")
MayRoute: Any = visitor("route")
MayWrite: Any = visitor("write")
MayRule: Any = visitor("admin")


def check_csrf(request: Request, form: dict[str, str], token: Token) -> None:
    """Refuse a form that did not come from a page of ours."""
    check_origin(request)
    if not hmac.compare_digest(form.get("csrf", "").encode(), token.csrf.encode()):
        raise ProblemError(403, "The form is too old: load the page again.")


def check_origin(request: Request) -> None:
    """Refuse a form that another site sent."""
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        raise ProblemError(403, "The form comes from another site.")


def back(path: str, said: str = "") -> Response:
    """On to a page after an action."""
    return RedirectResponse(f"{path}?said={said}" if said else path, 303, HEADERS)


@router.get("/static/{name}")
def files(name: str) -> Response:
    """Style and script."""
    if name not in ("app.css", "app.js"):
        raise ProblemError(404, "There is no such file.")
    return static(name)


@router.get("/login")
def login_page(request: Request) -> Response:
    """Where to paste a token."""
    return render(request, "login.html", wrong="")


@router.post("/login")
def login(request: Request, form: Form) -> Response:
    """Exchange a token for a cookie."""
    check_origin(request)
    service, auth = service_of(request), request.app.state.auth
    client = request.client.host if request.client else ""
    try:
        token = auth.token(form.get("token", "").strip(), client)
        if not token.may("read"):
            raise ProblemError(403, "The token lacks the scope 'read'.")
    except ProblemError as error:
        return render(request, "login.html", status=error.status, wrong=error.detail)
    hours = service.settings.limits.session_hours
    until = service.clock() + round(hours * 3_600_000)
    with service.database.write() as connection:
        secret = tokens.create_session(connection, token.id, until, service.clock())
    answer = back("/inbox")
    secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, secret, max_age=round(hours * 3600), httponly=True, samesite="strict", secure=secure
    )
    return answer


@router.post("/logout")
def logout(request: Request, form: Form, token: Token = MaySee) -> Response:
    """End the login."""
    check_csrf(request, form, token)
    with service_of(request).database.write() as connection:
        tokens.end_session(connection, request.cookies[COOKIE])
    answer = back("/login")
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/")
def home() -> Response:
    """The inbox."""
    return back("/inbox")


@router.get("/inbox")
def inbox(
    request: Request, show: str = "open", cursor: Cursor = "", token: Token = MaySee
) -> Response:
    """Questions with the people suggested for them."""
    show = show if show in FILTERS else "open"
    with service_of(request).database.read() as connection:
        page = suggestions.page_of(connection, limit=20, cursor=cursor, state=FILTERS[show][1])
        newest = _newest(connection)
    filters = [(name, label) for name, (label, _) in FILTERS.items()]
    return render(
        request, "inbox.html", token, page=page, show=show, filters=filters, newest=newest
    )


def _newest(connection: Any) -> int:
    page = suggestions.page_of(connection, limit=1)
    return int(page.rows[0]["id"]) if page.rows else 0


@router.get("/inbox/newest")
def newest(request: Request, token: Token = MaySee) -> Response:
    """The number of the newest suggestion, so that an open page can tell."""
    with service_of(request).database.read() as connection:
        return JSONResponse({"newest": _newest(connection)})


@router.get("/inbox/{suggestion}")
def one(request: Request, suggestion: RowId, token: Token = MaySee) -> Response:
    """A suggestion with every decision."""
    with service_of(request).database.read() as connection:
        found = suggestions.get_suggestion(connection, suggestion)
    if found is None:
        raise ProblemError(404, "There is no such suggestion.")
    return render(request, "suggestion.html", token, s=found)


@router.post("/inbox/{suggestion}/feedback")
def feedback(request: Request, suggestion: RowId, form: Form, token: Token = MayWrite) -> Response:
    """Accept, decline, reassign."""
    check_csrf(request, form, token)
    person = form.get("person", "").strip()
    if person and not (person.isascii() and person.isdigit() and len(person) < 17):
        raise ProblemError(422, "A user id is a number.")
    given = _valid(
        FeedbackIn, {"verdict": form.get("verdict"), "person": int(person) if person else None}
    )
    found = service_of(request).engine.feedback(
        suggestion, given.verdict, person=given.person, token=token.id
    )
    if found is None:
        raise ProblemError(404, "There is no such suggestion.")
    return back("/inbox", given.verdict)


@router.get("/people")
def people(
    request: Request, find: Annotated[str, Query(max_length=100)] = "", cursor: Cursor = "",
    token: Token = MaySee,
) -> Response:  # fmt: skip
    """People who were asked or set something; anybody by id or name."""
    service = service_of(request)
    find = find.strip()
    if find:
        wanted = [int(find)] if find.isascii() and find.isdigit() and int(find) <= MOST else []
        wanted += [p.id for p in service.engine.directory if find.lower() in p.handle.lower()][:50]
        rows, further = wanted, ""
    else:
        loads = _loads(service)
        known = {person.id for person in service.engine.directory} | set(loads)
        order = sorted(known, key=lambda user: (-loads.get(user, 0), user))
        at = suggestions.read_cursor(cursor) if cursor else 0
        rows = order[at : at + 50]
        further = suggestions.make_cursor(at + 50) if len(order) > at + 50 else ""
    views = [person_view(service, user) for user in dict.fromkeys(rows)]
    found = [view for view in views if view is not None]
    return render(request, "people.html", token, people=found, find=find, cursor=further)


@router.get("/people/{person}")
def one_person(request: Request, person: PersonId, token: Token = MaySee) -> Response:
    """A person and their settings."""
    found = person_view(service_of(request), person)
    if found is None:
        raise ProblemError(404, "The site does not know this person.")
    return render(request, "person.html", token, p=found)


@router.post("/people/{person}")
def change_person(
    request: Request, person: PersonId, form: Form, token: Token = MayWrite
) -> Response:
    """Keep what the form says."""
    check_csrf(request, form, token)
    service = service_of(request)
    if person_view(service, person) is None or person in service.engine.forgotten_people:
        raise ProblemError(404, "The site does not know this person.")
    capacity = form.get("capacity", "").strip()
    if capacity and not (capacity.isascii() and capacity.isdigit() and len(capacity) < 5):
        raise ProblemError(422, "The capacity is a number.")
    given: dict[str, Any] = {
        "opted_out": "opted_out" in form,
        "capacity": int(capacity) if capacity else None,
        **{name: form.get(name, "").strip() for name in ("away_until", "hours", "time_zone")},
        **{name: _listed(form.get(name, "")) for name in ("topics", "groups")},
    }
    changes = _valid(PersonIn, given).changes()
    service.save_person(replace(service.engine.directory[person], **changes))
    return back(f"/people/{person}", "saved")


@router.post("/people/{person}/forget")
def forget(request: Request, person: PersonId, form: Form, token: Token = MayRule) -> Response:
    """Forget a person."""
    check_csrf(request, form, token)
    service_of(request).forget(person)
    return back("/people", "forgotten")


@router.get("/quality")
def quality_page(request: Request, token: Token = MaySee) -> Response:
    """Charts."""
    service = service_of(request)
    with service.database.read() as connection:
        found = quality(connection, service.clock() - DAYS * DAY_MS, DAYS)
    loads = _loads(service)
    most = sorted(loads.items(), key=lambda pair: (-pair[1], pair[0]))[:12]
    asks = [(service.engine.directory[u].handle or f"user {u}", count) for u, count in most]
    return render(request, "quality.html", token, q=found, figures=figures(found, asks))


def _loads(service: Service) -> dict[int, int]:
    """How often people were asked in the last week."""
    people, asked = service.engine.asks.week(service.clock())
    return dict(zip(people.tolist(), asked.tolist(), strict=True))


@router.get("/shadow")
def shadow(request: Request, token: Token = MaySee) -> Response:
    """What would have happened."""
    service = service_of(request)
    since = service.clock() - DAYS * DAY_MS
    with service.database.read() as connection:
        found = quality(connection, since, DAYS, shadow=True)
        page = suggestions.page_of(connection, limit=30, shadow=True, since_ms=since)
    rows = [row for row in page.rows if row["round"] == 0]
    return render(request, "shadow.html", token, q=found, rows=rows)


@router.get("/try")
def try_page(request: Request, token: Token = MayRoute) -> Response:
    """A form for a question."""
    asked = {"title": "", "body": "", "tags": ""}
    return render(request, "try.html", token, asked=asked, advice=None)


@router.post("/try")
async def try_question(request: Request, form: Form, token: Token = MayRoute) -> Response:
    """Whom to ask."""
    check_csrf(request, form, token)
    asked = {name: form.get(name, "")[:20_000] for name in ("title", "body", "tags")}
    question = Question(asked["title"], asked["body"], tuple(_listed(asked["tags"])))
    engine, pool = service_of(request).engine, request.app.state.pool
    advice = await pool.run(lambda: engine.route(question))
    return render(request, "try.html", token, asked=asked, advice=advice)


@router.get("/settings")
def settings_page(request: Request, token: Token = MayRule) -> Response:
    """Settings, tokens, messages, models."""
    return _settings(request, token)


def _settings(request: Request, token: Token, made: str = "") -> Response:
    service = service_of(request)
    with service.database.read() as connection:
        known = select(tables.tokens).where(tables.tokens.c.revoked_ms.is_(None))
        rows = [
            dict(row._mapping) for row in connection.execute(known.order_by(tables.tokens.c.id))
        ]
        off = [dict(row._mapping) for row in connection.execute(select(tables.switched_off))]
        newest = select(tables.models).order_by(tables.models.c.id.desc()).limit(5)
        models = [dict(row._mapping) for row in connection.execute(newest)]
        messages = outbox.listed(connection, 30)
    for entry in models:
        entry["judged"] = {"questions": 0, **json.loads(entry["judged"])}
    texts = {
        f"{section.name}.{item.name}": item.metadata["help"]
        for section in fields(service.settings)
        for item in fields(getattr(service.settings, section.name))
    }
    return render(
        request, "settings.html", token, settings=service.settings.shown(), help=texts,
        tokens=rows, off=off, models=models, messages=messages, made=made, scopes=SCOPES,
        learning=service.trainer.running,
    )  # fmt: skip


@router.post("/settings/retrain")
def retrain(request: Request, form: Form, token: Token = MayRule) -> Response:
    """Learn again."""
    check_csrf(request, form, token)
    service_of(request).trainer.start()
    return back("/settings", "learning")


@router.post("/settings/tokens")
def make_token(request: Request, form: Form, token: Token = MayRule) -> Response:
    """A new token, shown once."""
    check_csrf(request, form, token)
    service = service_of(request)
    name = form.get("name", "").strip()[:200]
    if not name:
        raise ProblemError(422, "A token needs a name.")
    with service.database.write() as connection:
        made = tokens.create_token(connection, name, [form.get("scope", "")], service.clock())[1]
    return _settings(request, token, made)


@router.post("/settings/tokens/{number}/revoke")
def revoke(request: Request, number: RowId, form: Form, token: Token = MayRule) -> Response:
    """End a token."""
    check_csrf(request, form, token)
    service = service_of(request)
    with service.database.write() as connection:
        tokens.revoke_token(connection, number, service.clock())
    auth: Authenticator = request.app.state.auth
    auth.forget()
    return back("/settings", "revoked")


@router.post("/settings/messages/{message}/redeliver")
def redeliver(request: Request, message: str, form: Form, token: Token = MayRule) -> Response:
    """Send a message again."""
    check_csrf(request, form, token)
    service = service_of(request)
    with service.database.write() as connection:
        outbox.redeliver(connection, message[:64].replace("\0", ""), service.clock())
    return back("/settings", "waiting")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _valid(kind: Any, values: dict[str, Any]) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{place}: {first['msg']}.") from None


def add_pages(app: FastAPI) -> None:
    """Add the page to an application."""
    app.include_router(router)

    @app.exception_handler(LoginNeededError)
    async def _(request: Request, error: LoginNeededError) -> Response:
        return await run_in_threadpool(back, "/login")
