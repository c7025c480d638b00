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
