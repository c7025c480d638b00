"""Make splits: a method gets only the training graph, never the tests.

One draw of test edges serves all protocols, so a method is fitted once per split.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.attributes import Clock, Times, edge_times, time_values
from atpgraph.linkpred.protocols import judging
from atpgraph.linkpred.protocols.judging import PROTOCOLS, PairTest, Protocol, RankingTest
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.util.archive import load_array
from atpgraph.util.arrays import Int64Array
from atpgraph.util.random import RandomState, generator

_FILES = ("observed_graph", "pos_test_edges", "neg_test_edges")  # of a split of DirLinkBench


@dataclass(frozen=True, eq=False)
class Split:
    """A training graph, which is all that a method gets, and tests on the edges taken out of it.

    ``unavailable`` maps a protocol to the reason why the graph has no test for it. There are fewer
    test edges than ``requested`` if the graph has fewer edges outside a spanning forest. ``times``
    are those of the nodes or edges of the training graph.
    """

    train: DiGraph
    positives: Pairs
    tests: Mapping[str, PairTest | RankingTest]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    requested: int = 0
    times: Times | None = None

    def fit(self, method: Any) -> None:
        """Fit a method to the training graph, with times if it uses them."""
        if self.times is not None and getattr(method, "uses_times", False):
            method.fit(self.train, times=self.times)
        else:
            method.fit(self.train)


def make_split(
    graph: DiGraph,
    *,
    fraction: float = 0.1,
    protocols: Iterable[str | Protocol] = PROTOCOLS,
    random_state: RandomState = 0,
    max_queries: int | None = None,
) -> Split:
    """Take test edges out of a graph and prepare the tests.

    Edges are tried in random order and taken if the rest stays as connected as it was, ignoring
    direction. Self-loops are never taken.

    Parameters
    ----------
    graph : DiGraph
    fraction : float
        Share of the edges (self-loops not counted) to take.
    protocols : names out of :data:`~atpgraph.linkpred.protocols.PROTOCOLS`, or protocols
    random_state : int, Generator or None
    max_queries : int, optional
        Rank only a random sample of this many test edges.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graph = DiGraph.from_codes(rng.integers(50, size=300), rng.integers(50, size=300), 50)
    >>> split = make_split(graph)
    >>> len(split.positives) == round(0.1 * (graph.n_edges - graph.n_self_loops))
    True
    """
    chosen = judging.choose_protocols(protocols)
    _check(fraction)
    streams = generator(random_state).spawn(1 + max((p.stream for p in chosen), default=0))
    requested = round(fraction * (graph.n_edges - graph.n_self_loops))
    taken = removable_edges(graph, requested, streams[0])
    if not len(taken):
        raise InputError(
            "No edge can be taken out for testing: the graph is a forest or too small, "
            "so every removal would disconnect it."
        )
    positives = Pairs.of_edges(graph, taken)
    made = {p: p.make(graph, positives, streams[p.stream], max_queries) for p in chosen}
    tests = {protocol.name: test for protocol, test in made.items() if test is not None}
    missing = {protocol.name: protocol.missing for protocol, test in made.items() if test is None}
    return Split(graph.without_edges(taken), positives, tests, missing, requested)


def make_time_split(
    graph: DiGraph,
    times: Times,
    *,
    fraction: float = 0.05,
    random_state: RandomState = 0,
    max_queries: int | None = None,
) -> Split:
    """Train on the past and ask for the targets of the newest sources.

    The newest nodes with out-edges are test sources. A random half of them keep half of their edges
    in the training graph (``time``), the others none (``time-cold``). Each hidden
    target is ranked among all nodes that its source has no edge to.

    Parameters
    ----------
    graph : DiGraph
    times : array with a number for each node, or for each edge, or a mapping
    fraction : float
        Share of the nodes with out-edges that are test sources.
    random_state : int, Generator or None
    max_queries : int, optional
        Rank only a random sample of this many targets in each test.
    """
    _check(fraction)
    rng = generator(random_state)
    given, of_edges = time_values(times, graph)
    now, degree, source = Clock.of(times, graph).now, graph.out_degree, graph.sources
    active = np.flatnonzero(degree > 0)
    newest = active[np.argsort(-now[active], kind="stable")]
    newest = rng.permutation(newest[: max(2, round(fraction * len(active)))])
    cold, half = np.zeros((2, graph.n_nodes), dtype=bool)
    cold[newest[: len(newest) // 2]], half[newest[len(newest) // 2 :]] = True, True
    place = rng.permutation(graph.n_edges)
    order = np.lexsort((place, source))  # edges of a source together, in random order
    rank = np.empty(graph.n_edges, dtype=np.int64)
    rank[order] = np.arange(graph.n_edges) - graph.indptr[source[order]]
    real = source != graph.targets
    later = (2 * rank + 1 >= degree[source]) & (degree[source] > 1)
    taken = {
        "time": np.flatnonzero(half[source] & later & real),
        "time-cold": np.flatnonzero(cold[source] & real),
    }
    ranking = PROTOCOLS["ranking"].make
    made = {
        name: ranking(graph, Pairs.of_edges(graph, edges), rng, max_queries)
        for name, edges in taken.items()
    }
    tests = {name: test for name, test in made.items() if test is not None}
    if not tests:
        raise InputError("The newest sources have no edges to hide; give a larger fraction.")
    gone = np.concatenate(list(taken.values()))
    train = graph.without_edges(gone)
    known = edge_times(np.delete(given, gone), train) if of_edges else given
    return Split(train, Pairs.of_edges(graph, gone), tests, {}, len(gone), known)


def removable_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Int64Array:
    """Return the first `count` edges, in random order, that can be removed one after another.

    Trying the edges one by one and removing each that is not a bridge of what is left is the
    reverse-delete algorithm: the edges that stay in the end are the spanning forest that Kruskal's
    algorithm builds from the opposite order. So one minimum spanning forest, with the edges tried
    last the cheapest, tells exactly which edges the sequential procedure takes.
    """
    m = graph.n_edges
    place = rng.permutation(m)  # edge e is tried as number place[e]
    cost = graph.to_scipy()
    cost.data = (m - place).astype(np.float64)
    # SciPy 1.14 finds forests only with indices of 32 bits.
    cost.indices, cost.indptr = cost.indices.astype(np.int32), cost.indptr.astype(np.int32)
    forest = minimum_spanning_tree(cost).data.astype(np.int64)
    tried = np.argsort(place)  # tried[i]: the edge tried as number i
    removable = graph.sources != graph.targets
    removable[tried[m - forest]] = False
    taken: Int64Array = tried[removable[tried]][:count]
    return taken


def _check(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise InputError(f"The test fraction is {fraction}; it must be between 0 and 1.")


def evaluate(method: Any, split: Split) -> judging.Evaluation:
    """Evaluate a method, fitted on ``split.train``, under all protocols of the split."""
    found = judging.Evaluation()
    for name, test in split.tests.items():
        test.judge(method.under(name) if hasattr(method, "under") else method, name, found)
    return found


def is_splits(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds splits, one folder each."""
    folder = Path(path)
    return folder.is_dir() and any(folder.glob("*/observed_graph.npy"))


