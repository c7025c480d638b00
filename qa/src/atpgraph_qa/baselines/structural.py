"""Ranking by the competition graph alone: levels, QDEE, the paper's ATP, and fold-in."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit

from atpgraph.cycles import agony, break_cycles
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.method import UserScore
from atpgraph_qa.baselines.structure import AtpSettings, Structure, competition_of
from atpgraph_qa.baselines.topics import TopicSpace
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

LEVELS: Shelf[Float64Array] = Shelf("levels of users", keep=64)
AGONIES: Shelf[tuple[Int64Array, Int64Array, Float64Array]] = Shelf("agony ranks", keep=64)


class Level(UserScore):
    """Level of the user in the hierarchy of the competition graph (no expertise-gain edges)."""

    name = "level"

    def fit(self, history: History) -> Self:
        """Break the cycles and find the levels."""

        def make() -> Float64Array:
            competition = competition_of(history, "none")
            nodes = competition.user_nodes(history.users)
            found = np.zeros(len(nodes))
            if competition.graph.n_edges:
                dag = break_cycles(
                    competition.graph, "h-voting", random_state=self.random_state
                ).dag
                found[nodes >= 0] = levels(dag)[nodes[nodes >= 0]]
            return found

        self._levels = history.remember(LEVELS, self.random_state, make)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        return self._levels


class Qdee(UserScore):
    """Expertise near the question's difficulty, both agony ranks in the graph with EGA edges.

    The difficulty of a new question is the largest of the asker's last three and of its
    neighbours' mean in text; whoever is nearest to it comes first.
    """

    name = "qdee"

    def fit(self, history: History) -> Self:
        """Agony ranks of users and questions."""

        def make() -> tuple[Int64Array, Int64Array, Float64Array]:
            competition = competition_of(history, "all-pairs")
            rank = np.zeros(competition.graph.n_nodes)
            if competition.graph.n_edges:
                rank = agony(competition.graph).centred
            users = competition.user_nodes(history.users)
            return users, competition.question_nodes(history.questions.id), rank

        users, self._question, self._rank = history.remember(AGONIES, (), make)
        self._expertise = np.full(len(users), -np.inf)
        self._expertise[users >= 0] = self._rank[users[users >= 0]]
        self._resolved = np.flatnonzero((history.best_answer >= 0) & (self._question >= 0))
        return self

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        theirs = query.earlier_by_asker
        nodes = self._question[theirs[theirs < len(self._question)]]
        guesses = self._rank[nodes[nodes >= 0][-3:]].tolist()
        match = query.match[self._resolved]
        if len(match) and match.max() > 0:
            best = np.argsort(-match, kind="stable")[:10]
            weight = match[best]
            ranks = self._rank[self._question[self._resolved[best]]]
            guesses.append(float(ranks @ weight / weight.sum()))
        difficulty = max(guesses, default=0.0)
        away = np.abs(self._expertise - difficulty)
        return np.where(np.isfinite(away), -away, -1e9)


class PaperAtp(UserScore):
    """The paper's method: σ(s_q*·t_u) with the paper's vector of a cold question."""

    name = "atp"
    # Searched on validation questions: benchmarks/search_routing.py, docs/evidence/routing.md.
    settings = AtpSettings(kernel="constant", n_components=8, recent=1)
    n_topics = 30

    def fit(self, history: History) -> Self:
        """Learn topics once, then the graph."""
        self._topics = TopicSpace.of(history, self.n_topics, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Rebuild the graph; find the topics of new questions."""
        self._structure = Structure.of(history, self.settings, self.random_state)
        seen = self._topics.of_questions(history)[self._structure.resolved]
        self._seen = seen / np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-12)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        vector = self._structure.source(query, self._near(query))
        return np.asarray(expit(self._structure.user_target @ vector))

    def _near(self, query: Query) -> Int64Array:
        topics = self._topics.of_question(query)
        if topics is None or not len(self._seen):
            return np.zeros(0, dtype=np.int64)
        match = self._seen @ topics
        return self._structure.resolved[
            np.argsort(-match, kind="stable")[: self.settings.neighbours]
        ]


class FoldedAtp(UserScore):
    """ATP with the question folded in; see :meth:`Structure.folded`."""

    name = "atp-fold-in"
    settings = AtpSettings()

    def fit(self, history: History) -> Self:
        """Embed the graph."""
        self._structure = Structure.of(history, self.settings, self.random_state)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        vector = self._structure.folded(query, self._structure.near(query))
        return np.asarray(self._structure.user_target @ vector)
