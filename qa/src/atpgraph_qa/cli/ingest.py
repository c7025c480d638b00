"""``atp cqa ingest``: a data dump becomes a site."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli.console import Json, Quiet, session, table

if TYPE_CHECKING:
    from atpgraph_qa.data.ingest import IngestReport


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
        from atpgraph_qa.data.ingest import ingest as run

        started = time.perf_counter()
        report = run(dump, output, allow_bad_rows=allow_bad_rows)
        seconds = time.perf_counter() - started
        for name, disabled in report.missing.items():
            out.note(f"the dump has no {name}: {disabled}")
        for name, file in report.files.items():
            for sample in file.samples:
                out.note(f"{name}: {sample}")
        payload = {"site": output, **report.to_dict(), "seconds": round(seconds, 3)}
        ready = f"{output}: {seconds:.1f} s; next: atp cqa stats {output}"
        out.result(payload, *_tables(report), ready)


def _tables(report: IngestReport) -> list[Any]:
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
