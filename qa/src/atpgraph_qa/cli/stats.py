"""``atp cqa stats``: how large a site and its competition graph are."""

from __future__ import annotations

from typing import Annotated

import typer

from atpgraph.cli.console import Json, Quiet, session, table
from atpgraph_qa.cli.options import EgaMode, SitePath, Tau


def stats(
    site: SitePath,
    ega: Annotated[EgaMode, typer.Option("--ega", help="Expertise-gain edges.")] = EgaMode.none,
    tau: Tau = 30.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Size of a site and of its competition graph."""
    with session(json=json, quiet=quiet) as out:
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
