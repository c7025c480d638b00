"""What policies cost: the same questions routed under several of them, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from atpgraph.errors import InputError
from atpgraph.evaluation.intervals import Interval
from atpgraph.evaluation.metrics import rank_of
from atpgraph.evaluation.resampling import bootstrap, paired_bootstrap
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph_qa.data.site import Site
from atpgraph_qa.evaluation.protocols import Case, Split, make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records


@dataclass(frozen=True, eq=False)
class PolicyResult:
    """One policy over the test questions.

    Attributes
    ----------
    reciprocal : float64 array
        1 / rank of the accepted answerer in the order the policy leaves, 0 if it excludes them.
    found : boolean array
        Whether the accepted answerer was among the people asked.
    asked : int64 array
        How often each person who was asked was asked, largest first.
    newcomers : int
        Places that went to newcomers.
    """

    reciprocal: Float64Array
    found: BoolArray
    asked: Int64Array
    newcomers: int

    @property
    def busiest_ten(self) -> float:
        """Share of all places that the ten most asked people got."""
        return int(self.asked[:10].sum()) / max(int(self.asked.sum()), 1)


@dataclass(frozen=True, eq=False)
class LoadReport:
    """The same questions under several policies; the others are compared with the first."""

    top: int
    results: dict[str, PolicyResult]

    @property
    def n_questions(self) -> int:
        """Number of questions routed."""
        return len(next(iter(self.results.values())).reciprocal)

    def cost(self, name: str) -> Interval:
        """MRR that a policy costs, question by question, with its 95 % interval."""
        plain = next(iter(self.results.values())).reciprocal
        return paired_bootstrap(plain, self.results[name].reciprocal).difference

    def to_dict(self) -> dict[str, Any]:
        """The shape that ``atp qa load --json`` prints."""
        rows = {}
        for name, result in self.results.items():
            places = int(result.asked.sum())
            rows[name] = {
                "mrr": bootstrap(result.reciprocal).to_json(),
                "mrr_cost": self.cost(name).to_json(),
                f"hits@{self.top}": float(np.mean(result.found)),
                "people": len(result.asked),
                "most_asked": int(result.asked.max(initial=0)),
                "busiest_ten": result.busiest_ten,
                "newcomer_share": result.newcomers / places if places else 0.0,
            }
        return {"questions": self.n_questions, "top": self.top, "policies": rows}

    def rows(self) -> list[tuple[Any, ...]]:
        """Cells of a table, in the order of :data:`COLUMNS`."""
        return [
            (
                name,
                row["mrr"]["mean"],
                row["mrr_cost"]["mean"],
                row["mrr_cost"]["low"],
                row["mrr_cost"]["high"],
                row[f"hits@{self.top}"],
                row["people"],
                row["most_asked"],
                row["busiest_ten"],
                row["newcomer_share"],
            )
            for name, row in self.to_dict()["policies"].items()
        ]


COLUMNS = (
    "policy",
    "MRR",
    "cost in MRR",
    "low",
    "high",
    "answerer asked",
    "people asked",
    "most asked",
    "busiest ten",
    "newcomers",
)


class Chosen(Protocol):
    """What became of a question under a policy."""

    @property
    def positions(self) -> Int64Array:
        """Positions of the people asked among the candidates, best first."""

    @property
    def allowed(self) -> BoolArray:
        """Which candidates might have been asked."""

    @property
    def scores(self) -> Float64Array:
        """Scores of the candidates, less their load."""

    @property
    def newcomers(self) -> int:
        """How many of the people asked are newcomers."""


class Chooser(Protocol):
    """Something that decides whom to ask, and remembers whom it asked before."""

    def choose(
        self, query: Query, candidates: Int64Array, scores: Float64Array, top: int
    ) -> Chosen:
        """Choose at most `top` candidates."""


def load_cost(
    site: Site | Records,
    choosers: Mapping[str, Chooser],
    *,
    top: int = 5,
    split: Split | None = None,
    router: Router | None = None,
    random_state: int = 0,
) -> LoadReport:
    """Route the last questions of a site under several policies and measure what each costs.

    The questions come in the order in which they were asked, all active users are candidates, and
    `top` people are asked each time; caps and spread look at who was asked before.

    Parameters
    ----------
    site : Site or Records
    choosers : dict
        By name, a :class:`~atpgraph_qa.advisor.policies.Dispatcher` each. The others are
        compared with the first.
    top : int
        People asked per question.
    split : Split, optional
        See :class:`~atpgraph_qa.evaluation.protocols.Split`.
    router : Router, optional
        Not fitted yet; by default a new one.
    """
    if top < 1:
        raise InputError(f"At least one person is asked, not {top}.")
    records = site if isinstance(site, Records) else Records.of(site)
    protocol = make_protocol(records, "time-all", split)
    if not len(protocol.test):
        raise InputError("No later question has an accepted answer, so nothing can be measured.")
    ranker = (router or Router("all", random_state)).fit(protocol.training)
    runs = {name: _Run(chooser, top) for name, chooser in choosers.items()}
    with stage("routing under policies", len(protocol.test)) as step:
        for number, (known, cases) in enumerate(protocol.periods()):
            if number:
                ranker.update(known)
            for case in cases:
                scores = ranker.score(case.query, case.candidates)
                for run in runs.values():
                    run.add(case, scores)
                step.advance()
    return LoadReport(top, {name: run.result() for name, run in runs.items()})


class _Run:
    def __init__(self, chooser: Chooser, top: int) -> None:
        self.chooser, self.top = chooser, top
        self.ranks: list[float] = []
        self.found: list[bool] = []
        self.asked: list[int] = []
        self.newcomers = 0

    def add(self, case: Case, scores: Float64Array) -> None:
        chosen = self.chooser.choose(case.query, case.candidates, scores, self.top)
        self.asked += case.candidates[chosen.positions].tolist()
        self.newcomers += chosen.newcomers
        self.found.append(bool(np.any(chosen.positions == case.place)))
        self.ranks.append(_rank(case.place, chosen))

    def result(self) -> PolicyResult:
        counts = np.unique(np.array(self.asked, dtype=np.int64), return_counts=True)[1]
        return PolicyResult(
            1.0 / np.array(self.ranks),
            np.array(self.found),
            np.sort(counts)[::-1].astype(np.int64),
            self.newcomers,
        )


def _rank(place: int, chosen: Chosen) -> float:
    """Rank of a candidate: its place among the chosen, else by score behind them."""
    if place < 0 or not chosen.allowed[place]:
        return float("inf")
    if np.any(chosen.positions == place):
        return float(np.flatnonzero(chosen.positions == place)[0]) + 1.0
    rest = chosen.allowed.copy()
    rest[chosen.positions] = False
    behind = rank_of(chosen.scores[rest], int(np.count_nonzero(rest[:place])))
    return len(chosen.positions) + behind
