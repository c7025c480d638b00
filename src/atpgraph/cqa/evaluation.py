"""One call from a site to the table of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from atpgraph._progress import stage
from atpgraph._random import generator
from atpgraph.cqa import baselines
from atpgraph.cqa.competition import Competition, Ega, competition_graph
from atpgraph.cqa.difficulty import (
    Accuracy,
    BountyTruth,
    Judge,
    Scores,
    TagRow,
    bounty_truth,
    by_tag,
    evaluate,
    halves,
)
from atpgraph.cqa.expertise import DEFAULT_EGA, Expertise, PathRule
from atpgraph.cqa.fitted import atp_signals, cross_fitted, fitted_everywhere, simple_signals
from atpgraph.cqa.site import Int64, Site
from atpgraph.errors import InputError


class Workbench:
    """A site with its competition graphs, built when a method first asks for them.

    Parameters
    ----------
    site : Site
        The site.
    truth : BountyTruth
        Questions to give numbers for.
    ega, tau_days
        Expertise-gain edges of the graph with them, see
        :func:`~atpgraph.cqa.competition.competition_graph`.
    random_state : int
        For methods that draw.
    first_half : boolean array, optional
        Methods that are fitted judge these questions by the others, and the others by these;
        without it, all questions by all bounties of the site.
    expertise : Expertise, optional
        A model made before; otherwise one is fitted when a method asks for it.
    """

    def __init__(
        self,
        site: Site,
        truth: BountyTruth,
        *,
        ega: Ega = "all-pairs",
        tau_days: float = 30.0,
        random_state: int = 0,
        first_half: npt.NDArray[np.bool_] | None = None,
        expertise: Expertise | None = None,
    ) -> None:
        self.site = site
        self.truth = truth
        self.ega = ega
        self.tau_days = tau_days
        self.random_state = random_state
        self.first_half = first_half
        self._expertise = expertise
        self._graphs: dict[str, Competition] = {}

    @property
    def plain(self) -> Competition:
        """The competition graph without expertise-gain edges."""
        return self._graph("none")

    @property
    def with_gain(self) -> Competition:
        """The competition graph with expertise-gain edges."""
        return self._graph(self.ega)

    @property
    def expertise(self) -> Expertise:
        """ATP on the competition graph with consecutive expertise-gain edges."""
        if self._expertise is None:
            self._expertise = Expertise.fit(
                self.site, ega=DEFAULT_EGA, random_state=self.random_state
            )
        return self._expertise

    def fitted(self, *, atp: bool) -> Scores:
        """Signals weighed by the bounties of the other half, with or without those of ATP."""
        signals = simple_signals(self.site)
        if atp:
            signals |= atp_signals(self.site, self.expertise)
        if self.first_half is not None:
            return cross_fitted(signals, self.truth, self.first_half, self.random_state)
        values = fitted_everywhere(signals, bounty_truth(self.site), self.random_state)
        return Scores(values[self.truth.question])

    def node_scores(self, scores: npt.NDArray[np.float64]) -> Scores:
        """Numbers of the nodes of the ATP model, for the questions."""
        return baselines.node_scores(self.site, self.truth, self.expertise.competition, scores)

    def _graph(self, ega: Ega) -> Competition:
        if ega not in self._graphs:
            self._graphs[ega] = competition_graph(self.site, ega=ega, tau_days=self.tau_days)
        return self._graphs[ega]


METHODS: dict[str, Callable[[Workbench], Judge]] = {
    "number-of-answers": lambda bench: baselines.number_of_answers(bench.site, bench.truth),
    "time-first-answer": lambda bench: baselines.time_to_first_answer(bench.site, bench.truth),
    "time-best-answer": lambda bench: baselines.time_to_best_answer(bench.site, bench.truth),
    "trueskill": lambda bench: baselines.trueskill_difficulty(
        bench.site, bench.truth, bench.plain, bench.random_state
    ),
    "level": lambda bench: baselines.level_difficulty(
        bench.site, bench.truth, bench.plain, bench.random_state
    ),
    "qdee": lambda bench: baselines.qdee_difficulty(bench.site, bench.truth, bench.with_gain),
    "atp": lambda bench: PathRule.of(bench.site, bench.truth, bench.expertise),
    "atp-mean": lambda bench: bench.node_scores(bench.expertise.mean_score),
    "atp-position": lambda bench: bench.node_scores(bench.expertise.position),
    "signals-fitted": lambda bench: bench.fitted(atp=False),
    "atp-fitted": lambda bench: bench.fitted(atp=True),
}
"""Every method of the command line, by name; the value makes its judge.

