"""``atp qa ingest`` and ``atp qa stats``: a data dump becomes a site, and how large it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from atpgraph.cli.console import Session, table
from atpgraph.cli.options import arg, opt
from atpgraph_qa.cli.options import EgaMode, SitePath, Tau


def ingest(
    out: Session,
    dump: Annotated[Path, arg("Folder of XML files, or the site's .7z file.")],
    output: Annotated[Path, opt("Folder of the site to make.", "--output", "-o")],
    allow_bad_rows: Annotated[
        bool,
        opt(
            "Accept files that were cut off or have more than 1 % unreadable rows.",
            "--allow-bad-rows",
        ),
    ] = False,
) -> None:
    """Read a data dump into a site that the other commands use.

    No name, biography or location of a user is stored. A site that is there is replaced at the end;
    until then, and if anything goes wrong, it stays as it was.
    """
    from atpgraph_qa.data.ingest import ingest as run

    started = time.perf_counter()
    report = run(dump, output, allow_bad_rows=allow_bad_rows)
    seconds = time.perf_counter() - started
    for name, disabled in report.missing.items():
        out.note(f"the dump has no {name}: {disabled}")
    notes = []
    for name, file in report.files.items():
        for sample in file.samples:
            out.note(f"{name}: {sample}")
        counts = {"unreadable rows": file.unreadable, "duplicate Ids": file.duplicates}
        notes += [(name, what, n) for what, n in (counts | dict(file.notes)).items() if n]
    shown: list[Any] = [table(("table", "rows"), report.rows.items())]
    shown += [table(("file", "what", "count"), notes)] if notes else []
    payload = {"site": output, **report.to_dict(), "seconds": round(seconds, 3)}
    out.result(payload, *shown, f"{output}: {seconds:.1f} s; next: atp qa stats {output}")


def stats(
    out: Session,
    site: SitePath,
    ega: Annotated[EgaMode, opt("Expertise-gain edges.")] = EgaMode.none,
    tau: Tau = 30.0,
) -> None:
    """Size of a site and of its competition graph."""
    from atpgraph_qa.competition import competition_graph, site_statistics
    from atpgraph_qa.data.site import Site

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
