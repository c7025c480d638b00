"""Ranking by the competition graph alone: levels, QDEE, the paper's ATP, and fold-in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from scipy.special import expit

from atpgraph.cycles import agony, break_cycles
from atpgraph.embedding.estimator import ATP
from atpgraph.embedding.growth import FoldIn
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.simple import UserScore
from atpgraph_qa.baselines.text import text_space, topics
from atpgraph_qa.competition import Ega, at_nodes, competition_graph
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query


def _recent(query: Query, question_node: Int64Array, count: int) -> Int64Array:
    """Return the nodes of the asker's latest questions that are in the graph, the latest last."""
    theirs = query.earlier_by_asker
    nodes = question_node[theirs[theirs < len(question_node)]]
    return nodes[nodes >= 0][-count:]


class Level(UserScore):
    """Level of the user in the hierarchy of the competition graph (no expertise-gain edges)."""

    name = "level"

    def fit(self, history: History) -> Self:
        """Break the cycles and find the levels."""
        competition, self._levels = competition_graph(history.posts()), np.zeros(history.n_users)
        if competition.graph.n_edges:
            broken = break_cycles(competition.graph, "h-voting", random_state=self.random_state)
            nodes = competition.user_nodes(history.users)
            self._levels = at_nodes(levels(broken.dag), nodes, 0.0)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        return self._levels


class Qdee(UserScore):
    """Ranks people by the distance of their expertise from the question's difficulty (QDEE).

    Both are agony ranks in the graph with expertise-gain edges. The difficulty of a new question is
    the largest among those of the asker's last three questions and the mean of its neighbors in
    text.
    """

    name = "qdee"

    def fit(self, history: History) -> Self:
        """Find the agony ranks of users and questions."""
        competition = competition_graph(history.posts(), ega="all-pairs")
        graph = competition.graph
        self._rank = agony(graph).centred if graph.n_edges else np.zeros(graph.n_nodes)
        self._expertise = at_nodes(self._rank, competition.user_nodes(history.users), -np.inf)
        self._question = competition.question_nodes(history.questions.id)
        self._resolved = np.flatnonzero((history.best_answer >= 0) & (self._question >= 0))
        return self

    def all_scores(self, query: Query) -> Float64Array:
        guesses = self._rank[_recent(query, self._question, 3)].tolist()
        match = query.match[self._resolved]
        if len(match) and match.max() > 0:
            best = np.argsort(-match, kind="stable")[:10]
            weight = match[best]
            ranks = self._rank[self._question[self._resolved[best]]]
            guesses.append(float(ranks @ weight / weight.sum()))
        away = np.abs(self._expertise - max(guesses, default=0.0))
        return np.where(np.isfinite(away), -away, -1e9)


@dataclass(frozen=True)
class AtpSettings:
    """How competition graphs are embedded for routing; see also :class:`~atpgraph.ATP`."""

    ega: Ega = "consecutive"
    kernel: str = "log"
    zero_weight: float | Literal["auto"] = "auto"
    n_components: int = 16
    recent: int = 3  # how many of the asker's latest questions are looked at
    neighbors: int = 10  # resolved questions near in text that stand in for a new asker's


