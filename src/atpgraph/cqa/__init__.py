"""Community question answering: Stack Exchange dumps, competition graphs, question difficulty.

A dump is read once (:func:`ingest`) into a store; a :class:`Site` gives it as arrays; from it comes
the :func:`competition_graph`, and the accuracy of methods that say which question is harder
(:func:`evaluate_site`). :func:`simulate_community` makes a site with known truth.
"""

from __future__ import annotations

from atpgraph.cqa._community_dump import write_dump
from atpgraph.cqa.community import Community, simulate_community
from atpgraph.cqa.competition import (
    Competition,
    EdgeTypes,
    SiteStatistics,
    competition_graph,
    site_statistics,
)
from atpgraph.cqa.difficulty import (
    Accuracy,
    BountyTruth,
    Scores,
    bounty_truth,
    by_tag,
    evaluate,
    halves,
    pairwise_accuracy,
)
from atpgraph.cqa.evaluation import DifficultyReport, evaluate_site, question_scores
from atpgraph.cqa.expertise import Expertise
from atpgraph.cqa.ingest import IngestReport, ingest
from atpgraph.cqa.site import Site

__all__ = [
    "Accuracy",
    "BountyTruth",
    "Community",
    "Competition",
    "DifficultyReport",
    "EdgeTypes",
    "Expertise",
    "IngestReport",
    "Scores",
    "Site",
    "SiteStatistics",
    "bounty_truth",
    "by_tag",
    "competition_graph",
    "evaluate",
    "evaluate_site",
    "halves",
    "ingest",
    "pairwise_accuracy",
    "question_scores",
    "simulate_community",
    "site_statistics",
    "write_dump",
]
