"""The routes of the API. Pages call the same functions; each returns its response model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy import select, text
from starlette.concurrency import run_in_threadpool

from atpgraph.errors import AtpError
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.service import schemas
from atpgraph_qa.service.api.auth import needs
from atpgraph_qa.service.api.idempotency import document_key
from atpgraph_qa.service.api.problems import ProblemError, described
from atpgraph_qa.service.links import question_link
from atpgraph_qa.service.out.adapters import ADAPTERS, SOURCES
from atpgraph_qa.service.quality import quality
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import audit, outbox, suggestions, tables, tokens
from atpgraph_qa.service.store.tokens import Token
from atpgraph_qa.service.tags import tags_without_experts
from atpgraph_qa.timeline.query import Question

router = APIRouter()
PersonId = Annotated[int, Path(ge=0, le=schemas.MOST)]
RowId = Annotated[int, Path(ge=1, le=schemas.MOST)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str, Query(max_length=60)]
State = Literal[
    "proposed", "delivered", "accepted", "declined", "reassigned", "answered", "expired",
    "withdrawn",
]  # fmt: skip
MaySee: Any = needs("read")
MayRoute: Any = needs("route")
MayWrite: Any = needs("write")
MayRule: Any = needs("admin")
_KEY = [Depends(document_key)]


def _about(
    *statuses: int, tag: str, summary: str, status: int = 200, key: bool = True
) -> dict[str, Any]:
    """Return what the OpenAPI document says of a route."""
    return {
        "summary": summary, "tags": [tag], "status_code": status,
        "responses": described(*statuses), "dependencies": _KEY if key else [],
    }  # fmt: skip


def service_of(request: Request) -> Service:
    """Return the service behind a request."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "The service is starting or stopping.", {"Retry-After": "5"})
    return service


def name_of(token: Token) -> str:
    """Return who a token stands for, in the audit log and beside feedback."""
    return f"{token.name} (token {token.id})"


# --- routing and events --------------------------------------------------------------------------


@router.post("/v1/route", **_about(tag="routing", summary="Whom to ask", key=False))
async def route(
    request: Request, given: schemas.RouteIn, token: Token = MayRoute
) -> schemas.RouteOut:
    """Nothing is stored and nobody is asked: rules are applied as if it were asked now."""
    engine = service_of(request).engine
    if not (given.title.strip() or given.body.strip() or given.tags):
        raise ProblemError(422, "A question needs a title, a body or tags.")
    asker = NOBODY if given.asker is None else given.asker
    question = Question(given.title, given.body, tuple(given.tags), asker)

    def work() -> schemas.RouteOut:
        advice = engine.route(question, top=given.top)
        return schemas.RouteOut.model_validate(
            {**asdict(advice.found), "decisions": advice.decisions, "model": advice.model,
             "mode": engine.mode}
        )  # fmt: skip

    return await engine.limiter.run(work)


def _store(request: Request, given: Any) -> schemas.EventOut:
    service = service_of(request)
    if service.engine.waiting > service.settings.limits.queue_events:
        raise ProblemError(503, "Too many events are waiting.", {"Retry-After": "10"})
    arrival = given.arrival()
    (seq,) = service.engine.append([arrival])
    return schemas.EventOut(name=arrival.name, seq=seq, duplicate=seq is None)


def _event(summary: str) -> dict[str, Any]:
    return _about(409, tag="events", summary=summary, status=202)


@router.post("/v1/questions", **_event("A question was asked"))
def questions(
    request: Request, given: schemas.QuestionIn, token: Token = MayWrite
) -> schemas.EventOut:
    """Stored at once, routed a moment later. Sending it again has no effect."""
    return _store(request, given)


@router.post("/v1/edits", **_event("A question was edited"))
def edits(request: Request, given: schemas.EditIn, token: Token = MayWrite) -> schemas.EventOut:
    """A suggestion that was not sent yet is renewed."""
    return _store(request, given)


