"""The pages for moderators; they call the functions of the API."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from anyio import from_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from markupsafe import Markup
from pydantic import ValidationError
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import render, routes, schemas, suggestions, tables, tokens
from atpgraph_qa.service.problems import ProblemError, as_problem
from atpgraph_qa.service.routes import Cursor, Find, MessageId, PersonId, RowId
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.tables import Row
from atpgraph_qa.service.tokens import GUEST, SCOPES, Token

COOKIE = "atp_session"
DAYS = 30
FILTERS: dict[str, tuple[str, ...]] = {  # states by the name of a filter
    "open": ("proposed", "delivered"),
    "asked": ("accepted", "reassigned", "delivered"),
    "answered": ("answered",),
    "ended": ("declined", "expired", "withdrawn"),
    "all": (),
}
router = APIRouter(include_in_schema=False)
OPT_OUT = Token(0, "opt-out link", frozenset())


def logged_in(request: Request) -> Token:
    """Return the token behind a session."""
    service, secret = routes.service_of(request), request.cookies.get(COOKIE, "")
    if not secret:
        return GUEST
    with service.database.read() as connection:
        return tokens.find_session(connection, secret, service.clock())


@dataclass
class Visit:
    """A request to a page: who is logged in, the form they sent, and the error in it."""

    request: Request
    service: Service
    who: Token = GUEST
    form: dict[str, str] = field(default_factory=dict)
    status: int = 200
    wrong: str = ""
    made: str = ""  # a new token, to be shown

    def text(self, name: str) -> str:
        """Return a field of the form."""
        return self.form.get(name, "").strip()

    def listed(self, name: str) -> list[str]:
        """Return the values of a field that are separated by commas."""
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def show(self, name: str, **values: Any) -> Response:
        """Return a page; after a wrong form, with the reason and what was typed."""
        engine, rules = self.service.engine, self.service.settings.policy
        hidden = Markup('<input type="hidden" name="csrf" value="{}">').format(self.who.csrf)
        context = {
            "visit": self, "may": self.who.may, "typed": self.form if self.wrong else {},
            "said": self.request.query_params.get("said"), "csrf": hidden,
            "here": "/" + self.request.url.path.strip("/").partition("/")[0],
            "engine": engine, "mode": engine.mode, "names": self.service.suggester.name,
            "rules": rules, "when": partial(render.when, zone=rules.time_zone),
        }  # fmt: skip
        page = render.TEMPLATES.get_template(name).render(context | values)
        return HTMLResponse(page, self.status, render.HEADERS)

    async def read_form(self) -> None:
        """Read a form; a visitor who is logged in must have sent it from one of our pages."""
        headers = self.request.headers
        origin = headers.get("origin")
        if origin and urlsplit(origin).netloc != headers.get("host"):
            raise ProblemError(403, "The form comes from another site.")
        raw = (await self.request.body()).decode("utf-8", "replace")
        try:
            parsed = parse_qs(raw, keep_blank_values=True, max_num_fields=50)
        except ValueError:
            raise ProblemError(422, "The form has more than 50 fields.") from None
        self.form = {name: schemas.printable(values[0]) for name, values in parsed.items()}
        given, expected = self.form.get("csrf", ""), self.who.csrf
        if self.who != GUEST and not hmac.compare_digest(given.encode(), expected.encode()):
            raise ProblemError(403, "The form is too old: load the page again.")


def _visitor(scope: str) -> Any:
    """Return a dependency that requires a token with a scope; without one, anybody may visit."""

    async def checked(request: Request) -> Visit:
        visit = Visit(request, routes.service_of(request))
        if scope:
            visit.who = await run_in_threadpool(logged_in, request)
            if visit.who == GUEST:
                raise ProblemError(401, "Log in first.")
            routes.admit(request, visit.who, scope)
        if request.method == "POST":
            await visit.read_form()
        return visit

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)


Guest = Annotated[Visit, _visitor("")]
Reader = Annotated[Visit, _visitor("read")]
Router = Annotated[Visit, _visitor("route")]
Writer = Annotated[Visit, _visitor("write")]
Admin = Annotated[Visit, _visitor("admin")]


def keeps_typed(page: Callable[..., Response]) -> Callable[[Any], Any]:
    """Return a decorator for form actions that shows `page` again if the action fails."""

    def decorate(action: Callable[..., Response]) -> Callable[..., Response]:
        @wraps(action)
        def work(visit: Visit, **more: Any) -> Response:
            try:
                return action(visit, **more)
            except (ValidationError, InputError, ProblemError) as error:
                found = as_problem(error)
                said = found.detail.rstrip(".").replace("_", " ")
                visit.status, visit.wrong = found.status, f"{said[:1].upper()}{said[1:]}."
                return page(visit, **more)

        return work

    return decorate


def back(path: str, said: str = "") -> Response:
    """Redirect to a page after an action."""
    return RedirectResponse(f"{path}?said={said}" if said else path, 303, render.HEADERS)


router.get("/static/{name}")(render.static)


@router.get("/login")
def login_page(visit: Guest) -> Response:
    return visit.show("login.html")


@router.post("/login")
@keeps_typed(login_page)
def login(visit: Guest) -> Response:
    """Exchange a token for a cookie."""
    service, request = visit.service, visit.request
    token = request.app.state.auth.look_up(visit.text("token"), routes.client_of(request))
    routes.admit(request, token, "read")
    seconds = round(service.settings.limits.session_hours * 3600)
    until = service.clock() + 1000 * seconds
    with service.database.write() as connection:
        secret = tokens.create_session(connection, token.id, until, service.clock())
    answer, secure = back("/inbox"), request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, secret, max_age=seconds, httponly=True, samesite="strict", secure=secure
    )
    return answer


@router.post("/logout")
def logout(visit: Reader) -> Response:
    with visit.service.database.write() as connection:
        mine = tables.sessions.c.digest == tokens.digest(visit.request.cookies[COOKIE])
        tables.remove(connection, tables.sessions, mine)
    answer = back("/login")
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/")
def home() -> Response:
    return back("/inbox")


@router.get("/inbox")
def inbox(visit: Reader, show: str = "open", cursor: Cursor = "") -> Response:
    """Show the questions with the people suggested for them, one card each."""
    show = show if show in FILTERS else "open"
    with visit.service.database.read() as connection:
        rows, further = suggestions.list_suggestions(
            connection, 20, cursor, state=FILTERS[show], latest=True
        )
        cards = [_card(visit.service, connection, row) for row in rows]
        newest = suggestions.newest(connection)
    values = {"show": show, "filters": FILTERS, "newest": newest, "cursor": further}
    return visit.show("inbox.html", cards=cards, **values)


def _card(service: Service, connection: Connection, row: Row | None) -> Row:
    """Return a suggestion with the earlier suggestions for its question."""
    card = routes.suggestion_out(service, row).model_dump()
    made = suggestions.rounds(connection, card["question"]) if card["round"] else []
    return {**card, "earlier": [other for other in made if other["round"] < card["round"]]}


@router.get("/inbox/newest")
def newest(visit: Reader) -> Response:
    """Return the id of the newest suggestion, so that an open page can notice it."""
    with visit.service.database.read() as connection:
        return JSONResponse({"newest": suggestions.newest(connection)})


@router.get("/inbox/{suggestion}")
def one_suggestion(visit: Reader, suggestion: RowId) -> Response:
    with visit.service.database.read() as connection:
        row = suggestions.get_suggestion(connection, suggestion)
        return visit.show("suggestion.html", s=_card(visit.service, connection, row))


@router.post("/inbox/{suggestion}/feedback")
@keeps_typed(one_suggestion)
def feedback(visit: Writer, suggestion: RowId) -> Response:
    """Accept, decline or reassign a suggestion."""
    shown = [routes.as_id(part) for part in visit.text("shown").split()]
    person = _named_person(visit)
    values = {"verdict": visit.form.get("verdict"), "person": person, "people": shown}
    given = schemas.FeedbackIn.model_validate(values)
    found = routes.give_feedback(visit.service, suggestion, given, visit.who)
    sent = given.verdict == "accepted" and found.mode == "approve" and found.sent_ms
    noted = visit.service.engine.shadow and given.verdict == "reassigned"
    return back("/inbox", "asked" if sent else "saved" if noted else given.verdict)


def _named_person(visit: Visit) -> int | None:
    """Return the person whose name or id was typed."""
    given = visit.text("person").lstrip("@")
    if not given:
        return None
    found = visit.service.engine.directory.find(given, 6)
    same = [person for person in found if person.handle.casefold() == given.casefold()]
    number = routes.as_id(given)
    if len(same) != 1 and number is not None:
        return number
    if len(same) == 1 or len(found) == 1:
        return (same or found)[0].id
    if found:
        names = ", ".join(f"{person.handle} ({person.id})" for person in found[:5])
        raise InputError(f"Several people match {given!r}: {names}. Type the full name or the id.")
    raise InputError(f"There is nobody called {given!r}.")


@router.get("/people")
def people(visit: Reader, find: Find = "", cursor: Cursor = "") -> Response:
    page = routes.people(visit.service, 50, cursor, find)
    items = sorted(page.items, key=lambda person: -person.asked_week)
    return visit.show("people.html", people=items, find=find, cursor=page.cursor)


@router.get("/people/find")
def find_people(visit: Reader, q: Find = "") -> Response:
    """Return the names that match what is being typed."""
    found = visit.service.engine.directory.find(q, 10)
    return JSONResponse([person.handle for person in found])


@router.get("/people/{person}")
def one_person(visit: Reader, person: PersonId) -> Response:
    return visit.show("person.html", p=routes.get_person(visit.service, person))


@router.post("/people/{person}")
@keeps_typed(one_person)
def change_person(visit: Writer, person: PersonId) -> Response:
    routes.get_person(visit.service, person)  # raises an error for an unknown id
    given: Row = {
        "capacity": visit.text("capacity") or None,
        **{name: visit.text(name) for name in ("away_until", "hours", "time_zone")},
        **{name: visit.listed(name) for name in ("topics", "groups")},
    }
    if ("opted_out" in visit.form) != ("was_opted_out" in visit.form):
        given["opted_out"] = "opted_out" in visit.form  # else they may have changed it since
    if "handle" in visit.form:
        given["handle"] = visit.text("handle").lstrip("@")
    routes.patch_person(visit.service, person, schemas.PersonIn.model_validate(given), visit.who)
    return back(f"/people/{person}", "saved")


@router.post("/people/{person}/forget")
def forget(visit: Admin, person: PersonId) -> Response:
    routes.delete_person(visit.service, person, visit.who)
    return back("/people", "forgotten")


@router.get("/opt-out/{person}/{code}")
@router.post("/opt-out/{person}/{code}")
def opt_out(visit: Guest, person: PersonId, code: str) -> Response:
    """Show the page behind the link in a message; the link itself is the secret, so no login."""
    expected = visit.service.suggester.opt_out_code(person)
    if not hmac.compare_digest(code.encode(), expected.encode()):
        visit.request.app.state.auth.failures.take(routes.client_of(visit.request))
        raise ProblemError(404, "The link is not valid.")
    done = visit.request.method == "POST"
    if done:
        given = schemas.PersonIn.model_validate({"opted_out": visit.text("choice") != "ask"})
        routes.patch_person(visit.service, person, given, OPT_OUT)
    known = routes.get_person(visit.service, person)
    return visit.show("opt_out.html", p=known, code=code, done=done)


@router.get("/quality")
def quality_page(visit: Reader) -> Response:
    service = visit.service
    found = routes.get_quality(service, DAYS)
    ids, asked = service.engine.asks.week(service.clock())
    most = sorted(zip(asked.tolist(), ids.tolist(), strict=True), reverse=True)[:12]
    asks = [(service.suggester.name(user), number) for number, user in most]
    return visit.show("quality.html", q=found, figures=render.figures(found, asks))


@router.get("/shadow")
def shadow(visit: Reader) -> Response:
    service = visit.service
    found, since = routes.get_quality(service, DAYS, True), service.clock() - DAYS * DAY_MS
    with service.database.read() as connection:
        rows, _ = suggestions.list_suggestions(connection, 30, since_ms=since, shadow=True, round=0)
    return visit.show("shadow.html", q=found, rows=rows)


@router.get("/tags")
def tags_page(visit: Reader) -> Response:
    return visit.show("tags.html", tags=routes.get_tags(visit.service))


@router.get("/try")
def try_page(visit: Router) -> Response:
    return visit.show("try.html", advice=None)


@router.post("/try")
@keeps_typed(try_page)
def try_question(visit: Router) -> Response:
    texts = {name: visit.form.get(name, "") for name in ("title", "body")}
    given = schemas.RouteIn.model_validate({**texts, "tags": visit.listed("tags")})
    advice = from_thread.run(routes.route, visit.service, given)
    return visit.show("try.html", advice=advice, typed=visit.form)


@router.get("/settings")
def settings_page(visit: Admin) -> Response:
    """Show the mode, settings, tokens, messages, models, and the audit log."""
    service = visit.service
    found, sent = routes.get_models(service), routes.get_messages(service)
    values = {
        "settings": service.settings.items(), "scopes": SCOPES,
        "tokens": routes.list_tokens(service), "off": sent.switched_off,
        "messages": sent.items[:30], "models": found.trained[:5], "learning": found.learning,
        "audit": routes.get_audit(service, 50),
    }  # fmt: skip
    return visit.show("settings.html", **values)


@router.post("/settings/mode")
@keeps_typed(settings_page)
def switch_mode(visit: Admin) -> Response:
    given = schemas.ModeIn.model_validate({"mode": visit.form.get("mode")})
    routes.set_mode(visit.service, given, visit.who)
    return back("/settings", "mode")


@router.post("/settings/retrain")
@keeps_typed(settings_page)
def retrain(visit: Admin) -> Response:
    routes.retrain(visit.service, visit.who)
    return back("/settings", "learning")


@router.post("/settings/tokens")
@keeps_typed(settings_page)
def make_token(visit: Admin) -> Response:
    """Make a token, shown once."""
    values = {"name": visit.text("name"), "scopes": [visit.text("scope")]}
    given = schemas.TokenIn.model_validate(values)
    visit.made = routes.new_token(visit.service, given, visit.who).token
    return settings_page(visit)


@router.post("/settings/tokens/{number}/revoke")
def revoke(visit: Admin, number: RowId) -> Response:
    routes.revoke_token(visit.service, visit.request, number, visit.who)
    return back("/settings", "revoked")


@router.post("/settings/messages/{message}/redeliver")
def redeliver(visit: Admin, message: MessageId) -> Response:
    routes.redeliver(visit.service, message, visit.who)
    return back("/settings", "waiting")


def add_pages(app: FastAPI) -> None:
    """Add the pages; answer errors with problem details under the API's paths, else with a page."""
    app.include_router(router)

    def answer(request: Request, error: Exception) -> Response:
        found = as_problem(error)
        if request.url.path.startswith(("/v1", "/metrics", "/livez", "/readyz", "/openapi")):
            return found.response()
        if found.status == 401:
            return back("/login")
        with contextlib.suppress(AtpError):  # the error may be that the database is gone
            who, service = logged_in(request), routes.service_of(request)
            visit = Visit(request, service, who, status=found.status, wrong=found.detail)
            page = visit.show("error.html", title=found.title)
            page.headers.update(found.headers)
            return page
        return found.response()

    for kind in (ProblemError, InputError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)
