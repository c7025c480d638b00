"""All methods under all protocols on a site."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.comparison import Comparison
from atpgraph.evaluation.metrics import rank_of
from atpgraph.evaluation.resampling import bootstrap, paired_bootstrap
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph_qa.baselines.method import Method
from atpgraph_qa.baselines.oracle import Oracle
from atpgraph_qa.baselines.registry import METHODS, QUICK
from atpgraph_qa.data.site import Site
from atpgraph_qa.evaluation.metrics import Ranks
from atpgraph_qa.evaluation.protocols import (
    FAMILIES,
    Case,
    Protocol,
    Split,
    make_protocol,
    periods,
    protocol_names,
)
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.text.choice import AUTO
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records

ROUTER = "router"
# Groups of questions by how many answers the accepted answerer had given before.
EARLIER = ((0, 0), (1, 3), (4, 10), (11, 100), (101, None))


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """Results of one protocol.

    Attributes
    ----------
    name : str
    candidates : int64 array
        People ranked, question by question.
    reachable : int
        Questions whose accepted answerer was among them.
    ranks : dict
        Ranks of the accepted answerer by method.
    seconds : dict
        Time of every method: learning, bringing up to date, ranking.
    activity : int64 array
        Earlier answers of the accepted answerer.
    stated, right : float64 arrays
        Confidence of the router in its first choice, and whether it was right.
    load : dict
        By method, how often each of the people chosen first was chosen, largest first.
    """

    name: str
    candidates: Int64Array
    reachable: int
    ranks: dict[str, Ranks]
    seconds: dict[str, float]
    activity: Int64Array
    stated: Float64Array
    right: Float64Array
    load: dict[str, Int64Array]

    def paired(self, other: str, metric: str = "mrr") -> Comparison:
        """The router against another method on the same questions."""
        first, second = (self.ranks[name].metrics()[metric] for name in (ROUTER, other))
        return paired_bootstrap(first, second)

    def to_dict(self) -> dict[str, Any]:
        """The shape that ``atp qa evaluate --json`` prints."""
        methods: dict[str, Any] = {}
        for name, ranks in self.ranks.items():
            spread = {metric: bootstrap(v).to_json() for metric, v in ranks.metrics().items()}
            row: dict[str, Any] = {"mrr": spread.pop("mrr")}
            row |= {metric: interval["mean"] for metric, interval in spread.items()}
            row["intervals"] = spread
            row["seconds"] = round(self.seconds[name], 3)
            if ROUTER in self.ranks and name != ROUTER and len(ranks.rank):
                gap = self.paired(name)
                row["router_above"] = {**gap.difference.to_json(), "p": gap.p_value}
            methods[name] = row
        return {
            "questions": len(self.candidates),
            "candidates_mean": float(self.candidates.mean()) if len(self.candidates) else 0.0,
            "reachable": self.reachable,
            "methods": methods,
            "earlier_answers": self.by_earlier_answers(),
            "calibration": reliability(self.stated, self.right),
        }

    def by_earlier_answers(self) -> list[dict[str, Any]]:
        """MRR of every method by how many answers the accepted answerer had given before.

        With everybody who answered before as a candidate, those in the first group, with none,
        cannot be found.
        """
        groups = []
        for least, most in EARLIER:
            inside = self.activity >= least
            if most is not None:
                inside &= self.activity <= most
            found = {name: ranks.reciprocal[inside] for name, ranks in self.ranks.items()}
            groups.append(
                {
                    "least": least,
                    "most": most,
                    "questions": int(inside.sum()),
                    "mrr": {
                        name: float(each.mean()) if len(each) else None
                        for name, each in found.items()
                    },
                }
            )
        return groups


@dataclass(frozen=True, eq=False)
class RoutingReport:
    """Results of a site under all protocols."""

    site: str
    results: dict[str, ProtocolResult]
    skipped: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """One key per protocol."""
        return {name: result.to_dict() for name, result in self.results.items()}


def evaluate_routing(
    site: Site | Records,
    *,
    protocols: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    split: Split | None = None,
    truth: str | os.PathLike[str] | None = None,
    text: str | os.PathLike[str] = AUTO,
    random_state: int = 0,
) -> RoutingReport:
    """Rank the candidates of all test questions by all methods.

    Parameters
    ----------
    site : Site or Records
    protocols : names, optional
        All by default.
    methods : names, optional
        By default all but the slow rivals ``doc2vec`` and ``coldroute``; ``all`` has them, too, and
        skips those whose library is not installed, with a note in the report.
    split : Split, optional
        See :class:`~atpgraph_qa.evaluation.protocols.Split`.
    truth : path, optional
        What is planted in a simulated community; adds the row ``oracle``.
    text : str or path
        Which text model tells what the questions of a site are about: ``bm25`` (none), ``static``,
        ``dense``, the folder of one, or ``auto``.
    random_state : int
    """
    wanted = protocol_names(protocols)
    names = list(QUICK if methods is None else methods)
    rows = METHODS.select(names)
    if not rows:
        raise InputError(f"Name at least one method of {', '.join(METHODS)}.")
    records = site if isinstance(site, Records) else Records.of(site, text)
    skipped: dict[str, str] = {}
    results: dict[str, ProtocolResult] = {}
    # Those over time go through the same questions, each looked at once for all of them.
    timed = [name for name in wanted if name in FAMILIES["time"]]
    groups = [[name] for name in wanted if name not in timed] + ([timed] if timed else [])
    for group in groups:
        protocols_here = [make_protocol(records, name, split) for name in group]
        ready: list[list[Method]] = []
        for protocol in protocols_here:
            ready.append([row(protocol.pool, random_state) for row in rows.values()])
            if truth is not None:
                ready[-1].append(Oracle(truth, protocol.pool, random_state))
        note = skipped if "all" in names else None
        found = run_together(protocols_here, ready, note)
        results |= {result.name: result for result in found}
    where = str(site.path) if isinstance(site, Site) else ""
    return RoutingReport(where, {name: results[name] for name in wanted}, skipped)


def run(
    protocol: Protocol, methods: Sequence[Method], skipped: dict[str, str] | None = None
) -> ProtocolResult:
    """Rank the candidates of one protocol's questions.

    With `skipped`, a method whose library is missing is noted there and left out.
    """
    return run_together([protocol], [methods], skipped)[0]


def run_together(
    protocols: Sequence[Protocol],
    methods: Sequence[Sequence[Method]],
    skipped: dict[str, str] | None = None,
) -> list[ProtocolResult]:
    """The same for protocols that differ in their questions and candidates alone."""
    runs = [_Run(protocol) for protocol in protocols]
    for going, each in zip(runs, methods, strict=True):
        going.learn(each, skipped)
    title = ", ".join(protocol.name for protocol in protocols)
    with stage(f"{title}: ranking", sum(len(protocol.test) for protocol in protocols)) as step:
        for known, queries in periods(protocols):
            started: set[str] = set()
            for query in queries:
                for going in runs:
                    case = going.protocol.case(query)
                    if case is None:
                        continue
                    if going.protocol.name not in started:
                        started.add(going.protocol.name)
                        going.update(known)
                    going.rank(case)
                    step.advance()
    return [going.result() for going in runs]


class _Run:
    """One protocol on its way through the test questions."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._rows: list[_Row] = []
        self._sizes: list[int] = []
        self._activity: list[int] = []

    def learn(self, methods: Sequence[Method], skipped: dict[str, str] | None) -> None:
        with stage(f"{self.protocol.name}: learning", len(methods)) as step:
            for method in methods:
                row = _Row(method)
                try:
                    row.fit(self.protocol.training)
                    self._rows.append(row)
                except MissingDependencyError as error:
                    if skipped is None:
                        raise
                    skipped[method.name] = str(error)
                finally:
                    step.advance()

    def update(self, known: History) -> None:
        """Bring the methods up to date, but for what they learnt at the start."""
        if self._sizes:
            for row in self._rows:
                row.update(known)

    def rank(self, case: Case) -> None:
        self._sizes.append(len(case.candidates))
        self._activity.append(_answers_before(case))
        for row in self._rows:
            row.rank(case)

    def result(self) -> ProtocolResult:
        rows, candidates = self._rows, np.array(self._sizes, dtype=np.int64)
        router = next((row for row in rows if row.method.name == ROUTER), None)
        return ProtocolResult(
            self.protocol.name,
            candidates,
            int(np.isfinite(rows[0].ranks).sum()) if rows else 0,
            {
                row.method.name: Ranks(np.array(row.ranks), candidates, np.array(row.answered))
                for row in rows
            },
            {row.method.name: row.seconds for row in rows},
            np.array(self._activity, dtype=np.int64),
            np.array(router.stated if router else []),
            np.array(router.right if router else []),
            {row.method.name: row.load() for row in rows},
        )