class Structure:
    """The competition graph of a history, embedded, and the vectors of a cold question.

    Nodes of users and questions that are not in the graph are −1, their vectors zeros.
    """

    def __init__(self, history: History, settings: AtpSettings, random_state: int = 0) -> None:
        competition = competition_graph(history.posts(), ega=settings.ega)
        self.settings = settings
        self.user_node = competition.user_nodes(history.users)
        self.question_node = competition.question_nodes(history.questions.id)
        self.resolved = np.flatnonzero((history.best_answer >= 0) & (self.question_node >= 0))
        self.best_answerer = np.append(history.answers.owner, NOBODY)[history.best_answer]
        self.atp: ATP | None = None
        self.user_target = np.zeros((history.n_users, 1))
        if competition.graph.n_edges:
            self.atp = ATP(
                settings.n_components,
                purpose="paper",
                kernel=settings.kernel,
                zero_weight=settings.zero_weight,
                random_state=random_state,
                n_jobs=1,
            ).fit(competition.graph)
            self.user_target = at_nodes(self.atp.target_, self.user_node, 0.0)

    @cached_property
    def _fold_in(self) -> FoldIn:
        return FoldIn(self.atp)

    def source(self, query: Query, near: Int64Array) -> Float64Array:
        """Return the source vector of a cold question, by the paper's rule.

        It is the vector of the hardest of the asker's latest questions; for a new asker, the mean
        over the questions at positions `near`; if there are none, the mean over all resolved
        questions.
        """
        if self.atp is None:
            return np.zeros(1)
        nodes = _recent(query, self.question_node, self.settings.recent)
        if len(nodes):
            forward = self.atp.source_[nodes] @ self.atp.target_[nodes].T
            beats = np.count_nonzero(forward < forward.T, axis=1)[::-1]
            hardest = nodes[::-1][np.argmax(beats)]  # of equals the latest
            return np.asarray(self.atp.source_[hardest], dtype=np.float64)
        chosen = self.question_node[near if len(near) else self.resolved]
        if not len(chosen):
            return np.zeros(self.atp.source_.shape[1])
        vector: Float64Array = self.atp.source_[chosen].mean(axis=0, dtype=np.float64)
        return vector

    def folded(self, query: Query) -> Float64Array:
        """Return the source vector of a cold question by fold-in.

        Its edges come from the asker and the asker's latest question, and lead to the people whose
        answers were accepted for the resolved questions nearest in text (BM25).
        """
        if self.atp is None:
            return np.zeros(1)
        near = self._near(query)
        people = np.unique(self.best_answerer[near])
        above = self.user_node[people[people >= 0]]
        above = above[above >= 0]
        if not len(above):
            return self.source(query, near)
        asker = self.user_node[[query.asker]] if query.asker >= 0 else self.user_node[:0]
        below = np.concatenate([asker[asker >= 0], _recent(query, self.question_node, 1)])
        vector = self._fold_in.source(above, np.setdiff1d(below, above))
        return np.asarray(vector, dtype=np.float64)

    def _near(self, query: Query) -> Int64Array:
        match = query.match[self.resolved]
        k = min(self.settings.neighbors, len(match))
        if not k or match.max() <= 0:
            return np.zeros(0, dtype=np.int64)
        best = np.argpartition(-match, k - 1)[:k]
        return self.resolved[best[match[best] > 0]]


class PaperAtp(UserScore):
    """The paper's method: σ(s_q*·t_u) with the paper's vector of a cold question."""

    name = "atp"
    # Searched on validation questions: benchmarks/search_routing.py, docs/evidence/routing.md.
    settings = AtpSettings(kernel="constant", n_components=8, recent=1)

    def fit(self, history: History) -> Self:
        """Learn topics once, then the graph."""
        self._topics = text_space(history, topics, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Rebuild the graph; find the topics of new questions."""
        self._structure = Structure(history, self.settings, self.random_state)
        seen = self._topics.of_questions(history)[self._structure.resolved]
        self._seen = seen / np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-12)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        theta, near = self._topics.of_question(query), np.zeros(0, dtype=np.int64)
        if theta is not None and len(self._seen):
            best = np.argsort(-(self._seen @ theta), kind="stable")
            near = self._structure.resolved[best[: self.settings.neighbors]]
        vector = self._structure.source(query, near)
        return np.asarray(expit(self._structure.user_target @ vector))


class FoldedAtp(UserScore):
    """ATP with the question folded in; see :meth:`Structure.folded`."""

    name = "atp-fold-in"
    settings = AtpSettings()

    def fit(self, history: History) -> Self:
        """Embed the graph."""
        self._structure = Structure(history, self.settings, self.random_state)
        return self

    def all_scores(self, query: Query) -> Float64Array:
        return np.asarray(self._structure.user_target @ self._structure.folded(query))
