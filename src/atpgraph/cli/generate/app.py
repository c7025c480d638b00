"""The commands of ``atp generate``."""

from __future__ import annotations

from atpgraph.cli.generate.graphs import app

__all__ = ["app"]
