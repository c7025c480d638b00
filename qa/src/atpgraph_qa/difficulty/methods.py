"""Difficulty of the questions of a site by several methods, and how often each is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from atpgraph.cycles import break_cycles, trueskill
from atpgraph.cycles.agony import agony
from atpgraph.errors import InputError
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array
from atpgraph.util.checks import Registry
from atpgraph.util.progress import stage
from atpgraph.util.random import generator
from atpgraph_qa.competition import Competition, Ega, at_nodes, competition_graph, site_statistics
from atpgraph_qa.data.site import Site
from atpgraph_qa.difficulty import signal_model as signals
from atpgraph_qa.difficulty.accuracy import (
    Accuracy,
    BountyTruth,
    Comparator,
    Scores,
    TagRow,
    bounty_truth,
    by_tag,
    halves,
    pairwise_accuracy,
)
from atpgraph_qa.expertise import DEFAULT_EGA, Expertise

COLUMNS = ("method", "accuracy", "low", "high", "ties skipped", "ties right")
Row = tuple[str, float, float, float, float, float]
_NUMBERS = ("questions", "answers", "users", "bounties", "nodes", "edges")


@dataclass(frozen=True, eq=False)
class PathRule:
    """The paper's comparator: j is harder than i where σ(⟨s_i, t_j⟩) > σ(⟨s_j, t_i⟩)."""

    source: Float32Array  # of the questions compared; zeros for those not in the graph, so a tie
    target: Float32Array

    @classmethod
    def of(cls, expertise: Expertise, questions: Int64Array) -> PathRule:
        """Compare questions, given by id, with the vectors of a model."""
        nodes = expertise.competition.question_nodes(questions)
        vectors = expertise.model.source_, expertise.model.target_
        return cls(*(at_nodes(rows, nodes, 0.0).astype(np.float32) for rows in vectors))

    def harder(self, rows: Int64Array) -> Int8Array:
        """Compare the scores of the two directions; σ keeps their order."""
        to_row = self.target[rows] @ self.source.T
        from_row = self.source[rows] @ self.target.T
        return np.sign(to_row - from_row).astype(np.int8)


@dataclass(eq=False)
class Workbench:
    """A site with its competition graphs and its model, computed on first use.

    The signal model scores the questions of `truth` in `first_half` with weights learned from the
    others, and vice versa; without `first_half`, all questions with weights from all bounties.
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
    def expertise(self) -> Expertise:
        """ATP on the competition graph with consecutive expertise-gain edges."""
        return self.trained or Expertise.fit(
            self.site, ega=DEFAULT_EGA, random_state=self.random_state
        )

    def of_nodes(self, competition: Competition, values: npt.NDArray[Any]) -> Float64Array:
        """Select the values of questions from the values of all nodes of a graph."""
        return at_nodes(values, competition.question_nodes(self.site.questions.id))

    def skill(self) -> Float64Array:
        """Treat every edge as a match that its target won."""
        graph = self.plain.graph
        return self.of_nodes(self.plain, trueskill(graph, random_state=self.random_state).score)

    def level(self) -> Float64Array:
        """Return the level after the cycles are broken: ATP without its vectors."""
        dag = break_cycles(self.plain.graph, "h-voting", random_state=self.random_state).dag
        return self.of_nodes(self.plain, levels(dag))

    def qdee(self) -> Float64Array:
        """Return the lowest rank of least agony, with expertise-gain edges."""
        with_gain = competition_graph(self.site, ega=self.ega, tau_days=self.tau_days)
        return self.of_nodes(with_gain, agony(with_gain.graph).lowest)

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
        "trueskill": Workbench.skill,
        "level": Workbench.level,
        "qdee": Workbench.qdee,
        "atp": Workbench.path_rule,
        "atp-mean": lambda b: b.of_nodes(b.expertise.competition, b.expertise.mean_score),
        "atp-position": lambda bench: bench.expertise.difficulty(bench.site.questions.id),
        "signals-fitted": lambda bench: bench.signal_model(atp=False),
        "atp-fitted": lambda bench: bench.signal_model(atp=True),
    },
)
"""Every method of the command line, by name: a number for each question of the site (larger =
harder, NaN = unknown), or a comparator.

``atp`` is the paper's rule; ``atp-mean`` and ``atp-position`` are numbers from the same vectors,
see :mod:`atpgraph_qa.expertise`; ``atp-fitted`` weighs them together with three simple signals, and
``signals-fitted`` weighs those three alone, to show what the vectors add.
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


