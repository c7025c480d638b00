"""The routes under ``/v1``: routing, people, events, suggestions, quality, models."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.service import schemas
from atpgraph_qa.service.api import answers
from atpgraph_qa.service.api.auth import needs
from atpgraph_qa.service.api.idempotency import Key, run_once
from atpgraph_qa.service.api.pool import Pool
from atpgraph_qa.service.api.problems import ProblemError, described
from atpgraph_qa.service.policy import AskPolicy
from atpgraph_qa.service.quality import quality
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import suggestions
from atpgraph_qa.service.store.events import Arrival
from atpgraph_qa.service.store.tokens import Token
from atpgraph_qa.timeline.query import Question

router = APIRouter(prefix="/v1")
PersonId = Annotated[int, Path(ge=0, le=schemas.MOST)]
RowId = Annotated[int, Path(ge=1, le=schemas.MOST)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str, Query(max_length=60)]
MaySee: Any = needs("read")
MayRoute: Any = needs("route")
MayWrite: Any = needs("write")
MayRule: Any = needs("admin")


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "The service is starting or stopping.", {"Retry-After": "5"})
    return service


@router.post(
    "/route", summary="Whom to ask about a question", tags=["routing"],
    responses={200: {"model": answers.RouteOut}, **described()},
)  # fmt: skip
async def route(request: Request, given: schemas.RouteIn, token: Token = MayRoute) -> Response:
    """Nothing is stored and nobody is asked: rules are applied as if it were asked now."""
    service = service_of(request)
    if not (given.title.strip() or given.body.strip() or given.tags):
        raise ProblemError(422, "A question needs a title, a body or tags.")
    asker = NOBODY if given.asker is None else given.asker
    question = Question(given.title, given.body, tuple(given.tags), asker)

    def work() -> Response:
        advice = service.engine.route(question, top=given.top)
        content = {
            **asdict(advice.found),
            "decisions": [asdict(decision) for decision in advice.decisions],
            "model": advice.model,
            "shadow": service.settings.policy.shadow,
        }
        return JSONResponse(content)

    pool: Pool = request.app.state.pool
    return await pool.run(work)


def _taken(
    request: Request, token: Token, key: str | None, arrival: Arrival, body: Any
) -> Response:
    service = service_of(request)
    if service.engine.waiting > service.settings.limits.queue_events:
        raise ProblemError(503, "Too many events are waiting.", {"Retry-After": "10"})

    def make() -> tuple[int, Any]:
        (seq,) = service.engine.append([arrival])
        return 202, {"name": arrival.name, "seq": seq, "duplicate": seq is None}

    return run_once(request, token, key, body, make)


_EVENT: dict[str, Any] = {
    "status_code": 202, "tags": ["events"],
    "responses": {202: {"model": answers.EventOut}, **described(409)},
}  # fmt: skip


@router.post("/questions", summary="A question was asked", **_EVENT)
def questions(
    request: Request, given: schemas.QuestionIn, key: Key = None, token: Token = MayWrite
) -> Response:
    """Stored at once, routed a moment later. Sending it again has no effect."""
    return _taken(request, token, key, given.arrival(), given.model_dump(mode="json"))


@router.post("/answers", summary="An answer was given", **_EVENT)
def given_answers(
    request: Request, given: schemas.AnswerIn, key: Key = None, token: Token = MayWrite
) -> Response:
    """Stops asking about the question, and is evidence of what the person knows."""
    return _taken(request, token, key, given.arrival(), given.model_dump(mode="json"))


@router.post("/acceptances", summary="An answer was accepted", **_EVENT)
def acceptances(
    request: Request, given: schemas.AcceptanceIn, key: Key = None, token: Token = MayWrite
) -> Response:
    """The strongest evidence there is."""
    return _taken(request, token, key, given.arrival(), given.model_dump(mode="json"))


@router.post("/votes", summary="An answer got a vote", **_EVENT)
def votes(
    request: Request, given: schemas.VoteIn, key: Key = None, token: Token = MayWrite
) -> Response:
    """Up or down."""
    return _taken(request, token, key, given.arrival(), given.model_dump(mode="json"))


def person_view(service: Service, user: int) -> dict[str, Any] | None:
    """Everything about a person; None if the site does not know them."""
    engine = service.engine
    history = engine.current().history
    code = int(history.codes([user])[0])
    if code < 0 and user not in engine.directory:
        return None
    person, now = engine.directory[user], service.clock()
    rules = service.settings.policy
    no = AskPolicy(rules, engine.directory, engine.asks, now).why_not(person)
    last = int(history.last_answer_ms[code]) if code >= 0 else 0
    return {
        **asdict(person),
        "groups": list(person.groups),
        "topics": list(person.topics),
        "answers": int(history.n_given[code]) if code >= 0 else 0,
        "accepted": int(history.n_won[code]) if code >= 0 else 0,
        "last_answer_ms": last or None,
        "asked_day": engine.asks.times(user, now, 1.0, shadow=rules.shadow),
        "asked_week": engine.asks.times(user, now, 7.0, shadow=rules.shadow),
        "may_be_asked": no is None,
        "why_not": "" if no is None else no.text,
    }


@router.get(
    "/people", summary="People who set something or were asked", tags=["people"],
    responses={200: {"model": answers.PeoplePage}, **described()},
)  # fmt: skip
def people(
    request: Request, limit: Limit = 50, cursor: Cursor = "", token: Token = MaySee
) -> Response:
    """By id."""
    service = service_of(request)
    after = suggestions.read_cursor(cursor) if cursor else -1
    known = {person.id for person in service.engine.directory}
    known |= set(service.engine.asks.everybody())
    wanted = sorted(user for user in known if user > after)
    items = [person_view(service, user) for user in wanted[:limit]]
    more = len(wanted) > limit
    content = {
        "items": [item for item in items if item is not None],
        "cursor": suggestions.make_cursor(wanted[limit - 1]) if more else "",
    }
    return JSONResponse(content)


@router.get(
    "/people/{person}", summary="A person", tags=["people"],
    responses={200: {"model": answers.PersonOut}, **described(404)},
)  # fmt: skip
def get_person(request: Request, person: PersonId, token: Token = MaySee) -> Response:
    """What they set, what they did, how often they were asked, and whether they may be."""
    found = person_view(service_of(request), person)
    if found is None:
        raise ProblemError(404, "The site does not know this person.")
    return JSONResponse(found)


@router.patch(
    "/people/{person}", summary="Change a person's settings", tags=["people"],
    responses={200: {"model": answers.PersonOut}, **described(404, 409)},
)  # fmt: skip
def patch_person(
    request: Request, person: PersonId, given: schemas.PersonIn, key: Key = None,
    token: Token = MayWrite,
) -> Response:  # fmt: skip
    """Opt-out, availability, capacity, groups and topics; in force at once."""
    service = service_of(request)
    if person in service.engine.forgotten_people:
        raise ProblemError(404, "The site does not know this person.")

    def make() -> tuple[int, Any]:
        service.save_person(replace(service.engine.directory[person], **given.changes()))
        return 200, person_view(service, person)

    return run_once(request, token, key, given.model_dump(mode="json", exclude_unset=True), make)


@router.delete(
    "/people/{person}", summary="Forget a person", tags=["people"],
    responses={200: {"model": answers.ForgottenOut}, **described(409)},
)  # fmt: skip
def delete_person(
    request: Request, person: PersonId, key: Key = None, token: Token = MayRule
) -> Response:
    """Everywhere: tables, history in memory, snapshots. Says what was removed."""
    service = service_of(request)

    def make() -> tuple[int, Any]:
        removed = service.forget(person)
        left = ["the model folder that was given at the start, and backups"]
        return 200, {"removed": removed, "left": left}

    return run_once(request, token, key, {}, make)


@router.post(
    "/people/{person}/asks", status_code=201, summary="Somebody was asked elsewhere",
    tags=["people"], responses={201: {"model": answers.StatusOut}, **described(409)},
)  # fmt: skip
def ask_elsewhere(
    request: Request, person: PersonId, given: schemas.AskIn, key: Key = None,
    token: Token = MayWrite,
) -> Response:  # fmt: skip
    """Counts like any other ask: people have one amount of patience."""
    service = service_of(request)

    def make() -> tuple[int, Any]:
        if person not in service.engine.forgotten_people:
            service.engine.note_ask(person, given.kind.replace("\0", ""))
        return 201, {"status": "noted"}

    return run_once(request, token, key, given.model_dump(), make)


@router.get(
    "/suggestions", summary="Suggestions, newest first", tags=["suggestions"],
    responses={200: {"model": answers.SuggestionPage}, **described()},
)  # fmt: skip
def list_suggestions(
    request: Request,
    limit: Limit = 50,
    cursor: Cursor = "",
    state: Annotated[list[Literal[suggestions.STATES]], Query()] = [],  # type: ignore[valid-type]  # noqa: B006
    question: Annotated[int | None, Query(ge=0, le=schemas.MOST)] = None,
    person: Annotated[int | None, Query(ge=0, le=schemas.MOST)] = None,
    shadow: bool | None = None,
    token: Token = MaySee,
) -> Response:
    """Pages by cursor; filters can be combined."""
    with service_of(request).database.read() as connection:
        page = suggestions.page_of(
            connection, limit=limit, cursor=cursor, state=state, question=question,
            person=person, shadow=shadow,
        )  # fmt: skip
    return JSONResponse({"items": page.rows, "cursor": page.cursor})


@router.get(
    "/suggestions/{suggestion}", summary="A suggestion", tags=["suggestions"],
    responses={200: {"model": answers.SuggestionOut}, **described(404)},
)  # fmt: skip
def one_suggestion(request: Request, suggestion: RowId, token: Token = MaySee) -> Response:
    """With the feedback it got."""
    with service_of(request).database.read() as connection:
        found = suggestions.get_suggestion(connection, suggestion)
    if found is None:
        raise ProblemError(404, "There is no such suggestion.")
    return JSONResponse(found)


@router.post(
    "/suggestions/{suggestion}/feedback", summary="Accept, decline, reassign",
    tags=["suggestions"], responses={200: {"model": answers.SuggestionOut}, **described(404, 409)},
)  # fmt: skip
def give_feedback(
    request: Request, suggestion: RowId, given: schemas.FeedbackIn, key: Key = None,
    token: Token = MayWrite,
) -> Response:  # fmt: skip
    """A declined suggestion goes on to the next people at once; a reassigned one to somebody."""
    service = service_of(request)

    def make() -> tuple[int, Any]:
        found = service.engine.feedback(
            suggestion, given.verdict, person=given.person, token=token.id,
            note=given.note.replace("\0", ""),
        )  # fmt: skip
        if found is None:
            raise ProblemError(404, "There is no such suggestion.")
        return 200, found

    return run_once(request, token, key, given.model_dump(), make)


@router.get(
    "/metrics/quality", summary="How good the suggestions were", tags=["quality"],
    responses={200: {"model": answers.QualityOut}, **described()},
)  # fmt: skip
def live_quality(
    request: Request, days: Annotated[int, Query(ge=1, le=365)] = 30, token: Token = MaySee
) -> Response:
    """Live MRR beside a trivial baseline, coverage, calibration and load."""
    service = service_of(request)
    with service.database.read() as connection:
        found = quality(connection, service.clock() - days * DAY_MS, days)
    return JSONResponse(found)
