"""Methods that say how hard a question is, to set against ATP.

Larger = harder throughout. Numbers are given for the questions of a
:class:`~atpgraph.cqa.difficulty.BountyTruth`, in its order.
"""

from __future__ import annotations

import numpy as np

from atpgraph._random import RandomState
from atpgraph.cqa.competition import Competition
from atpgraph.cqa.difficulty import BountyTruth, Floats, Scores
from atpgraph.cqa.site import Site


def number_of_answers(site: Site, truth: BountyTruth) -> Scores:
    """Questions with more answers count as harder."""
    counts = np.bincount(site.answers.question, minlength=len(site.questions))
    return Scores(counts[truth.question].astype(np.float64))


def time_to_first_answer(site: Site, truth: BountyTruth) -> Scores:
    """Milliseconds to the first answer; a question nobody answered is harder than any other."""
    first = np.full(len(site.questions), np.inf)
    np.minimum.at(first, site.answers.question, site.answers.created_ms.astype(np.float64))
    return _waited(site, truth, first)


def time_to_best_answer(site: Site, truth: BountyTruth) -> Scores:
    """Milliseconds to the accepted answer; a question without one is harder than any other."""
    accepted = site.questions.accepted
    best = np.full(len(site.questions), np.inf)
    have = accepted >= 0
    best[have] = site.answers.created_ms[accepted[have]]
    return _waited(site, truth, best)


def _waited(site: Site, truth: BountyTruth, moment: Floats) -> Scores:
    # A merged or migrated post may be older than its question: that is no waiting at all.
    waited = np.maximum(moment - site.questions.created_ms, 0)
    return Scores(waited[truth.question])


def node_scores(site: Site, truth: BountyTruth, competition: Competition, scores: Floats) -> Scores:
    """Numbers of the nodes of a competition graph, for the questions; NaN for those not in it."""
    nodes = competition.question_nodes(site.questions.id[truth.question])
    known = nodes >= 0
    values = np.full(len(truth), np.nan)
    values[known] = np.asarray(scores, dtype=np.float64)[nodes[known]]
    return Scores(values)


def trueskill_difficulty(
    site: Site, truth: BountyTruth, competition: Competition, random_state: RandomState = 0
) -> Scores:
    """TrueSkill on the competition graph: every edge is a match its target won."""
    from atpgraph.cycles.trueskill import trueskill

    found = trueskill(competition.graph, random_state=random_state)
    return node_scores(site, truth, competition, found.score)


def qdee_difficulty(site: Site, truth: BountyTruth, competition: Competition) -> Scores:
    """QDEE: the lowest rank of least agony on a competition graph with expertise-gain edges."""
    from atpgraph.cycles.agony import agony

    found = agony(competition.graph)
    return node_scores(site, truth, competition, found.lowest.astype(np.float64))


def level_difficulty(
    site: Site, truth: BountyTruth, competition: Competition, random_state: int = 0
) -> Scores:
    """The rank of the question alone, after the cycles are broken: ATP without its vectors."""
    from atpgraph.cycles import break_cycles
    from atpgraph.hierarchy import levels

    dag = break_cycles(competition.graph, random_state=random_state).dag
    return node_scores(site, truth, competition, levels(dag).astype(np.float64))
