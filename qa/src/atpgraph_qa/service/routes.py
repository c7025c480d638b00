"""The routes of the API. Pages call the same functions; each returns its response model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from sqlalchemy import select, text
from starlette.concurrency import run_in_threadpool

from atpgraph.errors import AtpError
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service import outbox, reports, schemas, suggestions, tables, tokens
from atpgraph_qa.service.adapters import SOURCES
from atpgraph_qa.service.problems import ProblemError, described
from atpgraph_qa.service.schemas import EventOut, PersonOut, StatusOut, SuggestionOut
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.tables import Row
from atpgraph_qa.service.tokens import Authenticator, Token
from atpgraph_qa.timeline.query import Question

Bearer = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="A token, see POST /v1/tokens.")),
]
router = APIRouter()
PersonId = Annotated[int, Path(ge=0, le=schemas.MOST)]
RowId = Annotated[int, Path(ge=1, le=schemas.MOST)]
MessageId = Annotated[str, Path(max_length=64)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str, Query(pattern="^[0-9]{0,16}$", description="As a page gave it.")]
Find = Annotated[str, Query(max_length=100)]
Filter = Annotated[int | None, Query(ge=0, le=schemas.MOST)]
Once = Annotated[
    str, Header(alias="Idempotency-Key", max_length=200,
                description="The same key again, within a day, has no new effect."),
]  # fmt: skip
State = Literal[
    "proposed", "delivered", "accepted", "declined", "reassigned", "answered", "expired",
    "withdrawn",
]  # fmt: skip


def client_of(request: Request) -> str:
    """Return the address of the caller."""
    return request.client.host if request.client else ""


def service_of(request: Request) -> Service:
    """Return the service behind a request."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "The service is starting or stopping.", wait=5)
    return service


def admit(request: Request, token: Token, scope: str) -> None:
    """Raise a problem unless a caller is below the rate limit and has a scope."""
    request.app.state.auth.rates.check(token.id)
    if not token.may(scope):
        raise ProblemError(403, f"The token lacks the scope {scope!r}.")
    request.state.caller = token


async def check_token(request: Request, given: Bearer, scope: str) -> None:
    """Reject a caller without a token that has a scope."""
    auth: Authenticator = request.app.state.auth
    secret = given.credentials.strip() if given else ""
    if not secret:
        needed = "Send a token: Authorization: Bearer …"
        raise ProblemError(401, needed, {"WWW-Authenticate": "Bearer"})
    token = auth.known(secret)
    if token is None:  # the database query must not block the event loop
        token = await run_in_threadpool(auth.look_up, secret, client_of(request))
    admit(request, token, scope)


def needs(scope: str) -> Any:
    """Return a dependency that checks for a token with a scope."""

    async def checked(request: Request, given: Bearer) -> None:
        await check_token(request, given, scope)

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)


def _caller(request: Request) -> Token:
    found: Token = request.state.caller
    return found


Serving = Annotated[Service, Depends(service_of)]
Caller = Annotated[Token, Depends(_caller)]  # checked by the route's scope


def _needing(scope: str) -> APIRouter:
    """Return a router whose routes need a token with a scope."""
    statuses = described(400, 401, 403, 404, 408, 409, 413, 422, 429, 503)
    return APIRouter(dependencies=[needs(scope)], responses=statuses)


may_read, may_route, may_write, may_rule = map(_needing, tokens.SCOPES)


@may_route.post("/v1/route", tags=["routing"])
async def route(service: Serving, given: schemas.RouteIn) -> schemas.RouteOut:
    """Return the people to ask now. Nothing is stored and nobody is asked."""
    engine = service.engine
    if not (given.title.strip() or given.body.strip() or given.tags):
        raise ProblemError(422, "A question needs a title, a body or tags.")
    asker = NOBODY if given.asker is None else given.asker
    question = Question(given.title, given.body, given.tags, asker)
    advice = await engine.limiter.run(lambda: engine.route(question, top=given.top))
    return schemas.RouteOut.model_validate({**asdict(advice), "mode": engine.mode})


