"""The commands of ``atp qa``, in the order in which the help lists them."""

from __future__ import annotations

from atpgraph.cli.commands import Commands
from atpgraph_qa.cli.difficulty import difficulty
from atpgraph_qa.cli.evaluate import evaluate, load
from atpgraph_qa.cli.model import experts, route, train
from atpgraph_qa.cli.site import ingest, stats

app = Commands(help="Q&A sites: read a dump, train, suggest who should answer, evaluate.")
for command in (ingest, stats, train, route, experts, difficulty, evaluate, load):
    app.command()(command)