def question_scores(
    site: Site,
    *,
    methods: Iterable[str] | None = None,
    ega: Ega = "all-pairs",
    tau_days: float = 30.0,
    random_state: int = 0,
    expertise: Expertise | None = None,
) -> tuple[Int64Array, dict[str, Float64Array]]:
    """Score the difficulty of every question of a site.

    Parameters
    ----------
    site : Site
        The site.
    methods : names, optional
        Of :data:`METHODS`; by default the position of the question in the ATP model. Methods that
        are fitted use all bounties.
    ega, tau_days, random_state, expertise
        As for :func:`evaluate_site`.

    Returns
    -------
    ids : int64 array
        Ids of the questions, by date.
    scores : dict of float64 arrays
        For each method that gives numbers, larger = harder, NaN where it knows nothing.
    """
    bench = Workbench(site, ega, tau_days, random_state, expertise)
    made = comparators(bench, ["atp-position"] if methods is None else methods)
    columns = {name: each.values for name, each in made.items() if isinstance(each, Scores)}
    if not columns:
        raise InputError("atp compares pairs and has no number for a question; see atp-position.")
    return site.questions.id, columns


@dataclass(frozen=True)
class DifficultyReport:
    """Accuracies of methods on a site."""

    site: dict[str, int]  # numbers of the site and of its competition graph
    settings: dict[str, Any]  # what the run was given
    methods: dict[str, Accuracy]  # over all questions with a bounty …
    validation: dict[str, Accuracy]  # … and within each half
    test: dict[str, Accuracy]
    tags: list[TagRow]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, for JSON."""

        def plain(part: Mapping[str, Accuracy]) -> dict[str, Any]:
            return {name: accuracy.to_dict() for name, accuracy in part.items()}

        return {
            "site": self.site,
            "settings": self.settings,
            "pairs": _pairs(self.methods),
            "methods": plain(self.methods),
            "halves": {
                name: {"pairs": _pairs(half), "methods": plain(half)}
                for name, half in (("validation", self.validation), ("test", self.test))
            },
            "tags": [vars(row) | {"methods": plain(row.methods)} for row in self.tags],
        }

    def tables(self) -> list[tuple[str, list[Row]]]:
        """Return the tables with their titles; their :data:`COLUMNS`, best method first."""
        tables = []
        for title, part in (
            ("Test half", self.test),
            ("Validation half", self.validation),
            ("All questions with a bounty", self.methods),
        ):
            rows = [(n, a.mean, a.low, a.high, a.skip_ties, a.ties_right) for n, a in part.items()]
            rows.sort(key=lambda row: -np.nan_to_num(row[1], nan=-1))
            tables.append((f"{title}: {_pairs(part):,} pairs", rows))
        return tables


def _pairs(part: Mapping[str, Accuracy]) -> int:
    return next(iter(part.values())).pairs


def evaluate_site(
    site: Site,
    *,
    methods: Iterable[str] | None = None,
    ega: Ega = "all-pairs",
    tau_days: float = 30.0,
    halves_by: Literal["random", "time"] = "random",
    n_bootstrap: int = 1000,
    min_tag_questions: int = 20,
    max_questions: int = 5000,
    random_state: int = 0,
    expertise: Expertise | None = None,
) -> DifficultyReport:
    """Compare methods with the bounties of a site.

    Parameters
    ----------
    site : Site
        The site; it needs bounties.
    methods : names, optional
        Of :data:`METHODS`, all by default.
    ega, tau_days
        Expertise-gain edges of the graph that QDEE sees.
    halves_by : {"random", "time"}
        How the questions are split into a validation and a test half.
    n_bootstrap : int
        Resamples for the intervals.
    min_tag_questions : int
        Minimum number of questions with a bounty for a tag to get a row.
    max_questions : int
        If more questions than this have a bounty, a random sample is compared, because the number
        of pairs grows with the square. The report's settings say how many questions were compared.
    random_state : int
        Seed of the split, the resamples and the methods that draw.
    expertise : Expertise, optional
        A model of the site; fitted here by default.

    Notes
    -----
    The signal model never sees the bounties it is measured by: each half is scored with weights
    from the other.
    """
    truth = bounty_truth(site)
    if truth.n_pairs() == 0:
        why = site.manifest.get("missing", {}).get("Votes.xml")
        raise InputError(
            "Difficulty cannot be evaluated: "
            + ("the dump had no Votes.xml." if why else "no two questions have different bounties.")
        )
    if len(truth) > max_questions:
        drawn = generator(random_state).choice(len(truth), max_questions, replace=False)
        truth = truth.take(np.sort(drawn))
    validation, test = halves(truth, by=halves_by, random_state=random_state)
    bench = Workbench(site, ega, tau_days, random_state, expertise, truth, validation)
    made = comparators(bench, methods)
    everything, first, second = (
        {
            name: pairwise_accuracy(
                truth, each, which=which, n_bootstrap=n_bootstrap, random_state=random_state
            )
            for name, each in made.items()
        }
        for which in (None, validation, test)
    )
    tags = by_tag(site, truth, made, min_questions=min_tag_questions, random_state=random_state)
    statistics = site_statistics(site, bench.plain)
    numbers = {name: statistics[name] for name in _NUMBERS}
    settings = {
        "ega": ega,
        "tau_days": tau_days,
        "questions_compared": len(truth),
        "halves": halves_by,
        "bootstrap": n_bootstrap,
        "seed": random_state,
    }
    return DifficultyReport(numbers, settings, everything, first, second, tags)
