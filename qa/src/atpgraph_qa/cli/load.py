"""``atp cqa load``: what sharing the work costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session, table
from atpgraph_qa.cli.options import Report, SitePath, TestShare, names, policy

if TYPE_CHECKING:
    from atpgraph_qa.advisor.policies import Policy


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
    test_share: TestShare = 0.2,
    report: Report = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What spreading the load, caps and newcomers cost in MRR, on the last questions of a site."""
    with session(json=json, quiet=quiet) as out:
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

            out.note(f"report: {write_report(found, report, str(site), f'atp cqa load {site}')}")
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
