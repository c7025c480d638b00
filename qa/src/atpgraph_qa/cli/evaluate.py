"""``atp qa evaluate`` and ``atp qa load``: compare routers, and what policies cost."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli.console import Session, table, typed_command
from atpgraph.cli.options import Report, Seed, Top, opt
from atpgraph_qa.cli.options import SitePath, TestShare, Text, milliseconds, names, policy

if TYPE_CHECKING:
    from atpgraph_qa.advisor.policies import Policy
    from atpgraph_qa.evaluation.evaluation import RoutingReport


def evaluate(
    out: Session,
    site: SitePath,
    protocol: Annotated[str, opt("paper, time, or names of single protocols.")] = "paper,time",
    methods: Annotated[
        str,
        opt("Names separated by commas, 'quick' (all but doc2vec and coldroute), or 'all'."),
    ] = "quick",
    test_share: TestShare = 0.2,
    split: Annotated[
        datetime.datetime | None, opt("Date of the split instead.", formats=["%Y-%m-%d"])
    ] = None,
    active_days: Annotated[
        float | None, opt("Active: answered in this many days.", show_default="ever")
    ] = None,
    truth: Annotated[
        Path | None, opt("truth.npz of a simulated community; adds an oracle.")
    ] = None,
    text: Text = "auto",
    report: Report = None,
    seed: Seed = 0,
) -> None:
    """Compare ways of choosing who should answer a question."""
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

        out.note(f"report: {write_report(found, report, typed_command())}")
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


def load(
    out: Session,
    site: SitePath,
    spread: Annotated[str, opt("Values to try, separated by commas.")] = "0.5,1,2",
    per_day: Annotated[int | None, opt("Try this cap.")] = None,
    per_week: Annotated[int | None, opt("Try this cap.")] = None,
    inactive_days: Annotated[float | None, opt("Try leaving out the inactive.")] = None,
    newcomers: Annotated[float, opt("Try this share for newcomers.", min=0, max=1)] = 0.0,
    top: Top = 5,
    test_share: TestShare = 0.2,
    report: Report = None,
    seed: Seed = 0,
) -> None:
    """What spreading the load, caps and newcomers cost in MRR, on the last questions of a site."""
    from atpgraph_qa.advisor.policies import Dispatcher
    from atpgraph_qa.data.site import Site
    from atpgraph_qa.evaluation.load import COLUMNS, load_cost
    from atpgraph_qa.evaluation.protocols import Split

    policies = _policies(spread, per_day, per_week, inactive_days, newcomers)
    found = load_cost(
        Site(site),
        {name: Dispatcher(rule) for name, rule in policies.items()},
        top=top,
        split=Split(test_share),
        random_state=seed,
    )
    if report is not None:
        from atpgraph_qa.reports.load import write_report

        out.note(f"report: {write_report(found, report, str(site), typed_command())}")
    title = f"{found.n_questions:,} questions, {top} people asked each"
    out.result(found.to_dict(), table(COLUMNS, found.rows(), title))


def _policies(
    spread: str,
    per_day: int | None,
    per_week: int | None,
    inactive_days: float | None,
    newcomers: float,
) -> dict[str, Policy]:
    """No policy at all, and each one that is to be tried."""
    from atpgraph.errors import InputError

    tried = {"no policy": policy()}
    for value in names(spread):
        try:
            strength = float(value)
        except ValueError:
            raise InputError(f"--spread takes numbers, not {value!r}.") from None
        tried[f"spread {value}"] = policy(spread=strength)
    if per_day is not None:
        tried[f"at most {per_day} a day"] = policy(per_day=per_day)
    if per_week is not None:
        tried[f"at most {per_week} a week"] = policy(per_week=per_week)
    if inactive_days is not None:
        tried[f"active in {inactive_days:g} days"] = policy(inactive_days=inactive_days)
    if newcomers:
        tried[f"{newcomers:.0%} newcomers"] = policy(newcomers=newcomers)
    return tried
