"""The commands of ``atp cqa``, in the order in which the help lists them."""

from __future__ import annotations

from atpgraph.cli.commands import Commands
from atpgraph_qa.cli.difficulty import difficulty
from atpgraph_qa.cli.evaluate import evaluate
from atpgraph_qa.cli.experts import experts
from atpgraph_qa.cli.ingest import ingest
from atpgraph_qa.cli.load import load
from atpgraph_qa.cli.route import route
from atpgraph_qa.cli.stats import stats
from atpgraph_qa.cli.train import train

app = Commands(
    no_args_is_help=True,
    help="Stack Exchange sites: ingest, statistics, difficulty, who should answer a question.",
)
for command in (ingest, stats, train, experts, difficulty, route, evaluate, load):
    app.command()(command)
