"""Ways to say how hard a question is, to set against ATP.

Every function gives one number for each question of the site, by date; larger = harder, NaN where
nothing is known.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array
from atpgraph.util.random import RandomState
from atpgraph_qa.competition import Competition
from atpgraph_qa.data.site import Site
from atpgraph_qa.expertise import at


def number_of_answers(site: Site) -> Float64Array:
    """Count the answers: questions with more of them pass for harder."""
    counts = np.bincount(site.answers.question, minlength=len(site.questions))
    return counts.astype(np.float64)


def time_to_first_answer(site: Site) -> Float64Array:
    """Milliseconds to the first answer; a question nobody answered is harder than any other."""
    first = np.full(len(site.questions), np.inf)
    np.minimum.at(first, site.answers.question, site.answers.created_ms.astype(np.float64))
    return _waited(site, first)


def time_to_best_answer(site: Site) -> Float64Array:
    """Milliseconds to the accepted answer; a question without one is harder than any other."""
    accepted = site.questions.accepted
    best = np.full(len(site.questions), np.inf)
    have = accepted >= 0
    best[have] = site.answers.created_ms[accepted[have]]
    return _waited(site, best)


def _waited(site: Site, moment: Float64Array) -> Float64Array:
    # A merged or migrated post may be older than its question: that is no waiting at all.
    return np.maximum(moment - site.questions.created_ms, 0)


def question_values(
    site: Site, competition: Competition, node_values: Float64Array
) -> Float64Array:
    """Pick the numbers of the questions from those of all nodes of a competition graph."""
    return at(node_values, competition.question_nodes(site.questions.id))


def trueskill_difficulty(
    site: Site, competition: Competition, random_state: RandomState = 0
) -> Float64Array:
    """TrueSkill on the competition graph: every edge is a match its target won."""
    from atpgraph.cycles.trueskill import trueskill

    ratings = trueskill(competition.graph, random_state=random_state)
    return question_values(site, competition, ratings.score)


def qdee_difficulty(site: Site, competition: Competition) -> Float64Array:
    """QDEE: the lowest rank of least agony on a competition graph with expertise-gain edges."""
    from atpgraph.cycles.agony import agony

    ranks = agony(competition.graph).lowest
    return question_values(site, competition, ranks.astype(np.float64))


def level_difficulty(
    site: Site, competition: Competition, random_state: RandomState = 0
) -> Float64Array:
    """The level of the question alone, after the cycles are broken: ATP without its vectors."""
    from atpgraph.cycles import break_cycles
    from atpgraph.hierarchy import levels

    dag = break_cycles(competition.graph, "h-voting", random_state=random_state).dag
    return question_values(site, competition, levels(dag).astype(np.float64))
