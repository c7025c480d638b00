"""From a site to the difficulty of its questions, and to the table of methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.random import generator
from atpgraph_qa.competition import Ega, site_statistics
from atpgraph_qa.data.site import Site
from atpgraph_qa.difficulty.accuracy import (
    Accuracy,
    Scores,
    TagRow,
    bounty_truth,
    by_tag,
    evaluate,
    halves,
)
from atpgraph_qa.difficulty.methods import Workbench, comparators
from atpgraph_qa.expertise import Expertise

COLUMNS = ("method", "accuracy", "low", "high", "ties skipped", "ties right")
Row = tuple[str, float, float, float, float, float]
_NUMBERS = ("questions", "answers", "users", "bounties", "nodes", "edges")


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
        Of :data:`~atpgraph_qa.difficulty.methods.METHODS`; by default the position of the
        question in the ATP model. Methods that are fitted use all bounties.
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
        return {
            "site": self.site,
            "settings": self.settings,
            "pairs": next(iter(self.methods.values())).pairs,
            "methods": _plain(self.methods),
            "halves": {
                name: {"pairs": next(iter(half.values())).pairs, "methods": _plain(half)}
                for name, half in (("validation", self.validation), ("test", self.test))
            },
            "tags": [vars(row) | {"methods": _plain(row.methods)} for row in self.tags],
        }

    def tables(self) -> list[tuple[str, list[Row]]]:
        """Return the tables with their titles; their :data:`COLUMNS`, best method first."""
        named = (
            ("Test half", self.test),
            ("Validation half", self.validation),
            ("All questions with a bounty", self.methods),
        )
        tables = []
        for title, part in named:
            rows = [(n, a.mean, a.low, a.high, a.skip_ties, a.ties_right) for n, a in part.items()]
            rows.sort(key=lambda row: -np.nan_to_num(row[1], nan=-1))
            tables.append((f"{title}: {next(iter(part.values())).pairs:,} pairs", rows))
        return tables


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
        Of :data:`~atpgraph_qa.difficulty.methods.METHODS`, all by default.
    ega, tau_days
        Expertise-gain edges of the graph that QDEE sees.
    halves_by : {"random", "time"}
        How the questions are split into a validation and a test half.
    n_bootstrap : int
        Resamples for the intervals.
    min_tag_questions : int
        Least number of questions with a bounty for a tag to get a row.
    max_questions : int
        Where more questions than this have a bounty, a random sample is compared: the number of
        pairs grows with the square. The report's settings say how many questions were.
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
        evaluate(truth, made, which=which, n_bootstrap=n_bootstrap, random_state=random_state)
        for which in (None, validation, test)
    )
    tags = by_tag(site, truth, made, min_questions=min_tag_questions, random_state=random_state)
    statistics = site_statistics(site, bench.plain).to_dict()
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


def _plain(accuracies: Mapping[str, Accuracy]) -> dict[str, Any]:
    return {name: accuracy.to_dict() for name, accuracy in accuracies.items()}
