"""Every row of the evaluation, by name."""

from __future__ import annotations

from atpgraph.cqa.routing.baselines.coldroute import ColdRoute
from atpgraph.cqa.routing.baselines.cqarank import CqaRank
from atpgraph.cqa.routing.baselines.doc2vec import Doc2Vec
from atpgraph.cqa.routing.baselines.method import Method
from atpgraph.cqa.routing.baselines.open_places import RouterWithNewcomers
from atpgraph.cqa.routing.baselines.popularity import (
    Chance,
    MeanVotes,
    NumberAccepted,
    NumberOfAnswers,
    RecentActivity,
)
from atpgraph.cqa.routing.baselines.structural import (
    FoldedAtp,
    Level,
    PaperAtp,
    Qdee,
)
from atpgraph.cqa.routing.baselines.textual import BagOfWords, Bm25, TagExperts, Topics
from atpgraph.cqa.routing.baselines.topic_activity import SimilarActivity, TopicActivity
from atpgraph.cqa.routing.model.router import Router
from atpgraph.util.registry import Registry

_ROWS: tuple[type[Method], ...] = (
    Router,
    RouterWithNewcomers,
    PaperAtp,
    FoldedAtp,
    BagOfWords,
    Doc2Vec,
    Topics,
    CqaRank,
    Qdee,
    ColdRoute,
    NumberOfAnswers,
    NumberAccepted,
    MeanVotes,
    RecentActivity,
    TopicActivity,
    SimilarActivity,
    Level,
    Bm25,
    TagExperts,
    Chance,
)
METHODS: Registry[type[Method]] = Registry("method", {row.name: row for row in _ROWS})
# Two rivals take longer than all others together, and lose: they are run on request.
SLOW = (Doc2Vec.name, ColdRoute.name)
QUICK = tuple(name for name in METHODS if name not in SLOW)
