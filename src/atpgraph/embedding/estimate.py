"""Estimate the time and memory that a fit will need."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from atpgraph.closure import estimate_closure
from atpgraph.closure.paths import SHEETS
from atpgraph.cycles import break_cycles
from atpgraph.cycles.methods import AUTO_EDGES, METHODS
from atpgraph.embedding.settings import checked, settle
from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.util.memory import available_bytes
from atpgraph.util.threads import interruptible, thread_count

# Stand in for the defaults: their closures are about as large, in a twentieth of the time.
_QUICK = {"reachability": "springs", "paper": "sa-g"}
# CPU seconds on the machine of benchmarks/results/scale.md; rough everywhere else.
_PER_CORE_EDGE = 3.5e-5  # by sift
_PER_SPRING = 1e-6  # an edge of the core too
_PER_STEP = 6e-7  # a path, with its share of non-paths, at 128 components
_PER_ROUND = 4e-7  # an edge, in new sketches and panels of both sides
_PER_PRODUCT = 4e-11  # of two numbers, in a Gram matrix
_PER_SOLVE = 5e-10  # of a row, for each entry of its Gram matrix
_GRAPH = 40  # bytes of an edge, with its reverse
_ROUND = 128 + 64 * SHEETS  # bytes of a node: its sketch and its panel, of a side at a time


@dataclass(frozen=True)
class Estimate:
    """Time and memory that a fit will need; see :func:`estimate`.

    Attributes
    ----------
    nodes, edges, core_nodes, core_edges : int
        Numbers of nodes and edges in the graph, and of those on cycles.
    pairs : float
        Reachable pairs once the cycles are broken.
    memory, available : int
        Peak in bytes, from the graph in memory to the vectors; bytes that are free now.
    seconds : float
        From the graph in memory to the vectors, roughly.
    """

    nodes: int
    edges: int
    core_nodes: int
    core_edges: int
    pairs: float
    memory: int
    seconds: float
    available: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def estimate(graph: Any, **params: Any) -> Estimate:
    """Estimate the needs of ``ATP(**params).fit(graph)``, in about a second per million edges.

    Cycles are not broken as in the fit, but by a quicker method whose closure has about the same
    size. So the numbers are rough if much of the graph lies on cycles.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
    **params
        Parameters of :class:`~atpgraph.ATP`.

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> found = estimate(citation_dag(2000, 6000, random_state=0), n_components=16)
    >>> found.nodes, found.core_edges, found.memory < 10_000_000
    (2000, 0, True)
    """
    from atpgraph.embedding.estimator import ATP

    settings = ATP().get_params()
    unknown = sorted(set(params) - set(settings))
    if unknown:
        raise InputError(f"ATP has no parameter {unknown[0]!r}.")
    return interruptible(_estimate, as_graph(graph), checked(settings | params))


def _estimate(graph: DiGraph, params: dict[str, Any]) -> Estimate:
    core = np.flatnonzero(cyclic_edges(graph))
    core_nodes = len(np.unique(graph.sources[core]))
    dag = break_cycles(graph, _QUICK[params["purpose"]], random_state=0).dag if len(core) else graph
    forest = estimate_closure(dag)
    n, m, k = graph.n_nodes, graph.n_edges, params["n_components"]
    rounds = settle(params, n, max(int(forest.pairs), 1)).max_iter
    asked = params["method"]
    if asked == "auto":
        asked = "springs" if len(core) > AUTO_EDGES else "sift"
    springs = METHODS[asked].name == "springs"
    cycles = (_PER_SPRING if springs else _PER_CORE_EDGE) * len(core)
    vectors = 8 * n * k
    if params["purpose"] == "reachability":
        drawn = 2 * 16 * n * (0.3 + 0.7 * k / 128)
        seconds = rounds * (drawn * _PER_STEP / 2 + m * _PER_ROUND)
        averaged = vectors if rounds >= 8 else 0
        memory = _GRAPH * m + vectors + averaged + _ROUND * n
    else:
        seconds = 2 * forest.seconds + rounds * k**2 * (
            _PER_PRODUCT * 2 * forest.extras + 2 * n * _PER_SOLVE
        )
        memory = _GRAPH * m + 2 * vectors + forest.bytes_peak + forest.bytes_held
    return Estimate(
        n, m, core_nodes, len(core), forest.pairs, int(memory),
        cycles + seconds / thread_count(params["n_jobs"]), available_bytes(),
    )  # fmt: skip
