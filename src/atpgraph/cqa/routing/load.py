"""What policies cost: the same questions routed under several of them, one after the other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph._progress import stage
from atpgraph.cqa.routing.history import Records
from atpgraph.cqa.routing.method import Floats, Int64
from atpgraph.cqa.routing.metrics import bootstrap, paired_bootstrap, rank_of
from atpgraph.cqa.routing.policies import Dispatcher, Policy
from atpgraph.cqa.routing.protocols import Case, make_protocol
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.site import Site
from atpgraph.errors import InputError
from atpgraph.linkpred.statistics import Interval
from atpgraph.report import Section, page, table, write_index

PLAIN = "no policy"


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

    reciprocal: Floats
    found: Any
    asked: Int64
    newcomers: int

    @property
    def busiest_ten(self) -> float:
        """Share of all places that the ten most asked people got."""
        return float(self.asked[:10].sum() / max(self.asked.sum(), 1))


@dataclass(frozen=True, eq=False)
class LoadReport:
    """The same questions under several policies; the first is none at all."""

    top: int
    results: dict[str, PolicyResult]

    def cost(self, name: str) -> Interval:
        """MRR that a policy costs, question by question, with its 95 % interval."""
        plain = self.results[PLAIN].reciprocal
        return paired_bootstrap(plain, self.results[name].reciprocal).difference

    def to_dict(self) -> dict[str, Any]:
        """The shape that ``atp cqa load --json`` prints."""
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
        questions = len(self.results[PLAIN].reciprocal)
        return {"questions": questions, "top": self.top, "policies": rows}

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

    def html(self) -> str:
        """The table for a report."""
        cells = [
            [escape(row[0])]
            + [f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}" for cell in row[1:]]
            for row in self.rows()
        ]
        note = (
            f"{len(self.results[PLAIN].reciprocal):,} questions, {self.top} people asked each. "
            "Cost: MRR lost against no policy, with its 95 % interval (bootstrap over questions). "
            "Busiest ten: share of the places that the ten most asked people got."
        )
        return f'<p class="quiet">{note}</p>{table([escape(name) for name in COLUMNS], cells)}'


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


def load_cost(
    site: Site | Records,
    policies: Mapping[str, Policy],
    *,
    top: int = 5,
    test_share: float = 0.2,
    refit_days: float = 30.0,
    router: Router | None = None,
    random_state: int = 0,
) -> LoadReport:
    """Route the last questions of a site under each policy and measure what it costs.

    The questions come in the order in which they were asked, all active users are candidates, and
    `top` people are asked each time; caps and spread look at who was asked before.

    Parameters
    ----------
    site : Site or Records
    policies : dict
        By name. A row without any policy is always there, for comparison.
    top : int
        People asked per question.
    test_share, refit_days
        See :func:`~atpgraph.cqa.routing.protocols.make_protocol`.
    router : Router, optional
        Not fitted yet; by default a new one.
    """
    if top < 1:
        raise InputError(f"At least one person is asked, not {top}.")
    records = site if isinstance(site, Records) else Records.of(site)
    protocol = make_protocol(records, "time-all", test_share=test_share, refit_days=refit_days)
    if not len(protocol.test):
        raise InputError("No later question has an accepted answer, so nothing can be measured.")
    ranker = (router or Router("all", random_state)).fit(protocol.training)
    keepers = {name: Dispatcher(policy) for name, policy in {PLAIN: Policy(), **policies}.items()}
    runs = {name: _Run(keeper, top) for name, keeper in keepers.items()}
    first = True
    with stage("routing under policies", len(protocol.test)) as step:
        for known, cases in protocol.periods():
            if not first:
                ranker.update(known)
            first = False
            for case in cases:
                scores = ranker.score(case.question, case.candidates)
                for run in runs.values():
                    run.add(case, scores)
                step.advance()
    return LoadReport(top, {name: run.result() for name, run in runs.items()})


class _Run:
    def __init__(self, keeper: Dispatcher, top: int) -> None:
        self.keeper, self.top = keeper, top
        self.ranks: list[float] = []
        self.found: list[bool] = []
        self.asked: list[int] = []
        self.newcomers = 0

    def add(self, case: Case, scores: Floats) -> None:
        question, people = case.question, case.candidates
        allowed, left = self.keeper.adjusted(question, people, scores)
        chosen = self.keeper.choose(question, people, scores, self.top)
        self.asked += people[chosen].tolist()
        self.newcomers += int(self.keeper.newcomers(question, people)[chosen].sum())
        self.found.append(bool(np.any(chosen == case.place)))
        self.ranks.append(_rank(case.place, allowed, left, chosen))

    def result(self) -> PolicyResult:
        counts = np.unique(np.array(self.asked, dtype=np.int64), return_counts=True)[1]
        return PolicyResult(
            1.0 / np.array(self.ranks),
            np.array(self.found),
            np.sort(counts)[::-1].astype(np.int64),
            self.newcomers,
        )


def _rank(place: int, allowed: Any, scores: Floats, chosen: Int64) -> float:
    """Rank of a candidate: its place among the chosen, else by score behind them."""
    if place < 0 or not allowed[place]:
        return float("inf")
    if np.any(chosen == place):
        return float(np.flatnonzero(chosen == place)[0]) + 1.0
    rest = allowed.copy()
    rest[chosen] = False
    return len(chosen) + rank_of(scores[rest], int(np.count_nonzero(rest[:place])))


def write_load_report(
    report: LoadReport, folder: str | os.PathLike[str], site: str = "", command: str = ""
) -> Path:
    """Write ``index.html`` into a folder, which is made if need be."""
    sections = [Section("Load and its cost", report.html())]
    return write_index(folder, page("Who is asked how often", site, sections, command))
