"""The pages for moderators. What they do is done by the functions of the API."""

from __future__ import annotations

import contextlib
import hmac
import json
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import ValidationError

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import schemas
from atpgraph_qa.service.api import routes
from atpgraph_qa.service.api.auth import client_of
from atpgraph_qa.service.api.problems import (
    TITLES,
    ProblemError,
    answer_problems,
    as_problem,
    problem,
)
from atpgraph_qa.service.api.routes import Cursor, PersonId, RowId, service_of
from atpgraph_qa.service.links import opt_out_code
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import suggestions, tokens
from atpgraph_qa.service.store.tokens import SCOPES, Token
from atpgraph_qa.service.suggester import ConflictError
from atpgraph_qa.service.web.charts import figures
from atpgraph_qa.service.web.render import HEADERS, render, static

COOKIE = "atp_session"
DAYS = 30
FILTERS = {
    "open": ("Open", ("proposed", "delivered")),
    "sent": ("Asked", ("accepted", "reassigned", "delivered")),
    "answered": ("Answered", ("answered",)),
    "ended": ("Ended", ("declined", "expired", "withdrawn")),
    "all": ("All", ()),
}
router = APIRouter(include_in_schema=False)


class LoginNeededError(Exception):
    """Nobody is logged in."""


def logged_in(request: Request) -> Token | None:
    """Return whose session it is."""
    service, secret = service_of(request), request.cookies.get(COOKIE, "")
    if not secret:
        return None
    with service.database.read() as connection:
        return tokens.find_session(connection, secret, service.clock())