@router.post("/v1/closures", **_event("A question was closed, deleted or opened again"))
def closures(
    request: Request, given: schemas.ClosureIn, token: Token = MayWrite
) -> schemas.EventOut:
    """Ends its suggestions; title and text of a deleted question are removed."""
    return _store(request, given)


@router.post("/v1/answers", **_event("An answer was given"))
def answers(request: Request, given: schemas.AnswerIn, token: Token = MayWrite) -> schemas.EventOut:
    """Stops asking about the question, and is evidence of what the person knows."""
    return _store(request, given)


@router.post("/v1/acceptances", **_event("An answer was accepted"))
def acceptances(
    request: Request, given: schemas.AcceptanceIn, token: Token = MayWrite
) -> schemas.EventOut:
    """The strongest evidence there is."""
    return _store(request, given)


@router.post("/v1/votes", **_event("An answer got a vote"))
def votes(request: Request, given: schemas.VoteIn, token: Token = MayWrite) -> schemas.EventOut:
    """Up or down."""
    return _store(request, given)


@router.post(
    "/v1/hooks/{source}", **_about(404, tag="events", summary="Signed events of a site", status=202,
                                   key=False),
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {}}}},
)  # fmt: skip
async def hook(request: Request, source: str = Path(max_length=40)) -> schemas.HookOut:
    """``discourse``, ``github``, ``slack`` or ``generic``: no token, the signature counts."""
    service = service_of(request)
    if source not in SOURCES:
        raise ProblemError(404, f"Hooks are {', '.join(SOURCES)}.")
    body = await request.body()
    adapter = ADAPTERS[SOURCES[source]](service.settings)

    def work() -> schemas.HookOut:
        # Signature first: what strangers send must not use up the rate of the real sender.
        incoming = adapter.parse(request.headers, body, service.clock())
        request.app.state.auth.check_rate(f"hook:{source}")
        return schemas.HookOut.model_validate(service.receive(incoming))

    return await run_in_threadpool(work)


# --- people --------------------------------------------------------------------------------------


def person_out(service: Service, user: int) -> schemas.PersonOut | None:
    """Return everything about a person; None if the site does not know them."""
    engine, now = service.engine, service.clock()
    history = engine.current().history
    code = int(history.codes([user])[0])
    if code < 0 and user not in engine.directory:
        return None
    person = engine.directory[user]
    no = engine.dispatcher().why_not(person, now)
    last = int(history.last_answer_ms[code]) if code >= 0 else 0
    return schemas.PersonOut(
        **asdict(person),
        answers=int(history.n_given[code]) if code >= 0 else 0,
        accepted=int(history.n_won[code]) if code >= 0 else 0,
        last_answer_ms=last or None,
        asked_day=engine.asks.times_asked(user, now, 1.0),
        asked_week=engine.asks.times_asked(user, now, 7.0),
        may_be_asked=no is None,
        why_not="" if no is None else no.text,
    )


def _known(found: schemas.PersonOut | None) -> schemas.PersonOut:
    if found is None:
        raise ProblemError(404, "The site does not know this person.")
    return found


@router.get("/v1/people", **_about(tag="people", summary="People who set something or were asked",
                                   key=False))  # fmt: skip
def people(
    request: Request, limit: Limit = 50, cursor: Cursor = "",
    find: Annotated[str, Query(max_length=100)] = "", token: Token = MaySee,
) -> schemas.PeoplePage:  # fmt: skip
    """By id; with `find`, those whose name or id fits."""
    service = service_of(request)
    engine, further = service.engine, ""
    wanted = find.strip().lstrip("@")
    if wanted:
        number = [int(wanted)] if wanted.isascii() and wanted.isdigit() and len(wanted) < 17 else []
        chosen = [*number, *(person.id for person in engine.directory.find(wanted, limit))]
    else:
        after = suggestions.read_cursor(cursor) if cursor else -1
        known = {person.id for person in engine.directory} | set(engine.asks.people)
        later = sorted(user for user in known if user > after)
        chosen = later[:limit]
        further = suggestions.make_cursor(chosen[-1]) if len(later) > limit else ""
    items = [person_out(service, user) for user in dict.fromkeys(chosen)]
    return schemas.PeoplePage(items=[item for item in items if item], cursor=further)