def _event_route(path: str, model: type[BaseModel]) -> None:
    def store(service: Serving, given: Any) -> EventOut:
        if service.engine.waiting > service.settings.limits.queue_events:
            raise ProblemError(503, "Too many events are waiting.", wait=10)
        arrival = given.arrival()
        (seq,) = service.engine.append([arrival])
        return EventOut(name=arrival.name, seq=seq, duplicate=seq is None)

    store.__name__, store.__doc__, store.__annotations__["given"] = path, model.__doc__, model
    may_write.post(f"/v1/{path}", tags=["events"], status_code=202)(store)


for each, event in schemas.EVENTS.items():
    _event_route(each, event)


@router.post(
    "/v1/hooks/{source}", tags=["events"], status_code=202, summary="Signed events of a site",
    responses=described(401, 404, 408, 413, 422, 429, 503),
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {}}}},
)  # fmt: skip
async def hook(
    service: Serving, request: Request, source: Annotated[str, Path(max_length=40)]
) -> schemas.HookOut:
    """From ``discourse``, ``github``, ``slack`` or ``generic``; signed, so without a token."""
    if source not in SOURCES:
        raise ProblemError(404, f"There is no such hook; known: {', '.join(SOURCES)}.")
    body = await request.body()

    def work() -> schemas.HookOut:
        # Signature first: what strangers send must not use up the rate of the real sender.
        incoming = SOURCES[source](service.settings).parse(request.headers, body, service.clock())
        request.app.state.auth.rates.check(f"hook:{source}")
        return service.receive(incoming)

    return await run_in_threadpool(work)


def as_id(text: str) -> int | None:
    """Return the user id in a text, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 else None


@may_read.get("/v1/people", tags=["people"])
def people(
    service: Serving, limit: Limit = 50, cursor: Cursor = "", find: Find = ""
) -> schemas.Page[PersonOut]:
    """List people who were asked or have settings, by id; with `find`, whose name or id matches."""
    engine, further = service.engine, ""
    wanted = find.strip().lstrip("@")
    if wanted:
        chosen = [person.id for person in engine.directory.find(wanted, limit)]
        if (number := as_id(wanted)) is not None:
            chosen = list(dict.fromkeys([number, *chosen]))
    else:
        after = int(cursor or -1)
        known = {person.id for person in engine.directory} | set(engine.asks.people)
        later = sorted(user for user in known if user > after)
        chosen = later[:limit]
        further = str(chosen[-1]) if len(later) > limit else ""
    items = [get_person(service, user) for user in chosen if engine.knows(user)]
    return schemas.Page(items=items, cursor=further)


@may_read.get("/v1/people/{person}", tags=["people"])
def get_person(service: Serving, person: PersonId) -> PersonOut:
    """Return a person: settings, activity, how often they were asked, and if they may be now."""
    engine, now = service.engine, service.clock()
    if not engine.knows(person):
        raise ProblemError(404, "The site does not know this person.")
    history = engine.advisor.history
    code = int(history.codes([person])[0])
    given, won, last = (
        int(counts[code]) if code >= 0 else 0
        for counts in (history.n_given, history.n_won, history.last_answer_ms)
    )
    why_not = engine.why_not(person)
    return PersonOut(
        **asdict(engine.directory[person]), answers=given, accepted=won,
        last_answer_ms=last or None, asked_day=engine.asks.times_asked(person, now, 1.0),
        asked_week=engine.asks.times_asked(person, now, 7.0), may_be_asked=not why_not,
        why_not=why_not,
    )  # fmt: skip


@may_write.patch("/v1/people/{person}", tags=["people"])
def patch_person(
    service: Serving, person: PersonId, given: schemas.PersonIn, who: Caller
) -> PersonOut:
    """Change a person's settings: opt-out, hours, capacity, groups, topics. Effective at once."""
    if person in service.engine.forgotten_people:
        raise ProblemError(404, "The site does not know this person.")
    service.engine.change_person(person, str(who), **given.changes())
    return get_person(service, person)


@may_rule.delete("/v1/people/{person}", tags=["people"])
def delete_person(service: Serving, person: PersonId, who: Caller) -> schemas.ForgottenOut:
    """Forget a person in all tables, history and snapshots; return what was removed."""
    return schemas.ForgottenOut(removed=service.forget(person, str(who)))


