"""The commands of ``atp cqa``, in the order in which the help lists them."""

from __future__ import annotations

from atpgraph.cli._commands import Commands
from atpgraph.cli.cqa.difficulty import difficulty
from atpgraph.cli.cqa.evaluate import evaluate
from atpgraph.cli.cqa.experts import experts
from atpgraph.cli.cqa.ingest import ingest
from atpgraph.cli.cqa.load import load
from atpgraph.cli.cqa.route import route
from atpgraph.cli.cqa.stats import stats
from atpgraph.cli.cqa.train import train

app = Commands(
    no_args_is_help=True,
    help="Stack Exchange sites: ingest, statistics, difficulty, who should answer a question.",
)
for command in (ingest, stats, train, experts, difficulty, route, evaluate, load):
    app.command()(command)
