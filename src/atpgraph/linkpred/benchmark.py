"""Run methods over seeds and protocols, and summarize the results."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from atpgraph.errors import AtpError, InputError
from atpgraph.evaluation.intervals import Comparison, Interval, compare, interval
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.protocols.judging import PROTOCOLS, Protocol, choose_protocols
from atpgraph.linkpred.protocols.splits import Split, evaluate, make_split
from atpgraph.linkpred.registry import Row, choose
from atpgraph.util.memory import peak_memory
from atpgraph.util.progress import stage

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Run:
    """One method fitted on one split."""

    seed: int
    seconds: float  # of the fit alone
    memory: int | None  # rise of the resident memory during the fit, in bytes
    metrics: dict[str, dict[str, float]]  # by protocol, then by metric


@dataclass(frozen=True, eq=False)
class MethodResult:
    """All runs of one row at one dimension."""

    key: str
    name: str
    group: str
    dim: int | None  # None for rows without a dimension
    runs: list[Run]
    failure: str = ""  # why there is no result
    headlines: dict[str, str] = field(default_factory=dict)  # the metric of each protocol
    curves: dict[str, Any] = field(default_factory=dict)  # ROC of the first seed
    note: str = ""  # what a reader of the table has to know

    def values(self, protocol: str, metric: str) -> list[float]:
        """Return the metric of every seed."""
        return [run.metrics[protocol][metric] for run in self.runs]

    def interval(self, protocol: str, metric: str) -> Interval:
        """Return mean and 95% interval over the seeds."""
        return interval(self.values(protocol, metric), within=(0.0, 1.0))

    @property
    def seconds(self) -> Interval:
        """Time of a fit."""
        return interval([run.seconds for run in self.runs], within=(0.0, np.inf))

    @property
    def memory(self) -> int | None:
        """Largest rise of memory during a fit, in bytes."""
        known = [run.memory for run in self.runs if run.memory is not None]
        return max(known) if known else None


@dataclass(frozen=True, eq=False)
class BenchmarkResult:
    """Results of a benchmark; ``ranking`` uses all nodes, ``ranking-100`` a sample of them."""

    graph: str  # its name
    nodes: int
    edges: int
    test_edges: int
    requested: int  # test edges that were asked for
    dims: list[int]
    seeds: list[int]
    headlines: dict[str, str]  # the metric by which each protocol that has results is judged
    unavailable: dict[str, str]  # why others have none
    methods: list[MethodResult]

    @property
    def protocols(self) -> list[str]:
        """The protocols that have results."""
        return list(self.headlines)

    def headline(self, protocol: str) -> str:
        """Return the main metric of a protocol: MRR for rankings, AUC for the rest."""
        return self.headlines[protocol]

    def main(self) -> list[MethodResult]:
        """Return the rows of the table: those of the first dimension, and those without one."""
        return [row for row in self.methods if row.dim in (None, self.dims[0])]

    def best(self, protocol: str, metric: str) -> MethodResult | None:
        """Return the row with the highest mean, or None if all failed."""
        rows = [row for row in self.main() if not row.failure]
        return max(rows, key=lambda row: row.interval(protocol, metric).mean, default=None)

    def compare(self, first: str, second: str, protocol: str, metric: str) -> Comparison:
        """Compare two rows of the table over the seeds, in pairs."""
        by_key = {row.key: row for row in self.main() if not row.failure}
        for key in (first, second):
            if key not in by_key:
                raise InputError(f"The table has no result for {key!r}.")
        return compare(*(by_key[key].values(protocol, metric) for key in (first, second)))

    def to_json(self) -> dict[str, Any]:
        """Return everything but the curves, as plain lists and dictionaries.

        ``methods`` holds the rows of the table; under ``protocols`` each has, for every protocol,
        the mean, low and high of every metric and of the seconds, the values of the seeds, and the
        paired comparison with the best row. ``other_dims`` holds the rows of further dimensions.
        """
        names = ("graph", "nodes", "edges", "test_edges", "seeds", "dims", "unavailable")
        main = self.main()
        return {name: getattr(self, name) for name in names} | {
            "test_edges_requested": self.requested,
            "protocols": self.protocols,
            "methods": {row.key: self._row_json(row, True) for row in main},
            "other_dims": [
                {"method": row.key} | self._row_json(row, False)
                for row in self.methods
                if row not in main
            ],
        }

    def _row_json(self, row: MethodResult, compared: bool) -> dict[str, Any]:
        about: dict[str, Any] = {"name": row.name, "group": row.group, "dim": row.dim}
        if row.note:
            about["note"] = row.note
        if row.failure:
            return about | {"failure": row.failure}
        results: dict[str, Any] = {}
        for protocol, headline in self.headlines.items():
            results[protocol] = {
                metric: row.interval(protocol, metric).to_json()
                | {"values": row.values(protocol, metric)}
                for metric in row.runs[0].metrics[protocol]
            } | {"seconds": row.seconds.to_json()}
            top = self.best(protocol, headline)
            if compared and top is not None and top is not row:
                versus = self.compare(row.key, top.key, protocol, headline)
                p = versus.p_value if np.isfinite(versus.p_value) else None
                against = {"best": top.key, "p_value": p}
                results[protocol]["against_best"] = versus.difference.to_json() | against
        return about | {"peak_memory_bytes": row.memory, "protocols": results}


def run(
    graph: DiGraph,
    methods: str | Sequence[str] | Sequence[Row] = "all",
    protocols: Iterable[str | Protocol] = PROTOCOLS,
    *,
    dim: int | Sequence[int] = 64,
    seeds: int | Sequence[int] | None = None,
    fraction: float = 0.1,
    max_queries: int | None = 2000,
    name: str = "graph",
    splits: Sequence[Split] = (),
) -> BenchmarkResult:
    """Measure link predictors on a graph.

    For each seed one split is made; every method is fitted once on its training graph and then
    evaluated under all protocols. A method that fails gets a row with the reason; the others
    continue.

    Parameters
    ----------
    graph : DiGraph
    methods : "all", names of rows or groups, or ``Row`` objects
    protocols : names out of ``PROTOCOLS``, or protocols
    dim : int or list of int
        Dimensions; the table shows the first.
    seeds : int or list of int, optional
        How many seeds (0, 1, …), or which; by default one for each of `splits`, or five.
    fraction : float
        Share of the edges that are test edges.
    max_queries : int or None
        The ranking protocol ranks a random sample of at most this many test edges per seed; None
        ranks all.
    name : str
        What to call the graph in the results.
    splits : sequence of Split
        Splits made elsewhere, in place of those of `graph`; one for each seed, and their own tests.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graph = DiGraph.from_codes(rng.integers(60, size=600), rng.integers(60, size=600), 60)
    >>> result = run(graph, "degree-product", ["random"], seeds=2)
    >>> result.methods[0].name, result.protocols
    ('out × in degree', ['random'])
    """
    dims = [dim] if isinstance(dim, int) else list(dim)
    seeds = (len(splits) or 5) if seeds is None else seeds
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    numbers = numbers[: len(splits)] if splits else numbers
    if not numbers or not dims:
        raise InputError("At least one seed and one dimension are needed.")
    chosen = choose_protocols(protocols)
    if not chosen:
        raise InputError(f"Name a protocol; there are {', '.join(PROTOCOLS)}.")
    rows = choose(methods)
    plan = [(row, k) for row in rows for k in (dims if row.has_dimension else [None])]
    results = []
    for row, k in plan:
        made: Any = row.make(k or dims[0], 0)
        note = getattr(made, "note", "")
        results.append(MethodResult(row.key, made.name, row.group, k, [], note=note))
    unavailable: dict[str, str] = {}
    with stage("link prediction", len(plan) * len(numbers)) as progress:
        for at_seed, seed in enumerate(numbers):
            split = splits[at_seed] if splits else make_split(
                graph, fraction=fraction, protocols=chosen, random_state=seed,
                max_queries=max_queries,
            )  # fmt: skip
            unavailable |= split.unavailable
            for at, (row, k) in enumerate(plan):
                if not results[at].failure:
                    results[at] = _one_run(row, k or dims[0], seed, split, results[at])
                progress.advance()
    if {protocol.name for protocol in chosen} <= set(unavailable):
        reasons = "; ".join(f"{p}: {why}" for p, why in unavailable.items())
        raise InputError(f"No protocol can be run on this graph ({reasons}).")
    # A protocol that one seed could not run is left out for all, so that means stay comparable.
    headlines = {
        protocol: metric
        for row in results
        for protocol, metric in row.headlines.items()
        if protocol not in unavailable
    }
    sizes = (graph.n_nodes, graph.n_edges, len(split.positives), split.requested)
    return BenchmarkResult(name, *sizes, dims, numbers, headlines, unavailable, results)


def _one_run(row: Row, k: int, seed: int, split: Split, so_far: MethodResult) -> MethodResult:
    try:
        method = row.make(k, seed)
        with stage(f"{so_far.name}, seed {seed}"):
            with peak_memory() as peak:
                started = time.perf_counter()
                split.fit(method)
                seconds = time.perf_counter() - started
            result = evaluate(method, split)
    except AtpError as error:
        return replace(so_far, runs=[], failure=str(error))
    except Exception as error:  # whatever a method does, the other rows go on
        log.exception("%s failed", row.key)
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return replace(so_far, runs=[], failure=reason)
    return replace(
        so_far,
        runs=[*so_far.runs, Run(seed, seconds, peak.bytes, result.metrics)],
        headlines=so_far.headlines | result.headlines,
        curves=so_far.curves or result.curves,
    )
