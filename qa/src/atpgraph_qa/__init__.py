"""Community question answering: Stack Exchange sites, difficulty, expertise, who should answer.

:func:`ingest` reads a dump once into a store, and a :class:`Site` opens it as arrays.
:func:`competition_graph` builds the graph of a site, :func:`evaluate_site` measures how well
methods tell which question is harder, and an :class:`Advisor` suggests who should answer a
question. :func:`simulate_community` makes a site with known truth. Names are imported when they are
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atpgraph.util.lazy import lazy_names
from atpgraph_qa._version import __version__ as __version__

if TYPE_CHECKING:  # type checkers do not follow __getattr__
    from atpgraph_qa.advisor.advisor import Advisor as Advisor
    from atpgraph_qa.advisor.policies import AskLog as AskLog
    from atpgraph_qa.advisor.policies import Policy as Policy
    from atpgraph_qa.advisor.suggest import Suggestion as Suggestion
    from atpgraph_qa.advisor.suggest import Suggestions as Suggestions
    from atpgraph_qa.competition import Competition as Competition
    from atpgraph_qa.competition import EdgeTypes as EdgeTypes
    from atpgraph_qa.competition import competition_graph as competition_graph
    from atpgraph_qa.competition import site_statistics as site_statistics
    from atpgraph_qa.data.ingest import IngestReport as IngestReport
    from atpgraph_qa.data.ingest import ingest as ingest
    from atpgraph_qa.data.site import Site as Site
    from atpgraph_qa.difficulty.accuracy import Accuracy as Accuracy
    from atpgraph_qa.difficulty.accuracy import BountyTruth as BountyTruth
    from atpgraph_qa.difficulty.accuracy import Comparator as Comparator
    from atpgraph_qa.difficulty.accuracy import Scores as Scores
    from atpgraph_qa.difficulty.accuracy import bounty_truth as bounty_truth
    from atpgraph_qa.difficulty.accuracy import by_tag as by_tag
    from atpgraph_qa.difficulty.accuracy import halves as halves
    from atpgraph_qa.difficulty.accuracy import pairwise_accuracy as pairwise_accuracy
    from atpgraph_qa.difficulty.methods import DifficultyReport as DifficultyReport
    from atpgraph_qa.difficulty.methods import evaluate_site as evaluate_site
    from atpgraph_qa.difficulty.methods import question_scores as question_scores
    from atpgraph_qa.evaluation.evaluation import evaluate_routing as evaluate_routing
    from atpgraph_qa.expertise import Expertise as Expertise
    from atpgraph_qa.simulation.community import Community as Community
    from atpgraph_qa.simulation.community import simulate_community as simulate_community
    from atpgraph_qa.simulation.dump import write_dump as write_dump
    from atpgraph_qa.timeline.events import Accepted as Accepted
    from atpgraph_qa.timeline.events import Answered as Answered
    from atpgraph_qa.timeline.events import Asked as Asked
    from atpgraph_qa.timeline.events import Event as Event
    from atpgraph_qa.timeline.events import Forgotten as Forgotten
    from atpgraph_qa.timeline.events import Newcomer as Newcomer
    from atpgraph_qa.timeline.events import Voted as Voted
    from atpgraph_qa.timeline.query import Question as Question

_NAMES_IN = {
    "advisor.advisor": "Advisor",
    "advisor.policies": "AskLog Policy",
    "advisor.suggest": "Suggestion Suggestions",
    "competition": "Competition EdgeTypes competition_graph site_statistics",
    "data.ingest": "IngestReport ingest",
    "data.site": "Site",
    "difficulty.accuracy": "Accuracy BountyTruth Comparator Scores bounty_truth by_tag halves "
    "pairwise_accuracy",
    "difficulty.methods": "DifficultyReport evaluate_site question_scores",
    "evaluation.evaluation": "evaluate_routing",
    "expertise": "Expertise",
    "simulation.community": "Community simulate_community",
    "simulation.dump": "write_dump",
    "timeline.events": "Accepted Answered Asked Event Forgotten Newcomer Voted",
    "timeline.query": "Question",
}
__all__ = sorted(name for names in _NAMES_IN.values() for name in names.split())
__getattr__ = lazy_names(globals(), _NAMES_IN)