@may_write.post("/v1/people/{person}/asks", tags=["people"], status_code=201)
def ask_elsewhere(
    service: Serving, person: PersonId, given: schemas.AskIn, who: Caller, key: Once = ""
) -> StatusOut:
    """Record that a person was asked elsewhere, which counts like any other ask."""
    if person not in service.engine.forgotten_people:
        service.suggester.note_ask(person, given.kind, who.digest("ask", key))
    return StatusOut(status="noted")


def suggestion_out(service: Service, row: Row | None) -> SuggestionOut:
    """Return a suggestion with the link of its question."""
    if row is None:
        raise ProblemError(404, "There is no such suggestion.")
    return SuggestionOut.model_validate({**row, "url": service.suggester.question_link(row)})


@may_read.get("/v1/suggestions", tags=["suggestions"])
def list_suggestions(
    service: Serving, limit: Limit = 50, cursor: Cursor = "",
    state: Annotated[tuple[State, ...], Query()] = (), question: Filter = None,
    person: Filter = None, shadow: bool | None = None,
) -> schemas.Page[SuggestionOut]:  # fmt: skip
    """List suggestions, newest first. Filters can be combined."""
    with service.database.read() as connection:
        rows, further = suggestions.list_suggestions(
            connection, limit, cursor, state=state, question=question, person=person, shadow=shadow
        )
    items = [suggestion_out(service, row) for row in rows]
    return schemas.Page(items=items, cursor=further)


@may_read.get("/v1/suggestions/{suggestion}", tags=["suggestions"])
def get_suggestion(service: Serving, suggestion: RowId) -> SuggestionOut:
    """Return a suggestion with its feedback."""
    with service.database.read() as connection:
        return suggestion_out(service, suggestions.get_suggestion(connection, suggestion))


@may_write.post("/v1/suggestions/{suggestion}/feedback", tags=["suggestions"])
def give_feedback(
    service: Serving, suggestion: RowId, given: schemas.FeedbackIn, who: Caller, key: Once = ""
) -> SuggestionOut:
    """Accept, decline, reassign or comment. Accepting asks the people unless they were asked,
    declining goes on to the next people, reassigning asks somebody else."""
    found = service.suggester.feedback(
        suggestion, given.verdict, str(who), given.people, once=who.digest("feedback", key),
        person=given.person, note=given.note,
    )  # fmt: skip
    return suggestion_out(service, found)


@may_read.get("/v1/mode", tags=["suggestions"])
def get_mode(service: Serving) -> schemas.ModeIn:
    """Return the mode: ``shadow``, ``approve`` or ``automatic``."""
    return schemas.ModeIn.model_validate({"mode": service.engine.mode})


@may_rule.post("/v1/mode", tags=["suggestions"])
def set_mode(service: Serving, given: schemas.ModeIn, who: Caller) -> schemas.ModeIn:
    """Switch the mode, from the next question on. The audit log says who did."""
    service.engine.set_mode(given.mode, str(who))
    return given


@may_read.get("/v1/metrics/quality", tags=["quality"])
def get_quality(
    service: Serving, days: Annotated[int, Query(ge=1, le=365)] = 30, shadow: bool | None = None
) -> schemas.QualityOut:
    """Return how good the suggestions were: MRR and a baseline, coverage, calibration, load."""
    with service.database.read() as connection:
        return reports.quality(connection, service.clock(), days, shadow=shadow)


@may_read.get("/v1/metrics/tags", tags=["quality"])
def get_tags(service: Serving) -> list[schemas.TagOut]:
    """List tags of the last half year in which fewer than two active people answer."""
    history, days = service.engine.advisor.history, service.settings.policy.inactive_days
    return reports.tags_without_experts(history, service.clock(), days)


@may_rule.post("/v1/tokens", tags=["administration"], status_code=201)
def new_token(service: Serving, given: schemas.TokenIn, who: Caller) -> schemas.TokenOut:
    """Make a token. It is shown only once; only a digest is stored."""
    with service.database.write() as connection:
        made = tokens.create_token(connection, given.name, given.scopes, service.clock(), str(who))
    return schemas.TokenOut(id=made[0], token=made[1], scopes=tokens.check_scopes(given.scopes))


