"""All methods under all protocols on a site."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atpgraph._progress import stage
from atpgraph.cqa.routing.history import Records
from atpgraph.cqa.routing.method import Floats, Int64, Method
from atpgraph.cqa.routing.metrics import (
    Paired,
    Ranks,
    bootstrap,
    paired_bootstrap,
    rank_of,
    reliability,
)
from atpgraph.cqa.routing.oracle import Oracle
from atpgraph.cqa.routing.protocols import FAMILIES, PROTOCOLS, Protocol, make_protocol
from atpgraph.cqa.routing.registry import METHODS, method_names
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.site import Site
from atpgraph.errors import InputError, MissingDependencyError

ROUTER = "router"


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """What came out under one protocol.

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
    candidates: Int64
    reachable: int
    ranks: dict[str, Ranks]
    seconds: dict[str, float]
    activity: Int64
    stated: Floats
    right: Floats
    load: dict[str, Int64]

    def paired(self, other: str, metric: str = "mrr") -> Paired:
        """The router against another method on the same questions."""
        first, second = (self.ranks[name].metrics()[metric] for name in (ROUTER, other))
        return paired_bootstrap(first, second)

    def to_dict(self) -> dict[str, Any]:
        """The shape that ``atp cqa evaluate --json`` prints."""
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
            "calibration": reliability(self.stated, self.right),
        }


@dataclass(frozen=True, eq=False)
class RoutingReport:
    """Results of a site under all protocols."""

    site: str
    results: dict[str, ProtocolResult]
    skipped: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """One key per protocol."""
        return {name: result.to_dict() for name, result in self.results.items()}


def protocol_names(names: Iterable[str] | None = None) -> list[str]:
    """Names of protocols from names and the families ``paper`` and ``time``; all by default."""
    chosen: list[str] = []
    for name in PROTOCOLS if names is None else names:
        if name not in FAMILIES and name not in PROTOCOLS:
            raise InputError(
                f"There is no protocol {name!r}; there are paper, time, {', '.join(PROTOCOLS)}."
            )
        chosen += FAMILIES.get(name, (name,))
    return list(dict.fromkeys(chosen))


def evaluate_routing(
    site: Site | Records,
    *,
    protocols: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    test_share: float = 0.2,
    split_ms: int | None = None,
    refit_days: float = 30.0,
    active_days: float | None = None,
    truth: str | os.PathLike[str] | None = None,
    random_state: int = 0,
) -> RoutingReport:
    """Rank the candidates of all test questions by all methods.

    Parameters
    ----------
    site : Site or Records
    protocols, methods : names, optional
        All by default. With all methods, those whose library is not installed are skipped and
        named in the report.
    test_share, split_ms, refit_days, active_days
        See :func:`~atpgraph.cqa.routing.protocols.make_protocol`.
    truth : path, optional
        What is planted in a simulated community; adds the row ``oracle``.
    random_state : int
    """
    wanted = protocol_names(protocols)
    every = methods is None or list(methods) == ["all"]
    names = method_names(methods)
    records = site if isinstance(site, Records) else Records.of(site)
    skipped: dict[str, str] = {}
    results = {}
    for protocol_name in wanted:
        protocol = make_protocol(
            records,
            protocol_name,
            test_share=test_share,
            split_ms=split_ms,
            refit_days=refit_days,
            active_days=active_days,
        )
        made = [METHODS[name](protocol.pool, random_state) for name in names if name not in skipped]
        if truth is not None:
            made.append(Oracle(truth, protocol.pool, random_state))
        results[protocol_name] = run(protocol, made, skipped if every else None)
    where = str(site.path) if isinstance(site, Site) else ""
    return RoutingReport(where, results, skipped)


def run(
    protocol: Protocol, methods: Sequence[Method], skipped: dict[str, str] | None = None
) -> ProtocolResult:
    """Rank the candidates of one protocol's questions.

    With `skipped`, a method whose library is missing is noted there and left out.
    """
    seconds = {method.name: 0.0 for method in methods}
    ready = []
    with stage(f"{protocol.name}: learning", len(methods)) as step:
        for method in methods:
            started = time.perf_counter()
            try:
                method.fit(protocol.training)
            except MissingDependencyError as error:
                if skipped is None:
                    raise
                skipped[method.name] = str(error)
                continue
            finally:
                step.advance()
            ready.append(method)
            seconds[method.name] += time.perf_counter() - started
    ranks: dict[str, list[float]] = {method.name: [] for method in ready}
    chosen: dict[str, list[int]] = {method.name: [] for method in ready}
    candidates, activity, stated, right = [], [], [], []
    first = True
    with stage(f"{protocol.name}: ranking", len(protocol.test)) as step:
        for known, cases in protocol.periods():
            for method in ready:
                started = time.perf_counter()
                if not first:
                    method.update(known)
                seconds[method.name] += time.perf_counter() - started
            first = False
            for case in cases:
                candidates.append(len(case.candidates))
                code = int(case.question.history.codes([case.truth])[0])
                activity.append(int(case.question.history.n_given[code]) if code >= 0 else 0)
                for method in ready:
                    started = time.perf_counter()
                    scores = method.score(case.question, case.candidates)
                    seconds[method.name] += time.perf_counter() - started
                    place = case.place
                    ranks[method.name].append(rank_of(scores, place) if place >= 0 else np.inf)
                    if len(scores):
                        top = int(np.argmax(scores))
                        chosen[method.name].append(int(case.candidates[top]))
                        if isinstance(method, Router) and method.name == ROUTER:
                            stated.append(float(method.confidence(scores)[top]))
                            right.append(float(top == place))
                case.question.cache.clear()
                step.advance()
    counts = np.array(candidates, dtype=np.int64)
    found = {name: Ranks(np.array(r, dtype=np.float64), counts) for name, r in ranks.items()}
    some = next(iter(found.values()), Ranks(np.zeros(0), counts))
    return ProtocolResult(
        protocol.name,
        counts,
        int(np.isfinite(some.rank).sum()),
        found,
        seconds,
        np.array(activity, dtype=np.int64),
        np.array(stated),
        np.array(right),
        {
            name: np.sort(np.unique(people, return_counts=True)[1])[::-1].astype(np.int64)
            for name, people in chosen.items()
        },
    )
