"""The methods that say which question is harder, by name, and the workbench they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph.util.registry import Registry
from atpgraph_qa.competition import Competition, Ega, competition_graph
from atpgraph_qa.data.site import NOBODY, Site
from atpgraph_qa.difficulty import baselines
from atpgraph_qa.difficulty.accuracy import Comparator, Scores
from atpgraph_qa.difficulty.signal_model import (
    atp_signals,
    cross_fitted,
    fitted_to_all,
    simple_signals,
)
from atpgraph_qa.difficulty.truth import BountyTruth, bounty_truth
from atpgraph_qa.expertise import DEFAULT_EGA, Expertise


@dataclass(frozen=True, eq=False)
class PathRule:
    """The paper's comparator: j is harder than i where σ(⟨s_i, t_j⟩) > σ(⟨s_j, t_i⟩).

    Attributes
    ----------
    source, target : float32 arrays
        Vectors of the questions compared; zeros for those not in the graph, so a tie.
    """

    source: Float32Array
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


class Workbench:
    """A site with its competition graphs and its model, made when a method first asks for them.

    Parameters
    ----------
    site : Site
        The site.
    truth : BountyTruth, optional
        Questions to compare; all questions of the site by default.
    first_half : boolean array, optional
        The signal model learns from these questions of `truth` for the others, and from the others
        for these; without it, from all bounties of the site for all questions.
    ega, tau_days
        Expertise-gain edges of the graph with them, see
        :func:`~atpgraph_qa.competition.competition_graph`.
    random_state : int
        For methods that draw.
    expertise : Expertise, optional
        A model made before; otherwise one is fitted when a method asks for it.
    """

    def __init__(
        self,
        site: Site,
        truth: BountyTruth | None = None,
        first_half: BoolArray | None = None,
        *,
        ega: Ega = "all-pairs",
        tau_days: float = 30.0,
        random_state: int = 0,
        expertise: Expertise | None = None,
    ) -> None:
        self.site = site
        self.truth = truth
        self.first_half = first_half
        self.ega = ega
        self.tau_days = tau_days
        self.random_state = random_state
        self._expertise = expertise

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
        return self._expertise or Expertise.fit(
            self.site, ega=DEFAULT_EGA, random_state=self.random_state
        )

    def scores(self, values: Float64Array) -> Scores:
        """Compare by numbers, one for every question of the site."""
        return Scores(values if self.truth is None else values[self.truth.question])

    def node_scores(self, values: Float64Array) -> Scores:
        """Compare by numbers of the nodes of the ATP model."""
        competition = self.expertise.competition
        return self.scores(baselines.question_values(self.site, competition, values))

    def path_rule(self) -> PathRule:
        """Compare by the paper's rule."""
        ids = self.site.questions.id
        return PathRule.of(self.expertise, ids if self.truth is None else ids[self.truth.question])

    def signal_model(self, *, atp: bool) -> Scores:
        """Compare by the signal model, with or without the signals of ATP."""
        signals = simple_signals(self.site)
        if atp:
            signals |= atp_signals(self.site, self.expertise)
        if self.truth is not None and self.first_half is not None:
            return cross_fitted(signals, self.truth, self.first_half, self.random_state)
        return self.scores(fitted_to_all(signals, bounty_truth(self.site), self.random_state))


METHODS: Registry[Callable[[Workbench], Comparator]] = Registry(
    "method",
    {
        "number-of-answers": lambda bench: bench.scores(baselines.number_of_answers(bench.site)),
        "time-first-answer": lambda bench: bench.scores(baselines.time_to_first_answer(bench.site)),
        "time-best-answer": lambda bench: bench.scores(baselines.time_to_best_answer(bench.site)),
        "trueskill": lambda bench: bench.scores(
            baselines.trueskill_difficulty(bench.site, bench.plain, bench.random_state)
        ),
        "level": lambda bench: bench.scores(
            baselines.level_difficulty(bench.site, bench.plain, bench.random_state)
        ),
        "qdee": lambda bench: bench.scores(baselines.qdee_difficulty(bench.site, bench.with_gain)),
        "atp": Workbench.path_rule,
        "atp-mean": lambda bench: bench.node_scores(bench.expertise.mean_score),
        "atp-position": lambda bench: bench.node_scores(bench.expertise.position),
        "signals-fitted": lambda bench: bench.signal_model(atp=False),
        "atp-fitted": lambda bench: bench.signal_model(atp=True),
    },
)
"""Every method of the command line, by name.

``atp`` is the paper's rule. ``atp-mean`` and ``atp-position`` are numbers from the same vectors,
see :mod:`atpgraph_qa.expertise`; ``atp-fitted`` weighs them together with three simple signals,
and ``signals-fitted`` weighs those three alone, to show what the vectors add.
"""


def comparators(bench: Workbench, methods: Iterable[str] | None = None) -> dict[str, Comparator]:
    """Apply the methods with these names, all by default."""
    chosen = METHODS.select("all" if methods is None else methods)
    if not chosen:
        raise InputError(f"Name at least one method of {', '.join(METHODS)}.")
    made = {}
    with stage("difficulty methods", len(chosen)) as step:
        for name, method in chosen.items():
            made[name] = method(bench)
            step.advance()
    return made
