"""Random directed graphs: DAGs, planted cycles, G(n, m) with cycles, citation-like DAGs.

Node labels are 0 … n − 1 and say nothing about the hidden order of a DAG.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph, sorted_unique
from atpgraph.graph.traversal import breadth_first, peel, sweep
from atpgraph.util.arrays import Int32Array, Int64Array
from atpgraph.util.checks import whole_number
from atpgraph.util.random import RandomState, generator

# Counting all reachable pairs stops after this many edge visits, a fraction of a second.
_COUNTING_BUDGET = 10_000_000


class PlantedCycles(NamedTuple):
    """A graph with cycles, and the planted edges that close them.

    Attributes
    ----------
    graph : DiGraph
        The DAG plus the planted edges; the same nodes.
    planted : int64 array
        Indices of the planted edges in `graph`, ascending.
    """

    graph: DiGraph
    planted: Int64Array


def random_dag(n: int, m: int, random_state: RandomState = None) -> DiGraph:
    """Draw a DAG uniformly: m distinct edges that agree with a hidden random order.

    Parameters
    ----------
    n, m : int
        Number of nodes and of edges.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> random_dag(100, 300, random_state=0)
    DiGraph(nodes=100, edges=300, self_loops=0)
    """
    n, m = _checked(n, m, 2, "a DAG")
    rng = generator(random_state)
    earlier, later = _triangle(_distinct(n * (n - 1) // 2, m, rng))
    name = rng.permutation(n)
    return DiGraph.from_codes(name[earlier], name[later], n)


def gnm(n: int, m: int, random_state: RandomState = None) -> DiGraph:
    """Draw a directed graph uniformly: m distinct edges, no self-loops, cycles as they come.

    Examples
    --------
    >>> gnm(100, 300, random_state=0)
    DiGraph(nodes=100, edges=300, self_loops=0)
    """
    n, m = _checked(n, m, 1, "a directed graph")
    source, target = np.divmod(_distinct(n * (n - 1), m, generator(random_state)), max(n - 1, 1))
    target += target >= source
    return DiGraph.from_codes(source, target, n)


def plant_cycles(
    dag: DiGraph, k: int, max_length: int | None = None, random_state: RandomState = None
) -> PlantedCycles:
    """Add k edges to a DAG, each from a node back to one that reaches it.

    The pairs are drawn without replacement, uniformly over all reachable pairs. If these are too
    many to count, and either rare (under 1% of all pairs) or limited by `max_length`, they are
    drawn from the pairs of a random sample of at least 2 k sources.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    k : int
        Number of edges to plant.
    max_length : int, optional
        Only pairs whose shortest path has at most this many edges.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> dag = random_dag(100, 300, random_state=0)
    >>> graph, planted = plant_cycles(dag, 20, random_state=0)
    >>> graph.n_edges, len(planted)
    (320, 20)
    """
    if k < 0:
        raise InputError(f"Cannot plant {k} edges; give a number that is not negative.")
    if max_length is not None and max_length < 1:
        raise InputError(f"The maximum path length is {max_length}; it must be at least 1.")
    rng = generator(random_state)
    topological, _ = peel(dag)
    start, end = _joined_pairs(dag, k, max_length, topological, rng)
    graph = dag.merged(DiGraph.from_codes(end, start, dag.labels))
    return PlantedCycles(graph, np.sort(graph.find_edges(end, start).astype(np.int64)))


def noisy_hierarchy(
    n: int, m: int, k: int, max_length: int | None = None, random_state: RandomState = None
) -> PlantedCycles:
    """Return a random DAG of n nodes and m edges, with k planted edges against its order.

    Examples
    --------
    >>> noisy_hierarchy(100, 300, 20, random_state=0).graph
    DiGraph(nodes=100, edges=320, self_loops=0)
    """
    rng = generator(random_state)
    return plant_cycles(random_dag(n, m, rng), k, max_length, rng)


def citation_dag(n: int, m: int, random_state: RandomState = None) -> DiGraph:
    """Return a shallow DAG shaped like a citation network: newer papers cite older ones.

    Papers belong to fields of bounded size and arrive one after another. A paper cites earlier
    papers of its field, the first ones most (so in-degrees are skewed and paths are short), and
    sometimes one of a few classics that cite nothing. So the number of papers that a paper reaches
    is bounded by the size of its field, not by the size of the graph.

    Parameters
    ----------
    n, m : int
        Number of papers and of citations, m ≤ n (n − 1) / 8.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> citation_dag(1000, 2000, random_state=0)
    DiGraph(nodes=1000, edges=2000, self_loops=0)
    """
    n, m = _checked(n, m, 8, "a citation graph")
    rng = generator(random_state)
    field = int(min(n, max(64, 32 * m // max(n, 1))))
    classics = n // 1000
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < m:
        size = int(1.1 * (m - len(keys))) + 64
        paper = rng.integers(1, n, size=size)
        # Papers arrive in rounds: the field of paper p is p mod the number of fields.
        fields = -(-n // field)
        position = paper // fields
        cited = (position * rng.random(size) ** 2).astype(np.int64) * fields + paper % fields
        classic = (rng.random(size) < 0.05) & (paper >= classics) & (classics > 0)
        cited[classic] = (classics * rng.random(np.count_nonzero(classic)) ** 2).astype(np.int64)
        keep = (cited < paper) & (paper >= classics)
        keys = sorted_unique(np.concatenate([keys, paper[keep] * n + cited[keep]]))
    keys = rng.permutation(keys)[:m]
    name = rng.permutation(n)
    return DiGraph.from_codes(name[keys // max(n, 1)], name[keys % max(n, 1)], n)


def _checked(n: int, m: int, share: int, what: str) -> tuple[int, int]:
    """Return the numbers of nodes and edges if there are so many pairs, or a share of them."""
    n = whole_number("The number of nodes", n, least=0, most=2**31 - 1)
    m, most = whole_number("The number of edges", m, least=0), n * (n - 1) // share
    if m > most:
        raise InputError(f"{m:,} edges are too many: {what} of {n:,} nodes has at most {most:,}.")
    return n, m


def _joined_pairs(
    dag: DiGraph, k: int, max_length: int | None, topological: Int32Array, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array]:
    """Draw k distinct pairs of nodes, the first of which reaches the second."""
    n = dag.n_nodes
    order = rng.permutation(n)
    search = _Search(dag, n if max_length is None else max_length)
    counts = search.counts(order, _COUNTING_BUDGET, 16)
    if len(counts) < n:
        share = counts.mean() / n
        if max_length is None and share > 0.01 and 4 * k < share * n * n:
            # The share is an estimate, so the passes are limited; 512 pairs are tried in each.
            keys = _frequent_pairs(dag, k, topological, 16 + int(k / share / 128), rng)
            if len(keys) == k:
                return keys // n, keys % n
        if len(counts) < 2 * k:
            counts = search.counts(order, 0, 2 * k)
        if counts.sum() < k:  # the sample has too few pairs: take all sources
            counts = search.counts(order, 0, n)
    ends = np.cumsum(counts)
    pairs = int(ends[-1]) if len(ends) else 0
    if k > pairs:
        raise InputError(
            f"Cannot plant {k:,} edges: only {pairs:,} pairs of nodes are joined by a path"
            + (f" of at most {max_length} edges." if max_length is not None else ".")
        )
    wanted = _distinct(pairs, k, rng)
    at = np.searchsorted(ends, wanted, side="right")
    start, places = order[at], wanted - (ends[at] - counts[at])
    firsts = np.flatnonzero(np.diff(start, prepend=-1))  # equal ones are adjacent
    groups = zip(start[firsts].tolist(), np.split(places, firsts)[1:], strict=True)
    found = [search.reached(source)[0][some] for source, some in groups]
    return start, np.concatenate([np.zeros(0, dtype=np.int64), *found])


class _Search:
    """Breadth-first searches of a DAG, at most `steps` edges deep."""

    def __init__(self, dag: DiGraph, steps: int) -> None:
        self.dag, self.steps, self.stamp = dag, steps, 0
        self.seen, self.queue = np.zeros((2, dag.n_nodes), dtype=np.int32)

    def reached(self, source: int) -> tuple[Int32Array, int]:
        """Return the nodes that a node reaches (until the next search), and how many edges were
        read.
        """
        self.stamp += 1
        self.queue[0], self.seen[source] = source, self.stamp
        count, visits = breadth_first(
            self.dag.indptr, self.dag.targets, 1, self.steps, self.seen, self.stamp, self.queue
        )
        return self.queue[1:count], visits

    def counts(self, order: Int64Array, budget: int, least: int) -> Int64Array:
        """Return how many nodes the first nodes reach: `least`, and more while the budget lasts."""
        counts: list[int] = []
        work = 0
        for source in order.tolist():
            if work > budget and len(counts) >= least:
                break
            nodes, visits = self.reached(source)
            counts.append(len(nodes))
            work += visits
        return np.array(counts, dtype=np.int64)


def _frequent_pairs(
    dag: DiGraph, k: int, topological: Int32Array, passes: int, rng: np.random.Generator
) -> Int64Array:
    """Draw pairs at random and keep k that are joined, or fewer after the last pass.

    One pass over the edges answers 512 pairs at a time, with one bit for each (a cache line per
    node).
    """
    n, back = dag.n_nodes, dag.reverse()
    keys = np.empty(0, dtype=np.int64)
    word, bit = np.divmod(np.arange(512), 64)
    bits = np.left_shift(np.uint64(1), bit.astype(np.uint64))
    for _ in range(passes):
        if len(keys) >= k:
            break
        start, end = rng.integers(0, n, size=(2, 512))
        masks = np.zeros((n, 8), dtype=np.uint64)
        np.bitwise_or.at(masks, (start, word), bits)
        sweep(topological, back.indptr, back.targets, masks, masks, 0, 8)
        joined = ((masks[end, word] & bits) != 0) & (start != end)
        keys = np.concatenate([keys, start[joined] * n + end[joined]])
        # The first to appear stay, so that no pair is favored.
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
    return keys[:k]


def _distinct(population: int, count: int, rng: np.random.Generator) -> Int64Array:
    """Return `count` distinct numbers below `population`, drawn uniformly, ascending."""
    if 2 * count > population:
        left_out = np.zeros(population, dtype=bool)
        left_out[_distinct(population, population - count, rng)] = True
        return np.flatnonzero(~left_out)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        # Every draw is symmetric in the numbers, so the first to be distinct are uniform.
        draw = rng.integers(0, population, size=int(1.1 * (count - len(drawn))) + 16)
        drawn = sorted_unique(np.concatenate([drawn, draw]))
    if len(drawn) > count:
        drawn = np.sort(rng.permutation(drawn)[:count])
    return drawn


def _triangle(index: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the pair (i, j), i < j, of index j (j − 1) / 2 + i."""
    j = ((1 + np.sqrt(8.0 * index + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > index  # the square root is rounded
    j += j * (j + 1) // 2 <= index
    return index - j * (j - 1) // 2, j