``atp`` is the paper's rule. ``atp-mean`` and ``atp-position`` are numbers from the same vectors,
see :mod:`atpgraph.cqa.expertise`; ``atp-fitted`` weighs them together with three simple signals,
and ``signals-fitted`` weighs those three alone, to show what the vectors add.
"""


def judges(bench: Workbench, methods: Iterable[str] | None = None) -> dict[str, Judge]:
    """The judges with these names, all by default."""
    names = list(METHODS) if methods is None else list(dict.fromkeys(methods))
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise InputError(
            f"There is no method {unknown[0] if unknown else ''!r}; there are {', '.join(METHODS)}."
        )
    made = {}
    with stage("difficulty methods", len(names)) as step:
        for name in names:
            made[name] = METHODS[name](bench)
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
) -> tuple[Int64, dict[str, npt.NDArray[np.float64]]]:
    """Difficulty of every question, by id, for the methods that give numbers.

    By default the position of the question in the ATP model. Fitted methods use all bounties.
    """
    everything = np.arange(len(site.questions))
    truth = BountyTruth(everything, np.zeros(len(everything), dtype=np.int64))
    bench = Workbench(
        site, truth, ega=ega, tau_days=tau_days, random_state=random_state, expertise=expertise
    )
    made = judges(bench, ["atp-position"] if methods is None else methods)
    if not any(isinstance(judge, Scores) for judge in made.values()):
        raise InputError("atp compares pairs and has no number for a question; see atp-position.")
    columns = {name: judge.values for name, judge in made.items() if isinstance(judge, Scores)}
    return site.questions.id, columns


@dataclass(frozen=True)
class DifficultyReport:
    """Accuracies of all methods on a site.

    Attributes
    ----------
    site : dict
        Numbers of questions, answers, users, bounties, and of nodes and edges of the competition
        graph.
    settings : dict
        What the run was given.
    methods, validation, test : dict
        Accuracies over all questions with a bounty, and within each half.
    tags : list of TagRow
        Accuracies within tags.
    """

    site: dict[str, int]
    settings: dict[str, Any]
    methods: dict[str, Accuracy]
    validation: dict[str, Accuracy]
    test: dict[str, Accuracy]
    tags: list[TagRow]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "site": self.site,
            "settings": self.settings,
            "pairs": next(iter(self.methods.values())).pairs,
            "methods": _plain(self.methods),
            "halves": {
                name: {"pairs": next(iter(half.values())).pairs, "methods": _plain(half)}
                for name, half in (("validation", self.validation), ("test", self.test))
            },
            "tags": [
                {
                    "tag": row.tag,
                    "questions": row.questions,
                    "pairs": row.pairs,
                    "methods": _plain(row.methods),
                }
                for row in self.tags
            ],
        }


def accuracy_rows(
    accuracies: Mapping[str, Accuracy],
) -> list[tuple[str, float, float, float, float, float]]:
    """Rows of a table, best method first."""
    ordered = sorted(accuracies.items(), key=lambda item: -np.nan_to_num(item[1].mean, nan=-1))
    return [(name, a.mean, a.low, a.high, a.skip_ties, a.ties_right) for name, a in ordered]


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
        Least number of questions with a bounty for a tag to get a row.
    max_questions : int
        Where more questions have a bounty, a random sample of so many is compared: the number of
        pairs grows with the square. The report's settings say how many were.
    random_state : int
        Seed of the split, the resamples and the methods that draw.
    expertise : Expertise, optional
        A model of the site; fitted here by default.

    Notes
    -----
    The fitted methods never see the bounty they are judged by: each half is judged with weights
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
    bench = Workbench(
        site,
        truth,
        ega=ega,
        tau_days=tau_days,
        random_state=random_state,
        first_half=validation,
        expertise=expertise,
    )
    made = judges(bench, methods)
    with stage("comparing with bounties", 3) as step:
        results = []
        for which in (None, validation, test):
            results.append(
                evaluate(
                    truth, made, which=which, n_bootstrap=n_bootstrap, random_state=random_state
                )
            )
            step.advance()
    tags = by_tag(site, truth, made, min_questions=min_tag_questions, random_state=random_state)
    graph = bench.plain.graph
    people = np.concatenate([site.questions.asker, site.answers.owner])
    numbers = {
        "questions": len(site.questions),
        "answers": len(site.answers),
        "users": len(site.users) or len(np.unique(people[people >= 0])),
        "bounties": len(site.bounties),
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
    }
    settings = {
        "ega": ega,
        "tau_days": tau_days,
        "questions_compared": len(truth),
        "halves": halves_by,
        "bootstrap": n_bootstrap,
        "seed": random_state,
    }
    return DifficultyReport(numbers, settings, results[0], results[1], results[2], tags)


def _plain(accuracies: Mapping[str, Accuracy]) -> dict[str, Any]:
    return {name: accuracy.to_dict() for name, accuracy in accuracies.items()}
