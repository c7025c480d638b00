"""``atp cqa evaluate`` and ``atp cqa route``: who should answer a question."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._console import Json, Quiet, Seed, session, table

if TYPE_CHECKING:
    from atpgraph.cqa.routing.evaluation import RoutingReport

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
    site: Annotated[Path, typer.Argument(help="Site, or router saved with --save.")],
    title: Annotated[str, typer.Option("--title", help="Title of the question.")] = "",
    body: Annotated[str, typer.Option("--body", help="Its text, plain or HTML.")] = "",
    tags: Annotated[str, typer.Option("--tags", help="Tags separated by commas.")] = "",
    asker: Annotated[int, typer.Option("--asker", help="User id of who asks.")] = -1,
    top: Annotated[int, typer.Option("--top", min=1, help="How many people.")] = 5,
    opt_out: Annotated[
        str, typer.Option("--opt-out", help="User ids, separated by commas, never to ask.")
    ] = "",
    inactive_days: Annotated[
        float | None,
        typer.Option("--inactive-days", help="Leave out who has not answered for so many days."),
    ] = None,
    newcomers: Annotated[
        float, typer.Option("--newcomers", min=0, max=1, help="Share of places for newcomers.")
    ] = 0.0,
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
        from atpgraph.cqa.routing.history import Question, Records
        from atpgraph.cqa.routing.model_file import is_router, load_router, save_router
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
        if is_router(site):
            router, history = load_router(site)
        else:
            records = Records.of(Site(site))
            history = records.at(records.at().last_ms)
            router = Router("all", seed).fit(history)
        if save is not None:
            save_router(router, history, save)
            out.note(f"router: {save}")
        question = Question(history, history.last_ms, asker, title, body, tuple(_names(tags)))
        policy = Policy(opted_out=never, inactive_days=inactive_days, newcomer_share=newcomers)
        found = suggest(router, question, top=top, policy=policy, least_confidence=least)
        if found.abstains:
            out.note(found.abstains)
        lines = []
        for place, person in enumerate(found.people, start=1):
            lines.append(f"{place}. user {person.user}  confidence {person.confidence:.1%}")
            lines += [f"   - {reason.text}" for reason in person.reasons]
        out.result(found.to_dict(), *lines)
