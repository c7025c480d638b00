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
        out.result(
            payload,
            *_ingest_tables(report),
            f"{output}: {seconds:.1f} s; next: atp cqa stats {output}",
        )


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


@app.command("train")
def train(
    site: SitePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    ega: Annotated[
        EgaMode, typer.Option("--ega", help="Expertise-gain edges.")
    ] = EgaMode.consecutive,
    tau: Tau = 30.0,
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors.")] = 64,
    kernel: Annotated[str, typer.Option(help="log, harmonic, linear or constant.")] = "log",
    method: Annotated[
        str, typer.Option("--method", "-m", help="How to break cycles.")
    ] = "h-voting",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Embed the competition graph of a site: vectors for every question and user."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph._files import check_writable
        from atpgraph._memory import peak_megabytes
        from atpgraph.cqa.expertise import train as run
        from atpgraph.cqa.site import Site

        check_writable(output)
        started = time.perf_counter()
        made = run(
            Site(site), output, ega=ega.value, tau_days=tau, n_components=dim, kernel=kernel,
            method=method, random_state=seed,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        model = made.model
        payload = {
            "site": site,
            "model": output,
            "questions": int(made.is_question.sum()),
            "users": int((~made.is_question).sum()),
            "edges": model.graph_.n_edges,
            "removed": len(model.removed_),
            "levels": int(model.levels_.max(initial=0)),
            "seconds": round(seconds, 3),
            "peak_memory_mb": round(peak_megabytes(), 1),
        }
        rows = [(name.replace("_", " "), value) for name, value in payload.items()]
        out.result(payload, table(("what", "value"), rows), f"next: atp cqa experts {output}")


@app.command("experts")
def experts(
    source: Annotated[
        Path, typer.Argument(metavar="SITE|MODEL", help="A site, or a model of 'atp cqa train'.")
    ],
    tag: Annotated[
        str | None, typer.Option("--tag", help="Expertise in this tag.", show_default="overall")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many users.")] = 20,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The users with the most expertise, overall or in a tag."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cqa.expertise import Expertise, site_of
        from atpgraph.cqa.site import Site

        if source.is_dir():
            opened: Site | None = Site(source)
            made = Expertise.fit(Site(source), random_state=seed)
        else:
            made = Expertise.load(source)
            opened = site_of(source) if tag is not None else None
        if tag is None or opened is None:
            users, scores = made.experts(top)
        else:
            users, scores = made.tag_experts(opened, tag, top)
        found = [
            {"user": user, "expertise": score}
            for user, score in zip(users.tolist(), scores.tolist(), strict=True)
        ]
        shown = [(str(row["user"]), row["expertise"]) for row in found]
        payload = {"source": source, "tag": tag, "experts": found}
        out.result(payload, table(("user", "expertise"), shown))


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
        from atpgraph.cqa.evaluation import evaluate_site, question_scores
        from atpgraph.cqa.expertise import Expertise
        from atpgraph.cqa.site import Site

        opened = Site(site)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        expertise = None if model is None else Expertise.load(model)
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
                expertise=expertise,
            )
            if report is not None:
                from atpgraph.cqa.difficulty_report import write_report

                command = f"atp cqa difficulty {site} --evaluate --seed {seed}"
                out.note(f"{write_report(found, report, command)}: written")
            out.result(found.to_dict(), *_difficulty_tables(found))
            return
        from atpgraph.errors import InputError

        if report is not None:
            raise InputError("--report needs --evaluate: there is nothing to report without it.")
        ids, columns = question_scores(
            opened,
            methods=names,
            ega=ega.value,
            tau_days=tau,
            random_state=seed,
            expertise=expertise,
        )
        if output is not None:
            _write_columns(output, {"question": ids, **columns})
        payload = {
            "questions": ids.tolist(),
            "methods": {name: values.tolist() for name, values in columns.items()},
        }
        out.result(payload, *_extremes(ids, columns, top))


def _write_columns(output: Path, columns: dict[str, Any]) -> None:
    from atpgraph._files import atomic_path
    from atpgraph.cqa._rows import load_arrow
    from atpgraph.errors import InputError

    if output.suffix not in (".csv", ".parquet"):
        raise InputError(f"{output} ends in neither .csv nor .parquet: name one of the two.")
    arrow, _ = load_arrow()
    import pyarrow.csv
    import pyarrow.parquet

    rows = arrow.table(columns)
    with atomic_path(output) as temporary:
        if output.suffix == ".csv":
            pyarrow.csv.write_csv(rows, temporary)
        else:
            pyarrow.parquet.write_table(rows, temporary)


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


def _difficulty_tables(found: DifficultyReport) -> list[Any]:
    from atpgraph.cqa.difficulty_report import parts
    from atpgraph.cqa.evaluation import accuracy_rows

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