@router.get("/v1/people/{person}", **_about(404, tag="people", summary="A person", key=False))
def get_person(request: Request, person: PersonId, token: Token = MaySee) -> schemas.PersonOut:
    """What they set, what they did, how often they were asked, and whether they may be."""
    return _known(person_out(service_of(request), person))


@router.patch(
    "/v1/people/{person}", **_about(404, 409, tag="people", summary="Change a person's settings")
)
def patch_person(
    request: Request, person: PersonId, given: schemas.PersonIn, token: Token = MayWrite
) -> schemas.PersonOut:
    """Opt-out, availability, capacity, groups and topics; in force at once."""
    service = service_of(request)
    if person in service.engine.forgotten_people:
        raise ProblemError(404, "The site does not know this person.")
    changed = replace(service.engine.directory[person], **given.changes())
    service.save_person(changed, name_of(token))
    return _known(person_out(service, person))


@router.delete("/v1/people/{person}", **_about(409, tag="people", summary="Forget a person"))
def delete_person(
    request: Request, person: PersonId, token: Token = MayRule
) -> schemas.ForgottenOut:
    """Everywhere: tables, history in memory, snapshots. Says what was removed."""
    removed = service_of(request).forget(person, name_of(token))
    left = ["the model folder that was given at the start, and backups"]
    return schemas.ForgottenOut(removed=removed, left=left)


@router.post(
    "/v1/people/{person}/asks",
    **_about(409, tag="people", summary="Somebody was asked elsewhere", status=201),
)
def ask_elsewhere(
    request: Request, person: PersonId, given: schemas.AskIn, token: Token = MayWrite
) -> schemas.StatusOut:
    """Counts like any other ask: people have one amount of patience."""
    service = service_of(request)
    if person not in service.engine.forgotten_people:
        service.suggester.note_ask(person, given.kind)
    return schemas.StatusOut(status="noted")


# --- suggestions ---------------------------------------------------------------------------------


def suggestion_out(service: Service, row: dict[str, Any]) -> schemas.SuggestionOut:
    """Return a suggestion with the link of its question."""
    link = question_link(service.settings, {"id": row["question"], "url": row["url"]})
    return schemas.SuggestionOut.model_validate({**row, "url": link})


@router.get(
    "/v1/suggestions", **_about(tag="suggestions", summary="Suggestions, newest first", key=False)
)
def list_suggestions(
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = "",
    state: Annotated[list[State], Query()] = [],  # noqa: B006
    question: Annotated[int | None, Query(ge=0, le=schemas.MOST)] = None,
    person: Annotated[int | None, Query(ge=0, le=schemas.MOST)] = None,
    shadow: bool | None = None,
    token: Token = MaySee,
) -> schemas.SuggestionPage:
    """Pages by cursor; filters can be combined."""
    service = service_of(request)
    with service.database.read() as connection:
        page = suggestions.page_of(
            connection, limit=limit, cursor=cursor, state=state, question=question,
            person=person, shadow=shadow,
        )  # fmt: skip
    items = [suggestion_out(service, row) for row in page.rows]
    return schemas.SuggestionPage(items=items, cursor=page.cursor)


@router.get(
    "/v1/suggestions/{suggestion}",
    **_about(404, tag="suggestions", summary="A suggestion", key=False),
)
def get_suggestion(
    request: Request, suggestion: RowId, token: Token = MaySee
) -> schemas.SuggestionOut:
    """With the feedback it got."""
    service = service_of(request)
    with service.database.read() as connection:
        found = suggestions.get_suggestion(connection, suggestion)
    if found is None:
        raise ProblemError(404, "There is no such suggestion.")
    return suggestion_out(service, found)


