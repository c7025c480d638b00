"""``atp cqa``: Stack Exchange sites, from a data dump to question difficulty."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._console import Json, Quiet, Seed, session, table

if TYPE_CHECKING:
    from atpgraph.cqa.evaluation import DifficultyReport
    from atpgraph.cqa.ingest import IngestReport

app = typer.Typer(
    no_args_is_help=True, help="Stack Exchange sites: ingest, statistics, question difficulty."
)


class EgaMode(StrEnum):
    """How questions of one asker are linked."""

    none = "none"
    consecutive = "consecutive"
    all_pairs = "all-pairs"


class HalvesMode(StrEnum):
    """How questions with a bounty are split into halves."""

    random = "random"
    time = "time"


SitePath = Annotated[Path, typer.Argument(help="Folder made by 'atp cqa ingest'.")]
Tau = Annotated[float, typer.Option("--tau", help="Days between questions for all-pairs.")]


@app.command("ingest")
def ingest(
    dump: Annotated[Path, typer.Argument(help="Folder of XML files, or the site's .7z file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the site to make.")],
    allow_bad_rows: Annotated[
        bool,
        typer.Option(
            "--allow-bad-rows",
            help="Accept files that were cut off or have more than 1 % unreadable rows.",
            show_default=False,
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read a data dump into a site that the other commands use.

    No name, biography or location of a user is stored. A site that is there is replaced at the end;
    until then, and if anything goes wrong, it stays as it was.
    """
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.ingest import ingest as run

        started = time.perf_counter()
        report = run(dump, output, allow_bad_rows=allow_bad_rows)
        seconds = time.perf_counter() - started
        for name, disabled in report.missing.items():
            out.note(f"the dump has no {name}: {disabled}")
        for name, file in report.files.items():
            for sample in file.samples:
                out.note(f"{name}: {sample}")
        payload = {"site": output, **report.to_dict(), "seconds": round(seconds, 3)}
        out.result(payload, *_ingest_tables(report), f"{output}: {seconds:.1f} s")


def _ingest_tables(report: IngestReport) -> list[Any]:
    stored = table(("table", "rows"), report.rows.items())
    notes = [
        (name, what, count)
        for name, file in report.files.items()
        for what, count in (
            ("unreadable rows", file.unreadable),
            ("rows with an Id seen before left out", file.duplicates),
            *file.notes.items(),
        )
        if count
    ]
    return [stored, *([table(("file", "what", "count"), notes)] if notes else [])]


@app.command("stats")
def stats(
    site: SitePath,
    ega: Annotated[EgaMode, typer.Option("--ega", help="Expertise-gain edges.")] = EgaMode.none,
    tau: Tau = 30.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Size of a site and of its competition graph."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.competition import competition_graph, site_statistics
        from atpgraph.cqa.site import Site

        opened = Site(site)
        competition = competition_graph(opened, ega=ega.value, tau_days=tau)
        counted = site_statistics(opened, competition).to_dict()
        payload = {"site": site, "ega": ega.value, "tau_days": tau, **counted}
        payload["edge_types"] = competition.counts
        rows = [
            (name.replace("_", " "), value)
            for name, value in counted.items()
            if not name.endswith("_ms")
        ]
        rows += [(f"edges {kind.replace('_', ' → ')}", n) for kind, n in competition.counts.items()]
        out.result(payload, table(("what", "number"), rows))


@app.command("difficulty")
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
        typer.Option("--report", help="Write report.md and report.json into this folder."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which questions are harder, by several methods; with --evaluate, how often they are right."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.evaluation import evaluate_site, question_scores
        from atpgraph.cqa.site import Site

        opened = Site(site)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        if evaluate:
            found = evaluate_site(
                opened,
                methods=names,
                ega=ega.value,
                tau_days=tau,
                halves_by=halves.value,
                n_bootstrap=bootstrap,
                min_tag_questions=min_tag,
                random_state=seed,
            )
            if report is not None:
                found.write(report)
            out.result(found.to_dict(), *_difficulty_tables(found))
            return
        from atpgraph.errors import InputError

        if report is not None:
            raise InputError("--report needs --evaluate: there is nothing to report without it.")
        ids, columns = question_scores(
            opened, methods=names, ega=ega.value, tau_days=tau, random_state=seed
        )
        numbers = {name: values.tolist() for name, values in columns.items()}
        payload = {"questions": ids.tolist(), "methods": numbers}
        shown = zip(ids.tolist(), *numbers.values(), strict=True)
        out.result(payload, "\t".join(["question", *numbers]), *_lines(shown))


def _lines(rows: Any) -> list[str]:
    return ["\t".join(f"{value:g}" for value in row) for row in rows]


def _difficulty_tables(found: DifficultyReport) -> list[Any]:
    from atpgraph.cqa.evaluation import accuracy_rows

    header = ("method", "accuracy", "low", "high", "ties skipped", "ties right")
    shown: list[Any] = []
    for title, accuracies in (
        ("all questions with a bounty", found.methods),
        ("validation half", found.validation),
        ("test half", found.test),
    ):
        pairs = next(iter(accuracies.values())).pairs
        shown.append(table(header, accuracy_rows(accuracies), f"{title}: {pairs:,} pairs"))
    if found.tags:
        names = list(found.methods)
        rows = [
            (row.tag, row.questions, row.pairs, *(row.methods[name].mean for name in names))
            for row in found.tags
        ]
        shown.append(table(("tag", "questions", "pairs", *names), rows, "by tag"))
    return shown
