"""The methods that say which question is harder, by name, and the workbench they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.cycles import break_cycles
from atpgraph.cycles.agony import agony
from atpgraph.cycles.trueskill import trueskill
from atpgraph.errors import InputError
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph.util.registry import Registry
from atpgraph_qa.competition import Competition, Ega, competition_graph
from atpgraph_qa.data.site import NOBODY, Site
from atpgraph_qa.difficulty import signal_model as signals
from atpgraph_qa.difficulty.accuracy import BountyTruth, Comparator, Scores, bounty_truth
from atpgraph_qa.expertise import DEFAULT_EGA, Expertise, at


@dataclass(frozen=True, eq=False)
class PathRule:
    """The paper's comparator: j is harder than i where σ(⟨s_i, t_j⟩) > σ(⟨s_j, t_i⟩)."""

    source: Float32Array  # of the questions compared; zeros for those not in the graph, so a tie
    target: Float32Array

    @classmethod
    def of(cls, expertise: Expertise, questions: Int64Array) -> PathRule:
        """Compare questions, given by id, with the vectors of a model."""
        nodes = expertise.competition.question_nodes(questions)
        known = nodes != NOBODY
        vectors = []
        for model_vectors in (expertise.model.source_, expertise.model.target_):
            rows = np.zeros((len(nodes), model_vectors.shape[1]), dtype=np.float32)
            rows[known] = model_vectors[nodes[known]]
            vectors.append(rows)
        return cls(*vectors)

    def harder(self, rows: Int64Array) -> Int8Array:
        """Compare the scores of the two directions; σ keeps their order."""
        to_row = self.target[rows] @ self.source.T
        from_row = self.source[rows] @ self.target.T
        return np.sign(to_row - from_row).astype(np.int8)


@dataclass(eq=False)
class Workbench:
    """A site with its competition graphs and its model, made when a method first asks for them.

    The signal model learns from `first_half` of the questions of `truth` for the others, and from
    the others for these; without it, from all bounties of the site for all questions.
    """

    site: Site
    ega: Ega = "all-pairs"  # expertise-gain edges of the graph with them
    tau_days: float = 30.0
    random_state: int = 0
    trained: Expertise | None = None  # a model made before
    truth: BountyTruth | None = None  # questions to compare; by default all of the site
    first_half: BoolArray | None = None

    @cached_property
    def plain(self) -> Competition:
        """The competition graph without expertise-gain edges."""
        return competition_graph(self.site)

    @cached_property
    def with_gain(self) -> Competition:
        """The competition graph with expertise-gain edges."""
        return competition_graph(self.site, ega=self.ega, tau_days=self.tau_days)

    @cached_property
    def expertise(self) -> Expertise:
        """ATP on the competition graph with consecutive expertise-gain edges."""
        return self.trained or Expertise.fit(
            self.site, ega=DEFAULT_EGA, random_state=self.random_state
        )

    def of_nodes(self, competition: Competition, values: npt.NDArray[Any]) -> Float64Array:
        """Pick the numbers of the questions from those of all nodes of a graph."""
        return at(values, competition.question_nodes(self.site.questions.id))

    def of_model(self, values: Float64Array) -> Float64Array:
        """Pick the numbers of the questions from those of all nodes of the ATP model."""
        return self.of_nodes(self.expertise.competition, values)

    def level(self) -> Float64Array:
        """Return the level after the cycles are broken: ATP without its vectors."""
        dag = break_cycles(self.plain.graph, "h-voting", random_state=self.random_state).dag
        return self.of_nodes(self.plain, levels(dag))

    def path_rule(self) -> PathRule:
        """Compare by the paper's rule."""
        ids = self.site.questions.id
        return PathRule.of(self.expertise, ids if self.truth is None else ids[self.truth.question])

    def signal_model(self, *, atp: bool) -> Float64Array | Scores:
        """Compare by the signal model, with or without the signals of ATP."""
        found = signals.simple_signals(self.site)
        if atp:
            found |= signals.atp_signals(self.site, self.expertise)
        if self.truth is not None and self.first_half is not None:
            return signals.cross_fitted(found, self.truth, self.first_half, self.random_state)
        return signals.fitted_to_all(found, bounty_truth(self.site), self.random_state)


METHODS: Registry[Callable[[Workbench], Float64Array | Comparator]] = Registry(
    "method",
    {
        "number-of-answers": lambda bench: signals.number_of_answers(bench.site),
        "time-first-answer": lambda bench: signals.time_to_first_answer(bench.site),
        "time-best-answer": lambda bench: signals.time_to_best_answer(bench.site),
        "trueskill": lambda bench: bench.of_nodes(
            bench.plain, trueskill(bench.plain.graph, random_state=bench.random_state).score
        ),
        "level": Workbench.level,
        "qdee": lambda bench: bench.of_nodes(bench.with_gain, agony(bench.with_gain.graph).lowest),
        "atp": Workbench.path_rule,
        "atp-mean": lambda bench: bench.of_model(bench.expertise.mean_score),
        "atp-position": lambda bench: bench.of_model(bench.expertise.position),
        "signals-fitted": lambda bench: bench.signal_model(atp=False),
        "atp-fitted": lambda bench: bench.signal_model(atp=True),
    },
)
"""Every method of the command line, by name: a number for each question of the site (larger =
harder, NaN = unknown), or a comparator.

``trueskill`` takes every edge of the competition graph for a match its target won, ``qdee`` is the
lowest rank of least agony with expertise-gain edges, ``atp`` the paper's rule. ``atp-mean`` and
``atp-position`` are numbers from the same vectors, see :mod:`atpgraph_qa.expertise`; ``atp-fitted``
weighs them together with three simple signals, and ``signals-fitted`` weighs those three alone, to
show what the vectors add.
"""


def comparators(bench: Workbench, methods: Iterable[str] | None = None) -> dict[str, Comparator]:
    """Apply the methods with these names, all by default."""
    chosen = METHODS.select("all" if methods is None else methods)
    if not chosen:
        raise InputError(f"Name at least one method of {', '.join(METHODS)}.")
    made: dict[str, Comparator] = {}
    with stage("difficulty methods", len(chosen)) as step:
        for name, method in chosen.items():
            found = method(bench)
            if isinstance(found, np.ndarray):
                found = Scores(found if bench.truth is None else found[bench.truth.question])
            made[name] = found
            step.advance()
    return made
