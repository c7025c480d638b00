"""The commands of ``atp generate``, in the order in which the help lists them."""

from __future__ import annotations

from atpgraph.cli.generate.community import community
from atpgraph.cli.generate.graphs import app

__all__ = ["app"]

app.command()(community)