class _Row:
    """One method on its way through the test questions."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.seconds = 0.0
        self.ranks: list[float] = []
        self.answered: list[float] = []
        self.first: list[int] = []
        self.stated: list[float] = []
        self.right: list[float] = []

    def fit(self, history: History) -> None:
        with self._clock():
            self.method.fit(history)

    def update(self, history: History) -> None:
        with self._clock():
            self.method.update(history)

    def rank(self, case: Case) -> None:
        with self._clock():
            scores = self.method.score(case.query, case.candidates)
        place = case.place
        self.ranks.append(rank_of(scores, place) if place >= 0 else np.inf)
        there = np.flatnonzero(np.isin(case.candidates, case.answerers))
        best = int(there[np.argmax(scores[there])]) if len(there) else -1
        self.answered.append(rank_of(scores, best) if best >= 0 else np.inf)
        if not len(scores):
            return
        top = int(np.argmax(scores))
        self.first.append(int(case.candidates[top]))
        if isinstance(self.method, Router):
            self.stated.append(float(self.method.confidence(scores)[top]))
            self.right.append(float(top == place))

    def load(self) -> Int64Array:
        """How often each person was ranked first, the most frequent one first."""
        counts = np.unique(np.array(self.first, dtype=np.int64), return_counts=True)[1]
        return np.sort(counts)[::-1].astype(np.int64)

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started


def _answers_before(case: Case) -> int:
    """Earlier answers of the accepted answerer."""
    code = int(case.query.history.codes([case.truth])[0])
    return int(case.query.history.n_given[code]) if code >= 0 else 0