def read_splits(path: str | os.PathLike[str]) -> list[Split]:
    """Return the fixed splits in a folder, in the order of their numbers.

    Each has ``observed_graph.npy`` (the training graph), ``pos_test_edges.npy`` and
    ``neg_test_edges.npy``: integers of shape (m, 2) or (2, m). Their validation edges are not read:
    our methods take their own out of the observed graph.
    """
    folders = [file.parent for file in Path(path).glob("*/observed_graph.npy")]
    if not folders:
        raise InputError(
            f"{path} contains no split; a split is a folder with {', '.join(_FILES)} as .npy files."
        )
    return [_read(each) for each in sorted(folders, key=lambda each: (len(each.name), each.name))]


def _read(folder: Path) -> Split:
    observed, good, bad = (_edges(folder / f"{name}.npy") for name in _FILES)
    ends = [side for part in (observed, good, bad) for side in (part.sources, part.targets)]
    n = 1 + max(int(side.max(initial=-1)) for side in ends)
    train = DiGraph.from_codes(observed.sources, observed.targets, n)
    if not len(good) or not len(bad):
        raise InputError(f"{folder} has no test edges.")
    if (train.find_edges(good.sources, good.targets) >= 0).any():
        raise InputError(f"{folder}: a test edge is in the observed graph too.")
    return Split(train, good, {"dirlinkbench": PairTest(good, bad, "hits@100")}, {}, len(good))


def _edges(file: Path) -> Pairs:
    try:
        raw = load_array(file)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    if raw.ndim != 2 or 2 not in raw.shape or raw.dtype.kind not in "iu":
        raise InputError(f"{file} holds {raw.dtype} of shape {raw.shape}, not pairs of nodes.")
    if raw.size and raw.min() < 0:
        raise InputError(f"{file} holds the node {raw.min()}; nodes are numbered from 0.")
    sources, targets = np.array(raw.T if raw.shape[1] == 2 else raw, dtype=np.int64)
    return Pairs(sources, targets)
