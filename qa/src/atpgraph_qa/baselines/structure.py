"""The competition graph of a history, embedded, and the vectors of a cold question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from atpgraph.embedding.estimator import ATP
from atpgraph.embedding.fold_in import FoldIn
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.competition import Competition, Ega, competition_graph
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query


@dataclass(frozen=True)
class AtpSettings:
    """How competition graphs are embedded for routing.

    Attributes
    ----------
    ega : str
        Expertise-gain edges, see :func:`~atpgraph_qa.competition.competition_graph`.
    kernel, zero_weight, n_components
        See :class:`~atpgraph.ATP`.
    recent : int
        How many of the asker's latest questions are looked at.
    neighbours : int
        How many resolved questions near in text stand in for a new asker's question.
    """

    ega: Ega = "consecutive"
    kernel: str = "log"
    zero_weight: float | Literal["auto"] = "auto"
    n_components: int = 16
    recent: int = 3
    neighbours: int = 10

    def embed(self, competition: Competition, random_state: int) -> ATP | None:
        """Embed a competition graph; None if it has no edges."""
        if not competition.graph.n_edges:
            return None
        return ATP(
            self.n_components,
            purpose="paper",
            kernel=self.kernel,
            zero_weight=self.zero_weight,
            random_state=random_state,
            n_jobs=1,
        ).fit(competition.graph)


@dataclass(frozen=True, eq=False)
class Structure:
    """The competition graph of a history, embedded.

    Attributes
    ----------
    settings : AtpSettings
    atp : ATP or None
        The embedding; None for a graph without edges.
    user_node, question_node : int64 arrays
        Node of every user code and every question, −1 for those not in the graph.
    resolved : int64 array
        Positions of the questions with an accepted answer that are in the graph.
    best_answerer : int64 array
        Code of the accepted answerer of every question, −1 for none.
    user_target : float64 array of shape (users, k)
        Target vector of every user code, zeros for those not in the graph.
    """

    settings: AtpSettings
    atp: ATP | None
    user_node: Int64Array
    question_node: Int64Array
    resolved: Int64Array
    best_answerer: Int64Array
    user_target: Float64Array

    @classmethod
    def of(
        cls, history: History, settings: AtpSettings | None = None, random_state: int = 0
    ) -> Structure:
        """The structure of a history, embedded once for all methods that ask for it."""
        chosen = settings or AtpSettings()

        def make() -> Structure:
            competition = competition_of(history, chosen.ega)
            return cls.from_embedding(
                history, chosen, chosen.embed(competition, random_state), competition
            )

        return history.remember(STRUCTURES, (chosen, random_state), make)

    @classmethod
    def from_embedding(
        cls, history: History, settings: AtpSettings, atp: ATP | None, competition: Competition
    ) -> Self:
        """The structure of a history whose competition graph was embedded before."""
        users = np.full(history.n_users, NOBODY, dtype=np.int64)
        questions = np.full(history.n_questions, NOBODY, dtype=np.int64)
        target = np.zeros((history.n_users, 1))
        if atp is not None:
            users = competition.user_nodes(history.users)
            questions = competition.question_nodes(history.questions.id)
            target = _at_nodes(atp.target_, users)
        resolved = np.flatnonzero((history.best_answer >= 0) & (questions >= 0))
        owner = np.append(history.answers.owner, NOBODY)[history.best_answer]
        return cls(settings, atp, users, questions, resolved, owner, target)

    @cached_property
    def fold_in(self) -> FoldIn:
        """Makes vectors of new nodes; only where there is an embedding."""
        return FoldIn.of(self.atp)

    def recent_questions(self, query: Query) -> Int64Array:
        """Nodes of the asker's latest questions in the graph, the latest last."""
        theirs = query.earlier_by_asker
        nodes = self.question_node[theirs[theirs < len(self.question_node)]]
        return nodes[nodes >= 0][-self.settings.recent :]

    def hardest(self, nodes: Int64Array) -> int:
        """The node that beats most of the others pairwise; the latest among equals."""
        if self.atp is None or len(nodes) == 1:
            return int(nodes[-1])
        forward = self.atp.source_[nodes] @ self.atp.target_[nodes].T
        beats = np.count_nonzero(forward < forward.T, axis=1)
        return int(nodes[len(nodes) - 1 - int(np.argmax(beats[::-1]))])

    def near(self, query: Query) -> Int64Array:
        """Positions of the resolved questions nearest in text (BM25)."""
        match = query.match[self.resolved]
        k = min(self.settings.neighbours, len(match))
        if not k or match.max() <= 0:
            return np.zeros(0, dtype=np.int64)
        best = np.argpartition(-match, k - 1)[:k]
        return self.resolved[best[match[best] > 0]]

    def source(self, query: Query, near: Int64Array) -> Float64Array:
        """Source vector of a cold question, by the paper's rule.

        The hardest of the asker's latest questions; for a new asker, the mean over the questions
        at positions `near`; where there is neither, the mean over all resolved questions.
        """
        if self.atp is None:
            return np.zeros(1)
        nodes = self.recent_questions(query)
        if len(nodes):
            node = self.hardest(nodes)
            return np.asarray(self.atp.source_[node], dtype=np.float64)
        chosen = self.question_node[near if len(near) else self.resolved]
        if not len(chosen):
            return np.zeros(self.atp.source_.shape[1])
        vector: Float64Array = self.atp.source_[chosen].mean(axis=0, dtype=np.float64)
        return vector

    def folded(self, query: Query, near: Int64Array) -> Float64Array:
        """Source vector of a cold question by fold-in.

        Its edges: from the asker and the asker's latest question, and to those whose answers were
        accepted for the questions at positions `near`.
        """
        if self.atp is None:
            return np.zeros(1)
        asker = self.user_node[[query.asker]] if query.asker >= 0 else self.user_node[:0]
        below = np.concatenate([asker[asker >= 0], self.recent_questions(query)[-1:]])
        people = np.unique(self.best_answerer[near])
        above = self.user_node[people[people >= 0]]
        above = above[above >= 0]
        if not len(above):
            return self.source(query, near)
        vector = self.fold_in.source(above, np.setdiff1d(below, above))
        return np.asarray(vector, dtype=np.float64)


STRUCTURES: Shelf[Structure] = Shelf("structures", keep=64)
GRAPHS: Shelf[Competition] = Shelf("competition graphs", keep=3)


def competition_of(history: History, ega: Ega) -> Competition:
    """The competition graph of a history, built once for all methods that ask for it."""
    return history.remember(GRAPHS, ega, lambda: competition_graph(history.posts(), ega=ega))


def _at_nodes(values: Any, nodes: Int64Array) -> Float64Array:
    """Values by node, zeros for −1."""
    there = nodes >= 0
    result = np.zeros((len(nodes), *values.shape[1:]))
    result[there] = values[nodes[there]]
    return result
