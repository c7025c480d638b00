"""``atp cqa difficulty``: which questions are harder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session, table
from atpgraph_qa.cli.options import EgaMode, SitePath, Tau, names

if TYPE_CHECKING:
    from atpgraph_qa.difficulty.evaluation import DifficultyReport


class HalvesMode(StrEnum):
    """How questions with a bounty are split into halves."""

    random = "random"
    time = "time"


def difficulty(
    site: SitePath,
    evaluate: Annotated[
        bool,
        typer.Option("--evaluate", help="Compare methods with bounties.", show_default=False),
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Names separated by commas; all by default."),
    ] = None,
    ega: Annotated[
        EgaMode, typer.Option("--ega", help="Expertise-gain edges of the graph of QDEE.")
    ] = EgaMode.all_pairs,
    tau: Tau = 30.0,
    halves: Annotated[
        HalvesMode, typer.Option("--halves", help="How to split into validation and test.")
    ] = HalvesMode.random,
    bootstrap: Annotated[int, typer.Option("--bootstrap", min=1, help="Resamples.")] = 1000,
    min_tag: Annotated[
        int, typer.Option("--min-tag", min=2, help="Least questions of a tag in the tag table.")
    ] = 20,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write index.html, report.md and report.json into a folder."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the difficulty of all questions (.csv or .parquet)."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Model of 'atp cqa train'.", show_default="train one"),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Questions to show at each end.")] = 10,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which questions are harder, by several methods; with --evaluate, how often they are right."""
    with session(json=json, quiet=quiet) as out:
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

                command = f"atp cqa difficulty {site} --evaluate --seed {seed}"
                out.note(f"{write_report(found, report, command)}: written")
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
