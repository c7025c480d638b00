"""Community question answering: Stack Exchange sites, difficulty, expertise, who should answer.

A dump is read once (:func:`ingest`) into a store; a :class:`Site` gives it as arrays; from it comes
the :func:`competition_graph`, and the accuracy of methods that say which question is harder
(:func:`evaluate_site`). An :class:`Advisor` says who should answer a question.
:func:`simulate_community` makes a site with known truth. Names are imported when they are first
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atpgraph.util.lazy import lazy_names

if TYPE_CHECKING:
    from atpgraph.cqa.competition import (
        Competition,
        EdgeTypes,
        SiteStatistics,
        competition_graph,
        site_statistics,
    )
    from atpgraph.cqa.data.ingest import IngestReport, ingest
    from atpgraph.cqa.data.site import Site
    from atpgraph.cqa.difficulty.accuracy import (
        Accuracy,
        Comparator,
        Scores,
        by_tag,
        evaluate,
        pairwise_accuracy,
    )
    from atpgraph.cqa.difficulty.evaluation import DifficultyReport, evaluate_site, question_scores
    from atpgraph.cqa.difficulty.truth import BountyTruth, bounty_truth, halves
    from atpgraph.cqa.expertise import Expertise
    from atpgraph.cqa.routing.advice.advisor import Advisor
    from atpgraph.cqa.routing.advice.policies import AskLog, Policy
    from atpgraph.cqa.routing.advice.suggest import Suggestion, Suggestions
    from atpgraph.cqa.routing.evaluation.evaluation import evaluate_routing
    from atpgraph.cqa.routing.timeline.events import (
        Accepted,
        Answered,
        Asked,
        Event,
        Forgotten,
        Voted,
    )
    from atpgraph.cqa.routing.timeline.newcomer import Newcomer
    from atpgraph.cqa.routing.timeline.query import Question
    from atpgraph.cqa.simulation.community import Community, simulate_community
    from atpgraph.cqa.simulation.dump import write_dump

__all__ = [
    "Accepted",
    "Accuracy",
    "Advisor",
    "Answered",
    "AskLog",
    "Asked",
    "BountyTruth",
    "Community",
    "Comparator",
    "Competition",
    "DifficultyReport",
    "EdgeTypes",
    "Event",
    "Expertise",
    "Forgotten",
    "IngestReport",
    "Newcomer",
    "Policy",
    "Question",
    "Scores",
    "Site",
    "SiteStatistics",
    "Suggestion",
    "Suggestions",
    "Voted",
    "bounty_truth",
    "by_tag",
    "competition_graph",
    "evaluate",
    "evaluate_routing",
    "evaluate_site",
    "halves",
    "ingest",
    "pairwise_accuracy",
    "question_scores",
    "simulate_community",
    "site_statistics",
    "write_dump",
]

__getattr__ = lazy_names(
    globals(),
    {
        "competition": [
            "Competition",
            "EdgeTypes",
            "SiteStatistics",
            "competition_graph",
            "site_statistics",
        ],
        "data.ingest": ["IngestReport", "ingest"],
        "data.site": ["Site"],
        "difficulty.evaluation": ["DifficultyReport", "evaluate_site", "question_scores"],
        "difficulty.accuracy": [
            "Accuracy",
            "Comparator",
            "Scores",
            "by_tag",
            "evaluate",
            "pairwise_accuracy",
        ],
        "difficulty.truth": ["BountyTruth", "bounty_truth", "halves"],
        "expertise": ["Expertise"],
        "routing.advice.advisor": ["Advisor"],
        "routing.advice.policies": ["AskLog", "Policy"],
        "routing.advice.suggest": ["Suggestion", "Suggestions"],
        "routing.evaluation.evaluation": ["evaluate_routing"],
        "routing.timeline.events": [
            "Accepted",
            "Answered",
            "Asked",
            "Event",
            "Forgotten",
            "Voted",
        ],
        "routing.timeline.newcomer": ["Newcomer"],
        "routing.timeline.query": ["Question"],
        "simulation.community": ["Community", "simulate_community"],
        "simulation.dump": ["write_dump"],
    },
)
