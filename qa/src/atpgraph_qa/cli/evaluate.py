"""``atp cqa evaluate``: which way of choosing who should answer is best."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session, table
from atpgraph_qa.cli.options import Report, SitePath, TestShare, Text, milliseconds, names

if TYPE_CHECKING:
    from atpgraph_qa.evaluation.evaluation import RoutingReport


def evaluate(
    site: SitePath,
    protocol: Annotated[
        str, typer.Option("--protocol", help="paper, time, or names of single protocols.")
    ] = "paper,time",
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            help="Names separated by commas, 'quick' (all but doc2vec and coldroute), or 'all'.",
        ),
    ] = "quick",
    test_share: TestShare = 0.2,
    split: Annotated[
        datetime.datetime | None,
        typer.Option("--split", formats=["%Y-%m-%d"], help="Date of the split instead."),
    ] = None,
    active_days: Annotated[
        float | None,
        typer.Option("--active-days", help="Active: answered in this many days; ever by default."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="truth.npz of a simulated community; adds an oracle."),
    ] = None,
    text: Text = "auto",
    report: Report = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare ways of choosing who should answer a question."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph_qa.data.site import Site
        from atpgraph_qa.evaluation.evaluation import evaluate_routing
        from atpgraph_qa.evaluation.protocols import Split

        found = evaluate_routing(
            Site(site),
            protocols=names(protocol),
            methods=None if methods == "quick" else names(methods),
            split=Split(test_share, milliseconds(split), active_days=active_days),
            truth=truth,
            text=text,
            random_state=seed,
        )
        for sentence in found.skipped.values():
            out.note(sentence)
        if report is not None:
            from atpgraph_qa.reports.routing import write_report

            command = (
                f"atp cqa evaluate {site} --protocol {protocol} --methods {methods} --text {text}"
            )
            out.note(f"report: {write_report(found, report, f'{command} --seed {seed}')}")
        out.result(found.to_dict(), *_tables(found))


def _tables(found: RoutingReport) -> list[Any]:
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
        if not name.startswith("paper"):
            shown.append(_by_earlier_answers(result["earlier_answers"], [row[0] for row in rows]))
    return shown


def _by_earlier_answers(groups: list[dict[str, Any]], methods: list[str]) -> Any:
    """MRR by how many answers the accepted answerer had given before."""
    header = ["method"]
    for group in groups:
        least, most = group["least"], group["most"]
        ends = f"{least}+" if most is None else str(least) if least == most else f"{least}-{most}"
        header.append(f"{ends} ({group['questions']:,})")
    rows = [(method, *(group["mrr"][method] for group in groups)) for method in methods]
    return table(header, rows, "MRR by earlier answers of the accepted answerer (questions)")