@router.post(
    "/v1/suggestions/{suggestion}/feedback",
    **_about(404, 409, tag="suggestions", summary="Accept, decline, reassign"),
)
def give_feedback(
    request: Request, suggestion: RowId, given: schemas.FeedbackIn, token: Token = MayWrite
) -> schemas.SuggestionOut:
    """Accept asks the people if nobody did; decline goes on to the next; reassign asks another."""
    service = service_of(request)
    found = service.suggester.feedback(
        suggestion, given.verdict, by=name_of(token), person=given.person, token=token.id,
        note=given.note,
    )  # fmt: skip
    if found is None:
        raise ProblemError(404, "There is no such suggestion.")
    return suggestion_out(service, found)


@router.get("/v1/mode", **_about(tag="suggestions", summary="Whether people are asked", key=False))
def get_mode(request: Request, token: Token = MaySee) -> schemas.ModeIn:
    """``shadow``, ``approve`` or ``automatic``."""
    return schemas.ModeIn.model_validate({"mode": service_of(request).engine.mode})


@router.post("/v1/mode", **_about(tag="suggestions", summary="Switch the mode"))
def set_mode(request: Request, given: schemas.ModeIn, token: Token = MayRule) -> schemas.ModeIn:
    """In force for the next question; the audit log says who switched."""
    service_of(request).engine.set_mode(given.mode, name_of(token))
    return given


# --- reports -------------------------------------------------------------------------------------


@router.get(
    "/v1/metrics/quality",
    **_about(tag="quality", summary="How good the suggestions were", key=False),
)
def live_quality(
    request: Request, days: Annotated[int, Query(ge=1, le=365)] = 30, shadow: bool | None = None,
    token: Token = MaySee,
) -> schemas.QualityOut:  # fmt: skip
    """Live MRR beside a trivial baseline, coverage, calibration and load."""
    service = service_of(request)
    with service.database.read() as connection:
        found = quality(connection, service.clock() - days * DAY_MS, days, shadow=shadow)
    return schemas.QualityOut(**found)


@router.get("/v1/metrics/tags", **_about(tag="quality", summary="Tags without experts", key=False))
def tags(request: Request, token: Token = MaySee) -> list[schemas.TagOut]:
    """Tags of the last half year for which fewer than two active people give answers."""
    service = service_of(request)
    history = service.engine.current().history
    return tags_without_experts(history, service.clock(), service.settings.policy.inactive_days)


# --- administration ------------------------------------------------------------------------------


def _admin(*statuses: int, summary: str, status: int = 200, key: bool = False) -> dict[str, Any]:
    return _about(*statuses, tag="administration", summary=summary, status=status, key=key)


@router.post("/v1/tokens", **_admin(summary="A new token", status=201))
def new_token(request: Request, given: schemas.TokenIn, token: Token = MayRule) -> schemas.TokenOut:
    """Shown this once; only a digest is kept."""
    service, now = service_of(request), service_of(request).clock()
    with service.database.write() as connection:
        number, secret = tokens.create_token(connection, given.name, given.scopes, now)
        audit.note(connection, now, name_of(token), f"made token {number}")
    return schemas.TokenOut(id=number, token=secret, scopes=list(tokens.check_scopes(given.scopes)))


@router.get("/v1/tokens", **_admin(summary="Tokens in use"))
def list_tokens(request: Request, token: Token = MayRule) -> list[schemas.KnownTokenOut]:
    """What they may do and when they were last used, not what they are."""
    with service_of(request).database.read() as connection:
        return [schemas.KnownTokenOut(**row) for row in tokens.list_tokens(connection)]