@may_rule.get("/v1/tokens", tags=["administration"])
def list_tokens(service: Serving) -> list[Row]:
    """List the tokens in use with scopes and last use, without the secrets."""
    with service.database.read() as connection:
        return tokens.list_tokens(connection)


@may_rule.delete("/v1/tokens/{number}", tags=["administration"])
def revoke_token(service: Serving, request: Request, number: RowId, who: Caller) -> StatusOut:
    """Revoke a token and its sessions."""
    with service.database.write() as connection:
        tokens.revoke_token(connection, number, service.clock(), str(who))
    request.app.state.auth.forget()
    return StatusOut(status="revoked")


@may_rule.get("/v1/audit", tags=["administration"])
def get_audit(service: Serving, limit: Limit = 100) -> list[Row]:
    """List the audit log, newest first."""
    t = tables.audit.c
    query = select(t.at_ms, t.who, t.what, t.person).order_by(t.id.desc()).limit(limit)
    with service.database.read() as connection:
        return tables.find(connection, query)


@may_rule.post("/v1/models/retrain", tags=["administration"], status_code=202)
def retrain(service: Serving, who: Caller) -> StatusOut:
    """Train in a separate process; use the new weights if they rank recent questions no worse."""
    service.trainer.start()
    with service.database.write() as connection:
        tables.note(connection, service.clock(), str(who), "started training")
    return StatusOut(status="learning")


@may_read.get("/v1/models", tags=["administration"])
def get_models(service: Serving) -> schemas.ModelsOut:
    """List the model in use, and the models trained since, with their evaluation."""
    query = select(tables.models).order_by(tables.models.c.id.desc()).limit(20)
    with service.database.read() as connection:
        rows = tables.find(connection, query)
    learning = service.trainer.running
    return schemas.ModelsOut(in_use=service.engine.model, learning=learning, trained=rows)


@may_rule.get("/v1/messages", tags=["administration"])
def get_messages(service: Serving) -> schemas.MessagesOut:
    """List the newest messages with state, attempts and last error."""
    with service.database.read() as connection:
        off = tables.find(connection, select(tables.switched_off))
        return schemas.MessagesOut(items=outbox.list_messages(connection), switched_off=off)


@may_rule.post("/v1/messages/{message}/redeliver", tags=["administration"], status_code=202)
def redeliver(service: Serving, message: MessageId, who: Caller) -> StatusOut:
    """Send a message again, even if it is dead or uncertain; enables its adapter again."""
    with service.database.write() as connection:
        if not outbox.redeliver(connection, schemas.printable(message), service.clock()):
            raise ProblemError(404, "There is no such message, or it is on its way.")
        tables.note(connection, service.clock(), str(who), "sent a message again")
    return StatusOut(status="waiting")


@router.get("/livez", summary="Is the process alive", tags=["health"])
def live() -> StatusOut:
    """Liveness probe."""
    return StatusOut(status="alive")


@router.get("/readyz", summary="Can it work", tags=["health"], responses=described(503))
def ready(request: Request) -> StatusOut:
    """Check that the database answers and the history is loaded and not dated in the future."""
    service: Service = request.app.state.service
    if not service.ready:
        why = "The service is starting or stopping, or another process is in charge."
        raise ProblemError(503, why, wait=5)
    ahead = service.engine.dated_ahead()
    if ahead:
        raise ProblemError(503, ahead, wait=60)
    try:
        with service.database.read() as connection:
            connection.execute(text("SELECT 1"))
    except AtpError:
        raise ProblemError(503, "The database does not answer.", wait=5) from None
    return StatusOut(status="ready")


@router.get(
    "/metrics", summary="Figures for Prometheus", tags=["health"], response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **described(401, 403, 429, 503)},
)  # fmt: skip
async def metrics(request: Request, given: Bearer) -> Response:
    """Return figures; needs the scope read unless server.public_metrics is set."""
    if not request.app.state.service.settings.server.public_metrics:
        await check_token(request, given, "read")
    registry = request.app.state.metrics.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


for part in (may_read, may_route, may_write, may_rule):
    router.include_router(part)