def visitor(scope: str) -> Any:
    """Return a dependency: who is logged in, with a scope."""

    def checked(request: Request) -> Token:
        token = logged_in(request)
        if token is None:
            raise LoginNeededError
        request.app.state.auth.check_rate(token.id)
        if not token.may(scope):
            raise ProblemError(403, f"The token lacks the scope {scope!r}.")
        request.state.token = token.id
        return token

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        parsed = parse_qs(raw, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise ProblemError(422, "The form has more than 50 fields.") from None
    return {name: schemas.printable(values[0]) for name, values in parsed.items()}


Form = Annotated[dict[str, str], Depends(form_of)]
MaySee: Any = visitor("read")
MayRoute: Any = visitor("route")
MayWrite: Any = visitor("write")
MayRule: Any = visitor("admin")


def check_origin(request: Request) -> None:
    """Refuse a form that another site sent."""
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        raise ProblemError(403, "The form comes from another site.")


def check_csrf(request: Request, form: dict[str, str], token: Token) -> None:
    """Refuse a form that did not come from a page of ours."""
    check_origin(request)
    if not hmac.compare_digest(form.get("csrf", "").encode(), token.csrf.encode()):
        raise ProblemError(403, "The form is too old: load the page again.")


def back(path: str, said: str = "") -> Response:
    """Go on to a page after an action."""
    return RedirectResponse(f"{path}?said={said}" if said else path, 303, HEADERS)


def keep_typed(work: Callable[[], Response], show: Callable[..., Response]) -> Response:
    """Do what a form asks for; if it cannot be done, show it again with why and what was typed."""
    try:
        return work()
    except ValidationError as error:
        first = error.errors()[0]
        place = str(first["loc"][0]).replace("_", " ") if first["loc"] else "form"
        said = first["msg"].removeprefix("Value error, ").rstrip(".")
        return show(f"{place.capitalize()}: {said}.", 422)
    except (InputError, ConflictError, ProblemError) as error:
        found = as_problem(error)
        if found.status not in (409, 422):
            raise
        return show(found.detail, found.status)


@router.get("/static/{name}")
def files(name: str) -> Response:
    """Style and script."""
    if name not in ("app.css", "app.js"):
        raise ProblemError(404, "There is no such file.")
    return static(name)


@router.get("/login")
def login_page(request: Request) -> Response:
    """Where to paste a token."""
    return render(request, "login.html")


@router.post("/login")
def login(request: Request, form: Form) -> Response:
    """Exchange a token for a cookie."""
    check_origin(request)
    service, auth = service_of(request), request.app.state.auth
    try:
        token = auth.token(form.get("token", "").strip(), client_of(request))
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


# --- inbox ---------------------------------------------------------------------------------------


@router.get("/")
def home() -> Response:
    """The inbox."""
    return back("/inbox")


@router.get("/inbox")
def inbox(
    request: Request, show: str = "open", cursor: Cursor = "", token: Token = MaySee
) -> Response:
    """Questions with the people suggested for them, a card each."""
    service, show = service_of(request), show if show in FILTERS else "open"
    with service.database.read() as connection:
        page = suggestions.page_of(
            connection, limit=20, cursor=cursor, state=FILTERS[show][1], latest=True
        )
        cards = [_card(service, connection, row) for row in page.rows]
    filters = [(name, label) for name, (label, _) in FILTERS.items()]
    return render(
        request, "inbox.html", token, cards=cards, cursor=page.cursor, show=show, filters=filters,
        newest=_newest(service),
    )  # fmt: skip


def _card(service: Service, connection: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Return a suggestion with the earlier ones of its question."""
    made = suggestions.rounds(connection, row["question"]) if row["round"] else []
    earlier = [other for other in made if other["round"] < row["round"]]
    return {**routes.suggestion_out(service, row).model_dump(), "earlier": earlier}


def _newest(service: Service) -> int:
    with service.database.read() as connection:
        page = suggestions.page_of(connection, limit=1)
    return int(page.rows[0]["id"]) if page.rows else 0


@router.get("/inbox/newest")
def newest(request: Request, token: Token = MaySee) -> Response:
    """The number of the newest suggestion, so that an open page can tell."""
    return JSONResponse({"newest": _newest(service_of(request))})


@router.get("/inbox/{suggestion}")
def one_suggestion(request: Request, suggestion: RowId, token: Token = MaySee) -> Response:
    """A suggestion with every decision."""
    return _suggestion(request, suggestion, token)


def _suggestion(
    request: Request, suggestion: int, token: Token, status: int = 200, **more: Any
) -> Response:
    service = service_of(request)
    with service.database.read() as connection:
        row = suggestions.get_suggestion(connection, suggestion)
        if row is None:
            raise ProblemError(404, "There is no such suggestion.")
        card = _card(service, connection, row)
    return render(request, "suggestion.html", token, status=status, s=card, **more)


@router.post("/inbox/{suggestion}/feedback")
def feedback(request: Request, suggestion: RowId, form: Form, token: Token = MayWrite) -> Response:
    """Accept, decline, ask somebody else."""
    check_csrf(request, form, token)

    def work() -> Response:
        given = schemas.FeedbackIn.model_validate(
            {"verdict": form.get("verdict"), "person": _person(service_of(request), form)}
        )
        found = routes.give_feedback(request, suggestion, given, token)
        sent = given.verdict == "accepted" and found.mode == "approve" and found.sent_ms
        return back("/inbox", "asked" if sent else given.verdict)

    def again(wrong: str, status: int) -> Response:
        return _suggestion(request, suggestion, token, status, wrong=wrong, typed=form)

    return keep_typed(work, again)


def _person(service: Service, form: dict[str, str]) -> int | None:
    """Return the person that was named, by name or id."""
    given = form.get("person", "").strip().lstrip("@")
    if not given:
        return None
    found = service.engine.directory.find(given, 6)
    same = [person for person in found if person.handle.casefold() == given.casefold()]
    if len(same) == 1 or len(found) == 1:
        return (same or found)[0].id
    if not found and given.isascii() and given.isdigit() and len(given) < 17:
        return int(given)
    if found:
        names = ", ".join(person.handle for person in found[:5])
        raise InputError(f"Several people fit {given!r}: {names}. Give the full name.")
    raise InputError(f"There is nobody called {given!r} here.")


# --- people --------------------------------------------------------------------------------------

Find = Annotated[str, Query(max_length=100)]


@router.get("/people")
def people(
    request: Request, find: Find = "", cursor: Cursor = "", token: Token = MaySee
) -> Response:
    """People who were asked or set something; anybody by name or id."""
    page = routes.people(request, 50, cursor, find, token)
    items = sorted(page.items, key=lambda person: -person.asked_week)
    return render(request, "people.html", token, people=items, find=find, cursor=page.cursor)


@router.get("/people/find")
def find_people(request: Request, q: Find = "", token: Token = MaySee) -> Response:
    """Names that fit what is being typed."""
    found = service_of(request).engine.directory.find(q, 10)
    return JSONResponse([person.handle for person in found])


@router.get("/people/{person}")
def one_person(request: Request, person: PersonId, token: Token = MaySee) -> Response:
    """A person and their settings."""
    return render(request, "person.html", token, p=routes.get_person(request, person, token))


@router.post("/people/{person}")
def change_person(
    request: Request, person: PersonId, form: Form, token: Token = MayWrite
) -> Response:
    """Store what the form says."""
    check_csrf(request, form, token)
    known = routes.get_person(request, person, token)

    def work() -> Response:
        given: dict[str, Any] = {
            "opted_out": "opted_out" in form,
            "capacity": form.get("capacity", "").strip() or None,
            **{name: form.get(name, "").strip() for name in ("away_until", "hours", "time_zone")},
            **{name: _listed(form.get(name, "")) for name in ("topics", "groups")},
        }
        if "handle" in form:
            given["handle"] = form["handle"].strip().lstrip("@")
        routes.patch_person(request, person, schemas.PersonIn.model_validate(given), token)
        return back(f"/people/{person}", "saved")

    def again(wrong: str, status: int) -> Response:
        return render(
            request, "person.html", token, status=status, p=known, wrong=wrong, typed=form
        )

    return keep_typed(work, again)


@router.post("/people/{person}/forget")
def forget(request: Request, person: PersonId, form: Form, token: Token = MayRule) -> Response:
    """Forget a person."""
    check_csrf(request, form, token)
    routes.delete_person(request, person, token)
    return back("/people", "forgotten")


@router.get("/opt-out/{person}/{code}")
def opt_out_page(request: Request, person: PersonId, code: str) -> Response:
    """Where the link in a message leads: no login, the link is the secret."""
    known = _of_link(request, person, code)
    return render(request, "opt_out.html", p=known, code=code, done=False)


@router.post("/opt-out/{person}/{code}")
def opt_out(request: Request, person: PersonId, code: str, form: Form) -> Response:
    """Do not ask this person any more, or ask them again."""
    known = _of_link(request, person, code)
    given = schemas.PersonIn(opted_out=form.get("choice") != "ask")
    routes.patch_person(request, person, given, Token(0, "opt-out link", frozenset()))
    known = routes.get_person(request, person, Token(0, "", frozenset()))
    return render(request, "opt_out.html", p=known, code=code, done=True)


def _of_link(request: Request, person: int, code: str) -> schemas.PersonOut:
    service = service_of(request)
    if not hmac.compare_digest(code.encode(), opt_out_code(service.settings, person).encode()):
        request.app.state.auth.failures.take(client_of(request))
        raise ProblemError(404, "The link is not valid.")
    return routes.get_person(request, person, Token(0, "", frozenset()))


# --- reports -------------------------------------------------------------------------------------


@router.get("/quality")
def quality_page(request: Request, token: Token = MaySee) -> Response:
    """Charts."""
    found = routes.live_quality(request, DAYS, None, token).model_dump()
    service = service_of(request)
    ids, asked = service.engine.asks.week(service.clock())
    most = sorted(zip(asked.tolist(), ids.tolist(), strict=True), reverse=True)[:12]
    asks = [(service.suggester.name(user), number) for number, user in most]
    return render(request, "quality.html", token, q=found, figures=figures(found, asks))


@router.get("/shadow")
def shadow(request: Request, token: Token = MaySee) -> Response:
    """What would have happened."""
    found = routes.live_quality(request, DAYS, True, token)
    service = service_of(request)
    since = service.clock() - DAYS * DAY_MS
    with service.database.read() as connection:
        page = suggestions.page_of(connection, limit=30, shadow=True, since_ms=since)
    rows = [row for row in page.rows if row["round"] == 0]
    return render(request, "shadow.html", token, q=found, rows=rows)


@router.get("/tags")
def tags_page(request: Request, token: Token = MaySee) -> Response:
    """Topics without experts."""
    return render(request, "tags.html", token, tags=routes.tags(request, token))


@router.get("/try")
def try_page(request: Request, token: Token = MayRoute) -> Response:
    """A form for a question."""
    return render(request, "try.html", token, advice=None)


@router.post("/try")
async def try_question(request: Request, form: Form, token: Token = MayRoute) -> Response:
    """Whom to ask."""
    check_csrf(request, form, token)
    wrong, advice = "", None
    try:
        given = schemas.RouteIn(
            title=form.get("title", ""), body=form.get("body", ""),
            tags=_listed(form.get("tags", "")),
        )  # fmt: skip
        advice = await routes.route(request, given, token)
    except (ValidationError, ProblemError) as error:
        wrong = error.detail if isinstance(error, ProblemError) else "The question is too long."
    status = 422 if wrong else 200
    return render(request, "try.html", token, status=status, advice=advice, typed=form, wrong=wrong)


# --- settings ------------------------------------------------------------------------------------


@router.get("/settings")
def settings_page(request: Request, token: Token = MayRule) -> Response:
    """Mode, settings, tokens, messages, models, and who did what."""
    return _settings(request, token)


def _settings(request: Request, token: Token, status: int = 200, **more: Any) -> Response:
    service = service_of(request)
    found, sent = routes.models(request, token), routes.messages(request, token)
    trained = [{**m, "judged": {"questions": 0, **json.loads(m["judged"])}} for m in found.trained]
    help_texts = {
        f"{section}.{item.name}": item.help for section, item, _ in service.settings.items()
    }
    return render(
        request, "settings.html", token, status=status,
        **{"settings": service.settings.shown(), "help": help_texts, "made": "", "scopes": SCOPES,
           "tokens": routes.list_tokens(request, token), "off": sent.switched_off,
           "messages": sent.items[:30], "models": trained[:5], "learning": found.learning,
           "audit": routes.get_audit(request, 50, token), **more},
    )  # fmt: skip


@router.post("/settings/mode")
def switch_mode(request: Request, form: Form, token: Token = MayRule) -> Response:
    """Switch between trial run, approve and automatic."""
    check_csrf(request, form, token)

    def work() -> Response:
        routes.set_mode(request, schemas.ModeIn.model_validate({"mode": form.get("mode")}), token)
        return back("/settings", "mode")

    return keep_typed(work, lambda wrong, status: _settings(request, token, status, wrong=wrong))


@router.post("/settings/retrain")
def retrain(request: Request, form: Form, token: Token = MayRule) -> Response:
    """Train a new model."""
    check_csrf(request, form, token)

    def work() -> Response:
        routes.retrain(request, token)
        return back("/settings", "learning")

    return keep_typed(work, lambda wrong, status: _settings(request, token, status, wrong=wrong))


@router.post("/settings/tokens")
def make_token(request: Request, form: Form, token: Token = MayRule) -> Response:
    """Make a token, shown once."""
    check_csrf(request, form, token)

    def work() -> Response:
        given = {"name": form.get("name", "").strip(), "scopes": [form.get("scope", "")]}
        made = routes.new_token(request, schemas.TokenIn.model_validate(given), token)
        return _settings(request, token, made=made.token)

    def again(wrong: str, status: int) -> Response:
        return _settings(request, token, status, wrong=wrong, typed=form)

    return keep_typed(work, again)


@router.post("/settings/tokens/{number}/revoke")
def revoke(request: Request, number: RowId, form: Form, token: Token = MayRule) -> Response:
    """Revoke a token."""
    check_csrf(request, form, token)
    routes.revoke_token(request, number, token)
    return back("/settings", "revoked")


@router.post("/settings/messages/{message}/redeliver")
def redeliver(request: Request, message: str, form: Form, token: Token = MayRule) -> Response:
    """Send a message again."""
    check_csrf(request, form, token)
    routes.redeliver(request, message[:64], token)
    return back("/settings", "waiting")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _with(page: Response, headers: dict[str, str]) -> Response:
    page.headers.update(headers)
    return page


def add_pages(app: FastAPI) -> None:
    """Add the pages to an application."""
    app.include_router(router)

    def error_page(request: Request, error: ProblemError) -> Response:
        title = TITLES.get(error.status, "Error")
        with contextlib.suppress(AtpError, ProblemError):  # it may be the database that is gone
            who = logged_in(request)
            return _with(
                render(request, "error.html", who, status=error.status, title=title,
                       wrong=error.detail), error.headers)  # fmt: skip
        return problem(error.status, error.detail, error.headers)

    answer_problems(app, error_page)

    @app.exception_handler(LoginNeededError)
    async def _(request: Request, error: LoginNeededError) -> Response:
        return back("/login")
