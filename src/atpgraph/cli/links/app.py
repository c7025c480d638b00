"""The commands below ``atp links``."""

from __future__ import annotations

from atpgraph.cli.commands import Commands
from atpgraph.cli.links.ask import predict, recommend, top
from atpgraph.cli.links.fit import fit

app = Commands(
    no_args_is_help=True, help="Predict links: learn from a graph, then ask for what is missing."
)
app.command("fit")(fit)
app.command("predict")(predict)
app.command("recommend")(recommend)
app.command("top")(top)
