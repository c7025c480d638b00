"""``atp qa difficulty``: which questions are harder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli.console import Session, table, typed_command
from atpgraph.cli.options import Report, Seed, Top, opt
from atpgraph_qa.cli.options import EgaMode, SitePath, Tau, names

if TYPE_CHECKING:
    from atpgraph_qa.difficulty.evaluation import DifficultyReport


class HalvesMode(StrEnum):
    """How questions with a bounty are split into halves."""

    random = "random"
    time = "time"


def difficulty(
    out: Session,
    site: SitePath,
    evaluate: Annotated[bool, opt("Compare methods with bounties.", "--evaluate")] = False,
    methods: Annotated[str | None, opt("Names separated by commas.", show_default="all")] = None,
    ega: Annotated[EgaMode, opt("Expertise-gain edges of the graph of QDEE.")] = EgaMode.all_pairs,
    tau: Tau = 30.0,
    halves: Annotated[
        HalvesMode, opt("How to split into validation and test.")
    ] = HalvesMode.random,
    bootstrap: Annotated[int, opt("Resamples.", min=1)] = 1000,
    min_tag: Annotated[int, opt("Least questions of a tag in the tag table.", min=2)] = 20,
    report: Report = None,
    output: Annotated[
        Path | None,
        opt("Write the difficulty of all questions (.csv or .parquet).", "--output", "-o"),
    ] = None,
    model: Annotated[Path | None, opt("Model of 'atp qa train'.", show_default="train one")] = None,
    top: Top = 10,
    seed: Seed = 0,
) -> None:
    """Which questions are harder, by several methods; with --evaluate, how often they are right."""
    from atpgraph.errors import InputError
    from atpgraph_qa.advisor.model_folder import ModelFolder
    from atpgraph_qa.data.columns import write_columns
    from atpgraph_qa.data.site import Site
    from atpgraph_qa.difficulty.evaluation import evaluate_site, question_scores

    opened = Site(site)
    trained = None if model is None else ModelFolder.open(model).expertise_of(opened)
    options: dict[str, Any] = {
        "methods": None if methods is None else names(methods),
        "ega": ega.value,
        "tau_days": tau,
        "random_state": seed,
        "expertise": trained,
    }
    if evaluate:
        found = evaluate_site(
            opened,
            halves_by=halves.value,
            n_bootstrap=bootstrap,
            min_tag_questions=min_tag,
            **options,
        )
        if report is not None:
            from atpgraph_qa.reports.difficulty import write_report

            out.note(f"report: {write_report(found, report, typed_command())}")
        out.result(found.to_dict(), *_tables(found))
        return
    if report is not None:
        raise InputError("--report needs --evaluate: there is nothing to report without it.")
    ids, columns = question_scores(opened, **options)
    if output is not None:
        write_columns(output, {"question": ids, **columns})
    values = {name: column.tolist() for name, column in columns.items()}
    out.result({"questions": ids.tolist(), "methods": values}, *_extremes(ids, columns, top))


def _extremes(ids: Any, columns: dict[str, Any], top: int) -> list[Any]:
    """The hardest and the easiest questions by each method."""
    import numpy as np

    shown: list[Any] = []
    for name, values in columns.items():
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.lexsort((ids[known], -values[known]))]
        for title, places in (("hardest", order[:top]), ("easiest", order[::-1][:top])):
            rows = [(str(ids[place]), float(values[place])) for place in places.tolist()]
            shown.append(table(("question", name), rows, f"{title} by {name}"))
    return shown


def _tables(found: DifficultyReport) -> list[Any]:
    from atpgraph_qa.difficulty.evaluation import accuracy_rows
    from atpgraph_qa.reports.difficulty import parts

    header = ("method", "accuracy", "low", "high", "ties skipped", "ties right")
    shown: list[Any] = []
    for title, accuracies in reversed(parts(found)):
        shown.append(table(header, accuracy_rows(accuracies), title))
    if found.tags:
        names = list(found.methods)
        rows = [
            (row.tag, row.questions, row.pairs, *(row.methods[name].mean for name in names))
            for row in found.tags
        ]
        shown.append(table(("tag", "questions", "pairs", *names), rows, "by tag"))
    return shown
