"""Other ways to rank people, to compare with the router: the rows of tables, by name."""

from __future__ import annotations

from atpgraph.util.checks import Registry
from atpgraph_qa.baselines.rivals import ColdRoute
from atpgraph_qa.baselines.simple import SIMPLE, Method, RouterWithNewcomers
from atpgraph_qa.baselines.structural import FoldedAtp, Level, PaperAtp, Qdee
from atpgraph_qa.baselines.text import BagOfWords, CqaRank, Doc2Vec, Topics
from atpgraph_qa.ranking.router import Router

_ROWS: tuple[type[Method], ...] = (
    Router, RouterWithNewcomers, PaperAtp, FoldedAtp, BagOfWords, Doc2Vec, Topics, CqaRank, Qdee,
    ColdRoute, Level, *SIMPLE,
)  # fmt: skip
METHODS: Registry[type[Method]] = Registry("method", {row.name: row for row in _ROWS})
# Two rivals take longer than all others together, and lose: they are run on request.
SLOW = (Doc2Vec.name, ColdRoute.name)
QUICK = tuple(name for name in METHODS if name not in SLOW)