@router.delete("/v1/tokens/{number}", **_admin(404, summary="Revoke a token"))
def revoke_token(request: Request, number: RowId, token: Token = MayRule) -> schemas.StatusOut:
    """Revokes the token and its sessions immediately."""
    service = service_of(request)
    with service.database.write() as connection:
        if not tokens.revoke_token(connection, number, service.clock()):
            raise ProblemError(404, "There is no such token.")
        audit.note(connection, service.clock(), name_of(token), f"revoked token {number}")
    request.app.state.auth.forget()
    return schemas.StatusOut(status="revoked")


@router.get("/v1/audit", **_admin(summary="Who did what"))
def get_audit(
    request: Request, limit: Limit = 100, token: Token = MayRule
) -> list[schemas.AuditOut]:
    """The newest entries first."""
    with service_of(request).database.read() as connection:
        return [schemas.AuditOut(**entry) for entry in audit.entries(connection, limit)]


@router.post("/v1/models/retrain", **_admin(409, summary="Train again", status=202, key=True))
def retrain(request: Request, token: Token = MayRule) -> schemas.StatusOut:
    """In a process of its own; new weights are used if they rank the last questions no worse."""
    service = service_of(request)
    if service.trainer.running:
        raise ProblemError(409, "The service is training already.", {"Retry-After": "60"})
    with service.database.write() as connection:
        audit.note(connection, service.clock(), name_of(token), "started training")
    service.trainer.start()
    return schemas.StatusOut(status="learning")


@router.get("/v1/models", **_admin(summary="Models and how they were judged"))
def models(request: Request, token: Token = MaySee) -> schemas.ModelsOut:
    """The one in use, and what became of those that were trained."""
    service = service_of(request)
    with service.database.read() as connection:
        query = select(tables.models).order_by(tables.models.c.id.desc()).limit(20)
        rows = [dict(row._mapping) for row in connection.execute(query)]
    return schemas.ModelsOut(
        in_use=service.engine.model, learning=service.trainer.running, trained=rows
    )


@router.get("/v1/messages", **_admin(summary="What went out"))
def messages(request: Request, token: Token = MayRule) -> schemas.MessagesOut:
    """The delivery log: state, attempts and last error of the newest messages."""
    with service_of(request).database.read() as connection:
        off = [dict(row._mapping) for row in connection.execute(select(tables.switched_off))]
        return schemas.MessagesOut(items=outbox.listed(connection), switched_off=off)


@router.post(
    "/v1/messages/{message}/redeliver", **_admin(404, summary="Send a message again", status=202)
)
def redeliver(
    request: Request, message: str = Path(max_length=64), token: Token = MayRule
) -> schemas.StatusOut:
    """Also one that is dead or uncertain; an adapter that was switched off is used again."""
    service = service_of(request)
    with service.database.write() as connection:
        if not outbox.redeliver(connection, schemas.printable(message), service.clock()):
            raise ProblemError(404, "There is no such message, or it is on its way.")
        audit.note(connection, service.clock(), name_of(token), "sent a message again")
    return schemas.StatusOut(status="waiting")


@router.get("/livez", summary="Is the process alive", tags=["health"])
def live() -> schemas.StatusOut:
    """Says yes."""
    return schemas.StatusOut(status="alive")


@router.get(
    "/readyz", summary="Can it work", tags=["health"],
    responses={503: {"description": "Not available now"}},
)  # fmt: skip
def ready(request: Request) -> schemas.StatusOut:
    """Whether the database answers and the history is loaded and not dated in the future."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "Starting, stopping, or not in charge.", {"Retry-After": "5"})
    ahead = service.engine.dated_ahead()
    if ahead:
        raise ProblemError(503, ahead, {"Retry-After": "60"})
    try:
        with service.database.read() as connection:
            connection.execute(text("SELECT 1"))
    except AtpError:
        raise ProblemError(503, "The database does not answer.", {"Retry-After": "5"}) from None
    return schemas.StatusOut(status="ready")
