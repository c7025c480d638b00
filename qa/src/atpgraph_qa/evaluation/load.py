"""Measure what policies cost: route the same questions under each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import rank_of
from atpgraph.evaluation.resampling import bootstrap, paired_bootstrap
from atpgraph.util.arrays import Float64Array
from atpgraph.util.progress import stage
from atpgraph_qa.advisor.policies import Choice, Dispatcher, Policy
from atpgraph_qa.data.site import Site
from atpgraph_qa.evaluation.evaluation import frequencies
from atpgraph_qa.evaluation.protocols import Case, Split, make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.records import Records


@dataclass(frozen=True, eq=False)
class LoadReport:
    """The same questions under several policies; the others are compared with the first."""

    top: int
    policies: dict[str, PolicyRun]

    @property
    def n_questions(self) -> int:
        """Number of questions routed."""
        return len(next(iter(self.policies.values())).ranks)

    def to_dict(self) -> dict[str, Any]:
        """Return the results in the form that ``atp qa load --json`` prints."""
        plain = next(iter(self.policies.values())).reciprocal
        rows = {}
        for name, run in self.policies.items():
            asked = frequencies(run.asked)
            rows[name] = {
                "mrr": bootstrap(run.reciprocal).to_json(),
                "mrr_cost": paired_bootstrap(plain, run.reciprocal).difference.to_json(),
                f"hits@{self.top}": float(np.mean(np.array(run.ranks) <= self.top)),
                "people": len(asked),
                "most_asked": int(asked.max(initial=0)),
                "busiest_ten": int(asked[:10].sum()) / max(len(run.asked), 1),
                "newcomer_share": run.newcomers / max(len(run.asked), 1),
            }
        return {"questions": self.n_questions, "top": self.top, "policies": rows}

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the cells of a table, in the order of :data:`COLUMNS`."""
        cells = []
        for name, row in self.to_dict()["policies"].items():
            mrr, cost, *others = row.values()
            cells.append((name, mrr["mean"], cost["mean"], cost["low"], cost["high"], *others))
        return cells


COLUMNS = (
    "policy", "MRR", "cost in MRR", "low", "high", "answerer asked", "people asked", "most asked",
    "busiest ten", "newcomers",
)  # fmt: skip


def load_cost(
    site: Site | Records,
    policies: Mapping[str, Policy],
    *,
    top: int = 5,
    split: Split | None = None,
    router: Router | None = None,
    random_state: int = 0,
) -> LoadReport:
    """Route the last questions of a site under several policies and measure what each costs.

    The questions come in the order in which they were asked, all active users are candidates, and
    `top` people are asked each time; limits and spread depend on who was asked before. The other
    policies are compared with the first. `router` must not be fitted yet; by default, a new one is
    made.
    """
    if top < 1:
        raise InputError(f"At least one person must be asked, not {top}.")
    records = site if isinstance(site, Records) else Records.of(site)
    protocol = make_protocol(records, "time-all", split)
    if not len(protocol.test):
        raise InputError("No later question has an accepted answer, so nothing can be measured.")
    ranker = (router or Router("all", random_state)).fit(protocol.training)
    runs = {name: PolicyRun(Dispatcher(policy)) for name, policy in policies.items()}
    with stage("routing under policies", len(protocol.test)) as step:
        for _, cases in protocol.periods():
            for case in cases:
                scores = ranker.score(case.query, case.candidates)
                for run in runs.values():
                    run.ask(case, scores, top)
                step.advance()
    return LoadReport(top, runs)


@dataclass(eq=False)
class PolicyRun:
    """The state of one policy while it goes through the test questions."""

    dispatcher: Dispatcher
    ranks: list[float] = field(default_factory=list)  # of the accepted answerer
    asked: list[int] = field(default_factory=list)
    newcomers: int = 0

    @property
    def reciprocal(self) -> Float64Array:
        """1 / rank of the accepted answerer, 0 if the policy excludes them."""
        return 1.0 / np.array(self.ranks)

    def ask(self, case: Case, scores: Float64Array, top: int) -> None:
        """Choose whom to ask about a question."""
        chosen = self.dispatcher.choose(case.query, case.candidates, scores, top)
        self.asked += case.candidates[chosen.positions].tolist()
        self.newcomers += chosen.newcomers
        self.ranks.append(_rank(case.place, chosen))


def _rank(place: int, chosen: Choice) -> float:
    """Return the rank of a candidate: among the people chosen, or else by score after them."""
    if place < 0 or not chosen.allowed[place]:
        return float("inf")
    if np.any(chosen.positions == place):
        return float(np.flatnonzero(chosen.positions == place)[0]) + 1.0
    rest = chosen.allowed.copy()
    rest[chosen.positions] = False
    behind = rank_of(chosen.scores[rest], int(np.count_nonzero(rest[:place])))
    return len(chosen.positions) + behind
