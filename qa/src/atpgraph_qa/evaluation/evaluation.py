"""All methods under all protocols on a site."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.intervals import Comparison
from atpgraph.evaluation.metrics import rank_of
from atpgraph.evaluation.resampling import bootstrap, paired_bootstrap
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph_qa.baselines import METHODS, QUICK
from atpgraph_qa.baselines.rivals import Oracle
from atpgraph_qa.baselines.simple import Method
from atpgraph_qa.data.site import Site
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
from atpgraph_qa.timeline.query import Pool
from atpgraph_qa.timeline.records import Records

ROUTER = "router"
# Groups of questions by how many answers the accepted answerer had given before.
EARLIER = ((0, 0), (1, 3), (4, 10), (11, 100), (101, None))


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank of the right person, question by question."""

    rank: Float64Array  # from 1; infinite where the right person was not among the candidates
    candidates: Int64Array  # how many people were ranked
    answered: Float64Array  # rank of the first person who answered at all

    @property
    def reciprocal(self) -> Float64Array:
        """1 / rank, for MRR."""
        return 1.0 / self.rank

    @property
    def accuracy(self) -> Float64Array:
        """(|R| − rank) / (|R| − 1); 1 for a single candidate, 0 if the right one is not there."""
        there = np.isfinite(self.rank)
        rank = np.where(there, self.rank, 1.0)
        value = (self.candidates - rank) / np.maximum(self.candidates - 1, 1)
        return np.where(there, np.where(self.candidates > 1, value, 1.0), 0.0)

    def metrics(self) -> dict[str, Float64Array]:
        """Return every metric by name, one value per question.

        ``answered@k`` says whether somebody among the first k answered at all; the gain of NDCG is
        that of one relevant person, 1 / log2(1 + rank).
        """

        within = {"p@1": 1, "p@3": 3, "hits@5": 5, "hits@10": 10}
        found = {"mrr": self.reciprocal, "accuracy": self.accuracy}
        found["ndcg"] = 1.0 / np.log2(1.0 + self.rank)
        found |= {name: (self.rank <= k).astype(np.float64) for name, k in within.items()}
        return found | {f"answered@{k}": (self.answered <= k).astype(float) for k in (1, 3, 5, 10)}


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """Results of one protocol."""

    name: str
    candidates: Int64Array  # people ranked, question by question
    activity: Int64Array  # earlier answers of the accepted answerer
    ranks: dict[str, Ranks]  # of the accepted answerer, by method
    seconds: dict[str, float]  # time of every method: learning, bringing up to date, ranking
    load: dict[str, Int64Array]  # by method, how often each person came first, largest first
    stated: Float64Array  # confidence of the router in its first choice …
    right: Float64Array  # … and whether it was right

    @property
    def reachable(self) -> int:
        """Questions whose accepted answerer was among the candidates."""
        ranks = next(iter(self.ranks.values()), None)
        return 0 if ranks is None else int(np.isfinite(ranks.rank).sum())

    def paired(self, other: str, metric: str = "mrr") -> Comparison:
        """Compare the router with another method on the same questions."""
        first, second = (self.ranks[name].metrics()[metric] for name in (ROUTER, other))
        return paired_bootstrap(first, second)

    def to_dict(self) -> dict[str, Any]:
        """Return the results in the form that ``atp qa evaluate --json`` prints."""
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
        """Return MRR of every method by how many answers the accepted answerer had given before.

        If everybody who answered before is a candidate, the people in the first group, without
        earlier answers, cannot be found.
        """
        groups = []
        for least, most in EARLIER:
            inside = self.activity >= least
            inside &= self.activity <= (np.inf if most is None else most)
            n = int(inside.sum())
            mrr = {
                name: float(ranks.reciprocal[inside].mean()) if n else None
                for name, ranks in self.ranks.items()
            }
            groups.append({"least": least, "most": most, "questions": n, "mrr": mrr})
        return groups


@dataclass(frozen=True, eq=False)
class RoutingReport:
    """Results of a site under all protocols."""

    site: str
    results: dict[str, ProtocolResult]
    skipped: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the results with one key per protocol."""
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
        The ground truth of a simulated community; adds the row ``oracle``.
    text : str or path
        How questions are compared: by words (``bm25``), by the text model ``static`` or ``dense``,
        or by one in a folder; ``auto`` chooses.
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
    for family in FAMILIES.values():
        # One object for all protocols that it ranks the same people for.
        made: dict[tuple[str, Pool], Method] = {}
        runs = []
        for protocol in (make_protocol(records, name, split) for name in wanted if name in family):
            ready: list[Method] = []
            for name, row in rows.items():
                pool: Pool = protocol.pool if issubclass(row, Router) else "all"
                ready.append(made.setdefault((name, pool), row(pool, random_state)))
            if truth is not None:
                ready.append(Oracle(truth, protocol.pool, random_state))
            runs.append((protocol, ready))
        if runs:
            found = _run(runs, skipped if "all" in names else None)
            results |= {each.name: each for each in found}
    where = str(site.path) if isinstance(site, Site) else ""
    return RoutingReport(where, {name: results[name] for name in wanted}, skipped)


def run(protocol: Protocol, methods: Sequence[Method]) -> ProtocolResult:
    """Rank the candidates of one protocol's questions."""
    return _run([(protocol, methods)])[0]


