"""``atp cqa route``: who should answer a question."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session
from atpgraph_qa.cli.options import SiteOrModel, names, policy

if TYPE_CHECKING:
    from atpgraph_qa.advisor.suggest import Suggestions

_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]


def route(
    source: SiteOrModel,
    title: Annotated[str, typer.Option("--title", help="Title of the question.")] = "",
    body: Annotated[str, typer.Option("--body", help="Its text, plain or HTML.")] = "",
    tags: Annotated[str, typer.Option("--tags", help="Tags separated by commas.")] = "",
    asker: Annotated[int, typer.Option("--asker", help="User id of who asks.")] = -1,
    at: Annotated[
        datetime.datetime | None,
        typer.Option(
            "--at",
            formats=_TIMES,
            help="When it is asked (UTC).",
            show_default="right after the last post",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many people.")] = 5,
    least: Annotated[
        float, typer.Option("--least-confidence", help="Say so if nobody reaches it.")
    ] = 0.01,
    opt_out: Annotated[
        str, typer.Option("--opt-out", help="User ids, separated by commas, never to ask.")
    ] = "",
    inactive_days: Annotated[
        float | None,
        typer.Option("--inactive-days", help="Leave out who has not answered for this many days."),
    ] = None,
    per_day: Annotated[
        int | None, typer.Option("--per-day", help="Ask nobody more often in 24 hours; see --log.")
    ] = None,
    per_week: Annotated[
        int | None, typer.Option("--per-week", help="The same for seven days.")
    ] = None,
    spread: Annotated[
        float,
        typer.Option(
            "--spread", help="Log-odds lost when the times asked in a week double; see 'cqa load'."
        ),
    ] = 0.0,
    newcomers: Annotated[
        float, typer.Option("--newcomers", min=0, max=1, help="Share of places for newcomers.")
    ] = 0.0,
    welcome: Annotated[
        Path | None,
        typer.Option(
            "--welcome",
            help='JSON list of newcomers: {"user": 9, "tags": ["a"], "text": "…"} by what they '
            'declare, or {"user": 9, "answered": [17], "accepted": [17]} by their first answers.',
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", help="File that remembers who was asked, for caps and spread."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Suggest who should answer a new question, with reasons."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.errors import InputError
        from atpgraph.util.files import check_writable
        from atpgraph_qa.advisor.advisor import Advisor
        from atpgraph_qa.advisor.newcomers import read_newcomers
        from atpgraph_qa.advisor.policies import AskLog
        from atpgraph_qa.data.site import Site
        from atpgraph_qa.data.store import is_site
        from atpgraph_qa.timeline.query import Question

        question = Question(title, body, tuple(names(tags)), asker, at)
        if not (title.strip() or body.strip() or question.tags):
            raise InputError("A question needs --title, --body or --tags.")
        rules = policy(opt_out, inactive_days, per_day, per_week, spread, newcomers)
        if log is not None:
            check_writable(log)
        asked = AskLog() if log is None else AskLog.read(log)
        people = [] if welcome is None else read_newcomers(welcome)
        if is_site(source):
            out.note(f"training first; 'atp cqa train {source} -o MODEL' does it once for all")
            advisor = Advisor.train(Site(source), random_state=seed)
        else:
            advisor = Advisor.open(source)
        advisor = advisor.welcome(people)
        for user in advisor.unplaced():
            out.note(f"newcomer {user} cannot be placed: nothing they say is known here")
        found = advisor.ask(question, rules, log=asked, top=top, least_confidence=least)
        if log is not None:
            asked.write(log)
        for sentence in (*found.notes, found.abstains):
            if sentence:
                out.note(sentence)
        out.result(found.to_dict(), *_lines(found))


def _lines(found: Suggestions) -> list[str]:
    lines = []
    for place, person in enumerate(found.people, start=1):
        lines.append(f"{place}. user {person.user}  confidence {person.confidence:.1%}")
        lines += [f"   - {reason.text}" for reason in person.reasons]
    return lines
