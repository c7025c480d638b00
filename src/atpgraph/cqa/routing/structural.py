"""What the competition graph says: levels, ATP vectors, and the vectors of a cold question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.competition import Competition, Ega, competition_graph
from atpgraph.cqa.routing.history import Floats, History, Question
from atpgraph.cqa.routing.method import UserScore
from atpgraph.cqa.routing.textual import TopicSpace
from atpgraph.cycles import agony, break_cycles
from atpgraph.embedding.estimator import ATP
from atpgraph.embedding.fold import FoldIn
from atpgraph.hierarchy import levels

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AtpSettings:
    """How competition graphs are embedded.

    Attributes
    ----------
    ega : str
        Expertise-gain edges, see :func:`~atpgraph.cqa.competition.competition_graph`.
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


class Structure:
    """The competition graph of a history, embedded.

    Parameters
    ----------
    history : History
    settings : AtpSettings
    random_state : int
    atp : ATP, optional
        The embedding, if this very graph was embedded before.
    """

    def __init__(
        self,
        history: History,
        settings: AtpSettings | None = None,
        random_state: int = 0,
        atp: ATP | None = None,
    ) -> None:
        self.settings = settings or AtpSettings()
        self.competition: Competition = competition_graph(history.site(), ega=self.settings.ega)
        self.user_node = self.competition.user_nodes(history.users)
        self.question_node = self.competition.question_nodes(history.question_id)
        resolved = history.best_answer >= 0
        self.resolved = np.flatnonzero(resolved & (self.question_node >= 0))
        owner = history.answer_owner[history.best_answer[self.resolved]]
        self.best_of = dict(zip(self.resolved.tolist(), owner.tolist(), strict=True))
        self.atp = atp
        if atp is None and self.competition.graph.n_edges:
            self.atp = ATP(
                self.settings.n_components,
                kernel=self.settings.kernel,
                zero_weight=self.settings.zero_weight,
                random_state=random_state,
                n_jobs=1,
            ).fit(self.competition.graph)

    @classmethod
    def of(
        cls, history: History, settings: AtpSettings | None = None, random_state: int = 0
    ) -> Structure:
        """The structure of a history, embedded once for all methods that ask for it."""
        settings = settings or AtpSettings()
        key = ("structure", history.now, settings, random_state)
        if key not in history.cache:
            history.cache[key] = cls(history, settings, random_state)
        found: Structure = history.cache[key]
        return found

    @cached_property
    def fold_in(self) -> FoldIn:
        """Makes vectors of new nodes; only where there is an embedding."""
        return FoldIn.of(self.atp)

    @cached_property
    def user_target(self) -> Floats:
        """Target vector of every user code, zeros for those not in the graph."""
        return self._of_users(self.atp.target_ if self.atp is not None else np.zeros((1, 1)))

    @cached_property
    def user_level(self) -> Floats:
        """Level of every user code, 0 for those not in the graph."""
        levels_ = self.atp.levels_ if self.atp is not None else np.zeros(1)
        return self._of_users(levels_.astype(np.float64))

    @cached_property
    def _with_target(self) -> tuple[Int64, Floats]:
        """The users whose target vector is not zero, and their vectors: a part of all."""
        people = np.flatnonzero(self.user_target.any(axis=1))
        return people, np.ascontiguousarray(self.user_target[people])

    @cached_property
    def _user_level(self) -> Int64:
        return self.user_level.astype(np.int64)

    @cached_property
    def _log_level(self) -> Floats:
        return np.log1p(self.user_level)

    @property
    def top_level(self) -> int:
        """The highest level of the hierarchy."""
        return int(self.atp.levels_.max(initial=0)) if self.atp is not None else 0

    @cached_property
    def user_strength(self) -> Floats:
        """Length of every user's target vector."""
        return np.asarray(np.linalg.norm(self.user_target, axis=1))

    def _of_users(self, values: Any) -> Floats:
        there = self.user_node >= 0
        result = np.zeros((len(self.user_node), *values.shape[1:]))
        result[there] = values[self.user_node[there]]
        return result

    def recent_questions(self, question: Question) -> Int64:
        """Nodes of the asker's latest questions in the graph, the latest last."""
        history = question.history
        asker = int(history.codes([question.asker])[0]) if question.asker >= 0 else -1
        if asker < 0:
            return np.zeros(0, dtype=np.int64)
        theirs = np.flatnonzero(history.asker[: len(self.question_node)] == asker)
        nodes = self.question_node[theirs]
        return nodes[nodes >= 0][-self.settings.recent :]

    def hardest(self, nodes: Int64) -> int:
        """The node that beats most of the others pairwise; the latest among equals."""
        if self.atp is None or len(nodes) == 1:
            return int(nodes[-1])
        forward = self.atp.source_[nodes] @ self.atp.target_[nodes].T
        beats = np.count_nonzero(forward < forward.T, axis=1)
        return int(nodes[len(nodes) - 1 - int(np.argmax(beats[::-1]))])

    def near(self, question: Question) -> Int64:
        """Positions of the resolved questions nearest in text (BM25)."""
        match = question.match[self.resolved]
        k = min(self.settings.neighbours, len(match))
        if not k or match.max() <= 0:
            return np.zeros(0, dtype=np.int64)
        best = np.argpartition(-match, k - 1)[:k]
        return self.resolved[best[match[best] > 0]]

    def source(self, question: Question, near: Int64) -> tuple[Floats, float]:
        """Source vector and level of a cold question, by the paper's rule.

        The hardest of the asker's latest questions; for a new asker, the mean over the questions
        at positions `near`; where there is neither, the mean over all resolved questions.
        """
        if self.atp is None:
            return np.zeros(1), 0.0
        nodes = self.recent_questions(question)
        if len(nodes):
            node = self.hardest(nodes)
            return self.atp.source_[node].astype(np.float64), float(self.atp.levels_[node])
        chosen = self.question_node[near if len(near) else self.resolved]
        if not len(chosen):
            return np.zeros(self.atp.source_.shape[1]), 0.0
        vector = self.atp.source_[chosen].mean(axis=0, dtype=np.float64)
        return vector, float(self.atp.levels_[chosen].mean())

    def folded(self, question: Question, near: Int64) -> Floats:
        """Source vector of a cold question by fold-in.

        Its edges: from the asker and the asker's latest question, and to those whose answers were
        accepted for the questions at positions `near`.
        """
        if self.atp is None:
            return np.zeros(1)
        asker = question.history.codes([question.asker])
        come = self.user_node[asker[asker >= 0]]
        come = np.concatenate([come[come >= 0], self.recent_questions(question)[-1:]])
        people = np.unique([self.best_of[q] for q in near.tolist()]).astype(np.int64)
        go = self.user_node[people[people >= 0]]
        go = go[go >= 0]
        if not len(go):
            return self.source(question, near)[0]
        vector = self.fold_in.source(go, np.setdiff1d(come, go))
        return np.asarray(vector, dtype=np.float64)

    def features(self, question: Question) -> dict[str, Floats]:
        """ATP's part of the router's features."""
        near = self.near(question)
        source, level = self.source(question, near)
        people, vectors = self._with_target
        score = np.zeros(len(self.user_target))
        score[people] = vectors @ source
        gap = np.arange(self.top_level + 1) - level
        return {
            "atp_score": score,
            "level": self._log_level,
            "level_gap": (np.sign(gap) * np.log1p(np.abs(gap)))[self._user_level],
            "atp_target": self.user_strength,
        }


