"""``atp cqa evaluate``, ``route`` and ``load``: who should answer a question."""

from __future__ import annotations

import datetime
import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._console import Json, Quiet, Seed, session, table

if TYPE_CHECKING:
    from atpgraph.cqa.routing.evaluation import RoutingReport
    from atpgraph.cqa.routing.policies import Dispatcher, Policy

SitePath = Annotated[Path, typer.Argument(help="Folder made by 'atp cqa ingest'.")]


def evaluate(
    site: SitePath,
    protocol: Annotated[
        str, typer.Option("--protocol", help="paper, time, or names of single protocols.")
    ] = "paper,time",
    methods: Annotated[
        str, typer.Option("--methods", help="'all', or names separated by commas.")
    ] = "all",
    test_share: Annotated[
        float, typer.Option("--test-share", help="Share of the questions, the last, to test on.")
    ] = 0.2,
    split: Annotated[
        datetime.datetime | None,
        typer.Option("--split", formats=["%Y-%m-%d"], help="Date of the split instead."),
    ] = None,
    active_days: Annotated[
        float | None,
        typer.Option("--active-days", help="Active: answered in so many days; ever by default."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="truth.npz of a simulated community; adds an oracle."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write index.html into this folder.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare ways of choosing who should answer a question."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.routing.evaluation import evaluate_routing
        from atpgraph.cqa.site import Site

        split_ms = None
        if split is not None:
            split_ms = int(split.replace(tzinfo=datetime.UTC).timestamp() * 1000)
        found = evaluate_routing(
            Site(site),
            protocols=_names(protocol),
            methods=_names(methods),
            test_share=test_share,
            split_ms=split_ms,
            active_days=active_days,
            truth=truth,
            random_state=seed,
        )
        for sentence in found.skipped.values():
            out.note(sentence)
        if report is not None:
            from atpgraph.cqa.routing.report import write_report

            command = f"atp cqa evaluate {site} --protocol {protocol} --methods {methods}"
            written = write_report(found, report, f"{command} --seed {seed}")
            out.note(f"report: {written}")
        out.result(found.to_dict(), *_evaluation_tables(found))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _evaluation_tables(found: RoutingReport) -> list[Any]:
    shown: list[Any] = []
    for name, result in found.to_dict().items():
        rows = []
        ordered = sorted(result["methods"].items(), key=lambda item: -(item[1]["mrr"]["mean"] or 0))
        for method, row in ordered:
            above = row.get("router_above", {})
            rows.append(
                (
                    method,
                    *(row["mrr"][end] for end in ("mean", "low", "high")),
                    *(row[metric] for metric in ("p@1", "p@3", "accuracy")),
                    above.get("mean"),
                    above.get("p"),
                )
            )
        title = (
            f"{name}: {result['questions']:,} questions, "
            f"{result['candidates_mean']:.1f} candidates each, {result['reachable']:,} reachable"
        )
        header = ("method", "MRR", "low", "high", "P@1", "P@3", "accuracy", "router above by", "p")
        shown.append(table(header, rows, title))
    return shown


def route(
    site: Annotated[
        Path,
        typer.Argument(
            metavar="SITE|MODEL",
            help="A site, a router kept with --save, or a model of 'atp cqa train', whose router "
            "is kept beside it as NAME.router.",
        ),
    ],
    title: Annotated[str, typer.Option("--title", help="Title of the question.")] = "",
    body: Annotated[str, typer.Option("--body", help="Its text, plain or HTML.")] = "",
    tags: Annotated[str, typer.Option("--tags", help="Tags separated by commas.")] = "",
    asker: Annotated[int, typer.Option("--asker", help="User id of who asks.")] = -1,
    top: Annotated[int, typer.Option("--top", min=1, help="How many people.")] = 5,
    at: Annotated[
        datetime.datetime | None,
        typer.Option(
            "--at",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"],
            help="When it is asked (UTC).",
            show_default="right after the last post",
        ),
    ] = None,
    opt_out: Annotated[
        str, typer.Option("--opt-out", help="User ids, separated by commas, never to ask.")
    ] = "",
    inactive_days: Annotated[
        float | None,
        typer.Option("--inactive-days", help="Leave out who has not answered for so many days."),
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
    least: Annotated[
        float, typer.Option("--least-confidence", help="Say so if nobody reaches it.")
    ] = 0.01,
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the trained router in this folder.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Suggest who should answer a new question, with reasons."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.expertise import site_of
        from atpgraph.cqa.routing.history import History, Question, Records
        from atpgraph.cqa.routing.model_file import is_router, load_router, save_router
        from atpgraph.cqa.routing.newcomers import read_newcomers
        from atpgraph.cqa.routing.newcomers import welcome as welcome_people
        from atpgraph.cqa.routing.policies import Policy
        from atpgraph.cqa.routing.router import Router
        from atpgraph.cqa.routing.suggest import suggest
        from atpgraph.cqa.site import Site
        from atpgraph.errors import InputError

        if not (title.strip() or body.strip() or tags.strip() or save):
            raise InputError("A question needs --title, --body or --tags.")
        try:
            never = frozenset(int(number) for number in _names(opt_out))
        except ValueError:
            raise InputError(f"--opt-out takes user ids, not {opt_out!r}.") from None
        policy = Policy(never, inactive_days, per_day, per_week, spread, newcomers)
        keeper = _read_log(log, policy)
        people = [] if welcome is None else read_newcomers(welcome)
        model = site.is_file()
        kept = site.with_suffix(".router") if model else site
        history: History
        if is_router(kept) and not (model and _older(kept / "router.json", site)):
            router, history = load_router(kept)
        else:
            records = Records.of(site_of(site) if model else Site(site))
            history = records.at(records.at().last_ms)
            router = Router("all", seed).fit(history)
            save = save or (kept if model else None)
        if save is not None:
            save_router(router, history, save)
            out.note(f"router: {save}")
        if people:
            router, history = opened = welcome_people(router, history, people)
            for user, placed in opened[1].newcomers.items():
                if not len(placed.questions):
                    out.note(f"newcomer {user} cannot be placed: nothing they say is known here")
        moment = history.last_ms
        if at is not None:
            moment = int(at.replace(tzinfo=datetime.UTC).timestamp() * 1000)
        if moment < history.last_ms:
            raise InputError(f"--at {at} is before the last post of the site; it must be after.")
        question = Question(history, moment, asker, title, body, tuple(_names(tags)))
        found = suggest(router, question, top=top, dispatcher=keeper, least_confidence=least)
        _write_log(log, keeper)
        for sentence in (*found.notes, found.abstains):
            if sentence:
                out.note(sentence)
        lines = []
        for place, person in enumerate(found.people, start=1):
            lines.append(f"{place}. user {person.user}  confidence {person.confidence:.1%}")
            lines += [f"   - {reason.text}" for reason in person.reasons]
        out.result(found.to_dict(), *lines)


def _older(first: Path, second: Path) -> bool:
    return first.stat().st_mtime_ns < second.stat().st_mtime_ns


def _read_log(path: Path | None, policy: Policy) -> Dispatcher:
    from atpgraph.cqa.routing.policies import Dispatcher
    from atpgraph.errors import InputError

    if path is None or not path.exists():
        return Dispatcher(policy)
    try:
        return Dispatcher.from_json(jsonlib.loads(path.read_text(encoding="utf-8")), policy)
    except (OSError, ValueError, InputError):
        raise InputError(f"{path} is not a record of who was asked: name another file.") from None


def _write_log(path: Path | None, keeper: Dispatcher) -> None:
    from atpgraph._files import atomic_path

    if path is not None:
        with atomic_path(path) as temporary:
            temporary.write_text(jsonlib.dumps(keeper.to_json()) + "\n", encoding="utf-8")


def load(
    site: SitePath,
    spread: Annotated[
        str, typer.Option("--spread", help="Values to try, separated by commas.")
    ] = "0.5,1,2",
    per_day: Annotated[int | None, typer.Option("--per-day", help="Try this cap.")] = None,
    per_week: Annotated[int | None, typer.Option("--per-week", help="Try this cap.")] = None,
    inactive_days: Annotated[
        float | None, typer.Option("--inactive-days", help="Try leaving out the inactive.")
    ] = None,
    newcomers: Annotated[
        float, typer.Option("--newcomers", min=0, max=1, help="Try this share for newcomers.")
    ] = 0.0,
    top: Annotated[int, typer.Option("--top", min=1, help="People asked per question.")] = 5,
    test_share: Annotated[
        float, typer.Option("--test-share", help="Share of the questions, the last, to route.")
    ] = 0.2,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write index.html into this folder.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What spreading the load, caps and newcomers cost in MRR, on the last questions of a site."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.routing.load import COLUMNS, load_cost, write_load_report
        from atpgraph.cqa.routing.policies import Policy
        from atpgraph.cqa.site import Site
        from atpgraph.errors import InputError

        policies = {}
        for value in _names(spread):
            try:
                policies[f"spread {value}"] = Policy(spread=float(value))
            except ValueError:
                raise InputError(f"--spread takes numbers, not {value!r}.") from None
        if per_day is not None:
            policies[f"at most {per_day} a day"] = Policy(per_day=per_day)
        if per_week is not None:
            policies[f"at most {per_week} a week"] = Policy(per_week=per_week)
        if inactive_days is not None:
            policies[f"active in {inactive_days:g} days"] = Policy(inactive_days=inactive_days)
        if newcomers:
            policies[f"{newcomers:.0%} newcomers"] = Policy(newcomer_share=newcomers)
        found = load_cost(Site(site), policies, top=top, test_share=test_share, random_state=seed)
        if report is not None:
            written = write_load_report(found, report, str(site), f"atp cqa load {site}")
            out.note(f"report: {written}")
        payload = found.to_dict()
        title = f"{payload['questions']:,} questions, {top} people asked each"
        out.result(payload, table(COLUMNS, found.rows(), title))