def _run(
    work: Sequence[tuple[Protocol, Sequence[Method]]], skipped: dict[str, str] | None = None
) -> list[ProtocolResult]:
    """Run protocols that differ in their questions and candidates alone, and may share methods.

    With `skipped`, a method whose library is missing is noted there and left out.
    """
    title = ", ".join(protocol.name for protocol, _ in work)
    seconds = {method: 0.0 for _, methods in work for method in methods}

    def timed(method: Method, task: str, *arguments: Any) -> Any:
        started = time.perf_counter()
        result = getattr(method, task)(*arguments)
        seconds[method] += time.perf_counter() - started
        return result

    with stage(f"{title}: learning", len(seconds)) as step:
        for method in list(seconds):
            try:
                timed(method, "fit", work[0][0].training)
            except MissingDependencyError as error:
                if skipped is None:
                    raise
                skipped[method.name] = str(error)
                del seconds[method]
            step.advance()
    runs = [_Run(protocol, [m for m in methods if m in seconds]) for protocol, methods in work]
    with stage(f"{title}: ranking", sum(len(protocol.test) for protocol, _ in work)) as step:
        for number, (known, queries) in enumerate(periods([protocol for protocol, _ in work])):
            for method in seconds if number else ():
                timed(method, "update", known)
            for query in queries:
                for going in runs:
                    case = going.protocol.case(query)
                    if case is None:
                        continue
                    given = np.append(query.history.n_given, 0)  # the last is for the unknown
                    before = int(given[int(query.history.codes(case.truth))])
                    going.cases.append((len(case.candidates), before))
                    for method in going.methods:
                        scores = timed(method, "score", case.query, case.candidates)
                        going.seen[method.name].append(_outcome(method, case, scores))
                    step.advance()
    return [going.result(seconds) for going in runs]


def _outcome(method: Method, case: Case, scores: Float64Array) -> tuple[float, ...]:
    """Return how a method did on a question.

    The result has the rank of the right person, that of the first who answered, the first choice,
    whether it was right, and the router's confidence in it; NaN for missing values.
    """
    rank = rank_of(scores, case.place) if case.place >= 0 else np.inf
    answered = first_rank(scores, np.isin(case.candidates, case.answerers))
    if not len(scores):
        return rank, answered, np.nan, np.nan, np.nan
    top = int(np.argmax(scores))
    stated = float(method.confidence(scores)[top]) if isinstance(method, Router) else np.nan
    return rank, answered, int(case.candidates[top]), float(top == case.place), stated


class _Run:
    """The state of one protocol while it goes through the test questions."""

    def __init__(self, protocol: Protocol, methods: Sequence[Method]) -> None:
        self.protocol, self.methods = protocol, methods
        self.cases: list[tuple[int, int]] = []  # candidates, earlier answers of the right person
        self.seen: dict[str, list[tuple[float, ...]]] = {method.name: [] for method in methods}

    def result(self, seconds: dict[Method, float]) -> ProtocolResult:
        sizes, activity = np.array(self.cases, dtype=np.int64).reshape(-1, 2).T
        seen = {name: np.array(rows).reshape(-1, 5).T for name, rows in self.seen.items()}
        router = seen.get(ROUTER, np.zeros((5, 0)))
        chose = ~np.isnan(router[4])
        return ProtocolResult(
            self.protocol.name,
            sizes,
            activity,
            {name: Ranks(columns[0], sizes, columns[1]) for name, columns in seen.items()},
            {method.name: seconds[method] for method in self.methods},
            {name: frequencies(each[2][~np.isnan(each[2])]) for name, each in seen.items()},
            router[4, chose],
            router[3, chose],
        )


def first_rank(scores: Float64Array, wanted: BoolArray) -> float:
    """Return the mean rank of the first wanted candidate when ties are broken at random."""
    if not wanted.any():
        return float("inf")
    best = scores[wanted].max()
    above, tied = np.count_nonzero(scores > best), scores == best
    return float(above + (tied.sum() + 1) / (np.count_nonzero(tied & wanted) + 1))


def frequencies(people: npt.ArrayLike) -> Int64Array:
    """Return how often each person occurs, in descending order."""
    counts = np.unique(np.asarray(people), return_counts=True)[1]
    return np.sort(counts)[::-1].astype(np.int64)
