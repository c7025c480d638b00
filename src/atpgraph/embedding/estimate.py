"""What a fit would take, told before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from atpgraph.closure import estimate_closure
from atpgraph.closure.choice import sketch_bytes, sketch_size_for
from atpgraph.closure.sketched_paths import SHEETS
from atpgraph.cycles import break_cycles
from atpgraph.cycles.methods import AUTO_EDGES
from atpgraph.embedding import purposes
from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.util.memory import budget_bytes
from atpgraph.util.threads import interruptible, thread_count

# Stands in for the method that is asked for: its closure is about as large, in a tenth of the time.
_QUICK = "sa-g"
# CPU seconds on the machine of benchmarks/results/scale.md; rough everywhere else.
_PER_CORE_EDGE = 7e-6  # by h-voting, which takes the longest of the methods but bayes
_PER_SPRING = 5e-7  # an edge of the core too
_PER_PATH = 9e-7  # drawn, with its share of non-paths, at 64 components
_PER_STEP = 4.5e-7  # the same by panels
_PER_ROUND = 4e-7  # of an edge: new sketches and panels of both sides
_PER_PRODUCT = 4e-11  # of two numbers, in a Gram matrix
_PER_SOLVE = 5e-10  # of a row, for each entry of its Gram matrix
_PER_MEMBER = 1.3e-8  # merged into a sketch
_GRAPH = 40  # bytes of an edge, with its reverse
_ROUND = 2 * (128 + 64 * SHEETS)  # bytes of a node: its sketch and its panel, on both sides


@dataclass(frozen=True)
class Cost:
    """What one way to hold the closure takes.

    Attributes
    ----------
    memory : int
        Peak in bytes: graph, closure and vectors.
    seconds : float
        From the graph in memory to the vectors, roughly.
    """

    memory: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What a fit would take; see :func:`estimate`.

    Attributes
    ----------
    nodes, edges : int
        Of the graph.
    core_nodes, core_edges : int
        Those that lie on cycles.
    pairs, extras : float
        Reachable pairs once the cycles are broken, and the extras of the closure forests.
    exact, sketch : Cost
        With closure forests, and with sketches.
    budget : int
        Bytes that may be used.
    closure : {"exact", "sketch"}
        What ``closure="auto"`` would take.
    reason : str
        Why.
    """

    nodes: int
    edges: int
    core_nodes: int
    core_edges: int
    pairs: float
    extras: float
    exact: Cost
    sketch: Cost
    budget: int
    closure: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def estimate(graph: Any, **params: Any) -> Estimate:
    """Estimate what ``ATP(**params).fit(graph)`` would take, in about a second per million edges.

    Cycles are not broken as the fit would break them: a quicker method stands in, whose closure is
    of about the same size. So the numbers are rough where much of the graph lies on cycles, and
    the fit decides again when it knows its acyclic graph.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
    **params
        Parameters of :class:`~atpgraph.ATP`.

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> found = estimate(citation_dag(2000, 6000, random_state=0), n_components=16)
    >>> found.nodes, found.core_edges, found.closure
    (2000, 0, 'exact')
    """
    from atpgraph.embedding.estimator import ATP

    settings = ATP().get_params()
    unknown = sorted(set(params) - set(settings))
    if unknown:
        raise InputError(f"ATP has no parameter {unknown[0]!r}.")
    settings |= params
    purposes.check(settings)
    return interruptible(_estimate, as_graph(graph), settings)


def _estimate(graph: DiGraph, params: dict[str, Any]) -> Estimate:
    solver = purposes.check(params)
    budget = budget_bytes(params["memory"])
    on_cycles = cyclic_edges(graph)
    core = np.flatnonzero(on_cycles)
    core_nodes = len(np.unique(graph.sources[core]))
    dag = break_cycles(graph, _QUICK, random_state=0).dag if len(core) else graph
    forest = estimate_closure(dag)
    sides = 1 if solver == "pairs" else 2
    extras = sides * forest.extras
    n, m = graph.n_nodes, graph.n_edges
    k = params["n_components"]
    vectors = 16 * n * k
    auto_size = purposes.how_to_hold(params["closure"], solver)["auto_size"]
    size = sketch_size_for(n, params["sketch_size"], max(budget - vectors, 1), auto_size)
    threads = thread_count(params["n_jobs"])
    rounds, fewer = (
        purposes.settle(params, n, max(int(forest.pairs), 1), kind).max_iter
        for kind in ("exact", "sketch")
    )
    before = _GRAPH * m + vectors
    peak = forest.bytes_peak + (sides - 1) * forest.bytes_held
    members = 2 * size * n
    asked = params["method"]
    springs = asked == "springs" or (asked == "auto" and len(core) > AUTO_EDGES)
    cycles = (_PER_SPRING if springs else _PER_CORE_EDGE) * len(core)
    if solver == "pairs":
        drawn = 16 * n * (0.4 + 0.6 * k / 64)
        fits = rounds * drawn * _PER_PATH, fewer * (drawn * _PER_STEP + m * _PER_ROUND)
    else:
        solves = 2 * n * _PER_SOLVE * k**2
        fits = tuple(rounds * (_PER_PRODUCT * k**2 * held + solves) for held in (extras, members))
    exact = Cost(int(before + peak), cycles + (sides * forest.seconds + fits[0]) / threads)
    sketch = Cost(
        int(before + max(sketch_bytes(n, size), 8 * n * size + _ROUND * n)),
        cycles + (2 * size * m * _PER_MEMBER + fits[1]) / threads,
    )
    closure, reason = _choice(params["closure"], solver, n, peak, budget - vectors)
    return Estimate(
        n, m, core_nodes, len(core), forest.pairs, extras, exact, sketch, budget, closure, reason
    )


def _choice(asked: str, solver: str, n: int, peak: int, left: int) -> tuple[str, str]:
    """What the fit would hold the closure in, and why."""
    if asked != "auto":
        return asked, "as asked for"
    if solver == "svd":
        return "exact", "singular vectors need all pairs"
    if solver == "pairs" and n > purposes.MANY_NODES:
        return "sketch", f"more than {purposes.MANY_NODES:,} nodes"
    fits = peak <= left
    words = "fits" if fits else "does not fit"
    return "exact" if fits else "sketch", f"the closure forest {words} the budget"