class Level(UserScore):
    """Level of the user in the hierarchy of the competition graph (no expertise-gain edges)."""

    name = "level"

    def fit(self, history: History) -> Self:
        """Break the cycles, peel."""
        competition = competition_graph(history.site())
        nodes = competition.user_nodes(history.users)
        self._levels = np.zeros(len(nodes))
        if competition.graph.n_edges:
            dag = break_cycles(competition.graph, random_state=self.random_state).dag
            self._levels[nodes >= 0] = levels(dag)[nodes[nodes >= 0]]
        return self

    def all_scores(self, question: Question) -> Floats:
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
        competition = competition_graph(history.site(), ega="all-pairs")
        users = competition.user_nodes(history.users)
        self._question = competition.question_nodes(history.question_id)
        self._rank = np.zeros(competition.graph.n_nodes)
        if competition.graph.n_edges:
            self._rank = agony(competition.graph).centred
        self._expertise = np.full(len(users), -np.inf)
        self._expertise[users >= 0] = self._rank[users[users >= 0]]
        self._resolved = np.flatnonzero((history.best_answer >= 0) & (self._question >= 0))
        return self

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        history = question.history
        guesses = []
        asker = int(history.codes([question.asker])[0]) if question.asker >= 0 else -1
        if asker >= 0:
            theirs = np.flatnonzero(history.asker[: len(self._question)] == asker)
            nodes = self._question[theirs]
            guesses += self._rank[nodes[nodes >= 0][-3:]].tolist()
        match = question.match[self._resolved]
        if len(match) and match.max() > 0:
            best = np.argsort(-match, kind="stable")[:10]
            weight = match[best]
            ranks = self._rank[self._question[self._resolved[best]]]
            guesses.append(float(ranks @ weight / weight.sum()))
        difficulty = max(guesses, default=0.0)
        away = np.abs(self._expertise - difficulty)
        return np.where(np.isfinite(away), -away, -1e9)


class AtpRow(UserScore):
    """The paper's method: σ(s_q*·t_u) with the paper's vector of a cold question."""

    name = "atp"
    # Searched on validation questions: benchmarks/search_routing.py, docs/routing.md.
    settings = AtpSettings(kernel="constant", n_components=8, recent=1)
    n_topics = 30

    def fit(self, history: History) -> Self:
        """Topics once, then the graph."""
        self._topics = TopicSpace.of(history, self.n_topics, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """The graph anew; topics of the new questions."""
        self._structure = Structure.of(history, self.settings, self.random_state)
        seen = self._topics.of_questions(history)[self._structure.resolved]
        self._seen = seen / np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-12)
        return self

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        vector, _ = self._structure.source(question, self._near(question))
        return np.asarray(1.0 / (1.0 + np.exp(-(self._structure.user_target @ vector))))

    def _near(self, question: Question) -> Int64:
        topics = self._topics.of_question(question)
        if topics is None or not len(self._seen):
            return np.zeros(0, dtype=np.int64)
        match = self._seen @ topics
        return self._structure.resolved[
            np.argsort(-match, kind="stable")[: self.settings.neighbours]
        ]


class AtpFold(UserScore):
    """ATP with the question folded in; see :meth:`Structure.folded`."""

    name = "atp-fold-in"
    settings = AtpSettings()

    def fit(self, history: History) -> Self:
        """Embed the graph."""
        self._structure = Structure.of(history, self.settings, self.random_state)
        return self

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        vector = self._structure.folded(question, self._structure.near(question))
        return np.asarray(self._structure.user_target @ vector)
