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
from atpgraph_qa._version import __version__ as __version__

if TYPE_CHECKING:
    from atpgraph_qa.advisor.advisor import Advisor
    from atpgraph_qa.advisor.policies import AskLog, Policy
    from atpgraph_qa.advisor.suggest import Suggestion, Suggestions
    from atpgraph_qa.competition import (
        Competition,
        EdgeTypes,
        SiteStatistics,
        competition_graph,
        site_statistics,
    )
    from atpgraph_qa.data.ingest import IngestReport, ingest
    from atpgraph_qa.data.site import Site
    from atpgraph_qa.difficulty.accuracy import (
        Accuracy,
        BountyTruth,
        Comparator,
        Scores,
        bounty_truth,
        by_tag,
        evaluate,
        halves,
        pairwise_accuracy,
    )
    from atpgraph_qa.difficulty.evaluation import DifficultyReport, evaluate_site, question_scores
    from atpgraph_qa.evaluation.evaluation import evaluate_routing
    from atpgraph_qa.expertise import Expertise
    from atpgraph_qa.simulation.community import Community, simulate_community
    from atpgraph_qa.simulation.dump import write_dump
    from atpgraph_qa.timeline.events import (
        Accepted,
        Answered,
        Asked,
        Event,
        Forgotten,
        Newcomer,
        Voted,
    )
    from atpgraph_qa.timeline.query import Question

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

_NAMES_IN = {
    "advisor.advisor": "Advisor",
    "advisor.policies": "AskLog Policy",
    "advisor.suggest": "Suggestion Suggestions",
    "competition": "Competition EdgeTypes SiteStatistics competition_graph site_statistics",
    "data.ingest": "IngestReport ingest",
    "data.site": "Site",
    "difficulty.accuracy": "Accuracy BountyTruth Comparator Scores bounty_truth by_tag evaluate "
    "halves pairwise_accuracy",
    "difficulty.evaluation": "DifficultyReport evaluate_site question_scores",
    "evaluation.evaluation": "evaluate_routing",
    "expertise": "Expertise",
    "simulation.community": "Community simulate_community",
    "simulation.dump": "write_dump",
    "timeline.events": "Accepted Answered Asked Event Forgotten Newcomer Voted",
    "timeline.query": "Question",
}
__getattr__ = lazy_names(globals(), {module: names.split() for module, names in _NAMES_IN.items()})
