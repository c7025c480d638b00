"""Orders of the nodes: sample them, sift one to a local optimum, anneal the edges it leaves out.

The model behind the sampler: the nodes have independent uniform positions in [0, 1]; an edge of
weight w points down (from the higher position to the lower) with odds exp(−coldness · w). Given the
others, the position of one node has a piecewise constant density with breaks at its neighbors'
positions, so it is drawn exactly in O(d log d) for d neighbors. At infinite coldness the same step
moves the node to a cheapest place in the order, a random one of equal ones: sifting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import kernel_seed
from atpgraph.util.threads import Workers, checkpoint

COLD = 1e9
PATIENCE = 8  # sweeps without gain after which sifting stops
HOT, COOL = 0.5, 0.2  # temperatures of the annealing, in mean weights


class WeightedRows(NamedTuple):
    """A weighted graph in both directions, for kernels; `rev_edges` index the edges."""

    indptr: AnyArray
    targets: AnyArray
    weights: AnyArray
    rev_indptr: AnyArray
    rev_targets: AnyArray
    rev_edges: AnyArray

    @classmethod
    def of(cls, graph: DiGraph, weights: Float64Array) -> WeightedRows:
        """Return the rows of a graph without self-loops."""
        back = graph.incoming(np.arange(graph.n_edges))
        return cls(graph.indptr, graph.targets, weights, *back)


def downward_probability(
    graph: DiGraph,
    weights: Float64Array,
    start: Float64Array,
    rng: np.random.Generator,
    *,
    coldness: float,
    n_chains: int,
    burn_in: int,
    n_samples: int,
) -> tuple[Float64Array, Float64Array]:
    """Return the probability that each edge points down, and the mean position of each node.

    Every chain starts from the order of `start`, ties drawn by its own seed. Chains run in threads
    and are added up in a fixed order, so the result does not depend on the number of cores.
    """
    rows = WeightedRows.of(graph, weights)

    def chain(seeds: tuple[Float64Array, AnyArray]) -> tuple[AnyArray, AnyArray]:
        position, state = seeds
        down, total = np.zeros(graph.n_edges, dtype=np.int32), np.zeros(graph.n_nodes)
        for sweep in range(burn_in + n_samples):
            checkpoint()
            _sweep(rows, position, coldness, state)
            if sweep >= burn_in:
                _count_down(rows, position, down)
                total += position
        return down, total

    starts = [
        (spread_out(np.lexsort([rng.random(graph.n_nodes), start])), _state(rng))
        for _ in range(n_chains)
    ]
    with Workers() as pool:
        results = list(pool.map(chain, starts))
    scale = 1.0 / (n_chains * n_samples)
    downs, totals = (np.sum(parts, axis=0) for parts in zip(*results, strict=True))
    return downs * scale, totals * scale


def spread_out(order: AnyArray) -> Float64Array:
    """Return evenly spaced positions in (0, 1) for nodes in this order.

    Examples
    --------
    >>> spread_out(np.array([1, 0])).tolist()
    [0.75, 0.25]
    """
    position = np.empty(len(order))
    position[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return position


def _state(rng: np.random.Generator) -> AnyArray:
    return np.array([kernel_seed(rng)], dtype=np.uint64)


def sift(
    graph: DiGraph, weights: Float64Array, start: Float64Array, rng: np.random.Generator, most: int
) -> Float64Array:
    """Move each node to its best place in the order, repeatedly; return the positions.

    The weight of the edges that point down never grows. At most `most` sweeps over the nodes.
    """
    rows, state = WeightedRows.of(graph, weights), _state(rng)
    position, stale, least = start, 0, np.inf
    for _ in range(most):
        checkpoint()
        # Even spacing again, because nodes that crowd between two others use up the digits.
        position = spread_out(np.argsort(position, kind="stable"))
        _sweep(rows, position, COLD, state)
        cost = float(weights[position[graph.sources] >= position[graph.targets]].sum())
        stale = 0 if cost < least - 1e-9 else stale + 1
        least = min(least, cost)
        if stale == PATIENCE:
            break
    return position


def anneal(
    graph: DiGraph,
    weights: Float64Array,
    position: Float64Array,
    rng: np.random.Generator,
    moves: int,
) -> BoolArray:
    """Return the edges to leave out, at most as heavy in sum as those that point down now.

    Simulated annealing over orders of the *edges*: each edge that stays comes after the ones that
    stay and enter its source. A move puts an edge back right after those (or right before the ones
    that leave its target) and takes out the edges in its way. Where most nodes have one edge in or
    out this finds what no move of a single node does.
    """
    rows = WeightedRows.of(graph, weights)
    rank = spread_out(np.argsort(position, kind="stable"))
    left_out = rank[graph.sources] >= rank[graph.targets]
    best = left_out.copy()
    scale = float(np.median(weights)) if len(weights) else 1.0
    _anneal(
        rows, graph.sources, rank[graph.sources], left_out, best, moves,
        (HOT * scale, COOL * scale, 1e-3 / max(graph.n_nodes, 1)), _state(rng),
    )  # fmt: skip
    return best


@kernel
def _uniform(state: Any) -> float:
    """Next number in [0, 1) of a splitmix64 generator whose state is state[0]."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _count_down(rows: Any, position: Any, down: Any) -> None:
    for v in range(len(position)):
        for e in range(rows.indptr[v], rows.indptr[v + 1]):
            down[e] += position[v] > position[rows.targets[e]]


@kernel
def _sweep(rows: Any, position: Any, coldness: float, state: Any) -> None:
    """Draw every node's position anew, given the others."""
    n = len(position)
    indptr, targets, weights = rows.indptr, rows.targets, rows.weights
    rev_indptr, rev_targets, rev_edges = rows.rev_indptr, rows.rev_targets, rows.rev_edges
    widest = 0
    for v in range(n):
        widest = max(widest, indptr[v + 1] - indptr[v] + rev_indptr[v + 1] - rev_indptr[v])
    breaks, change, mass = np.empty(widest + 1), np.empty(widest + 1), np.empty(widest + 1)
    for v in range(n):
        # Passing a target on the way up costs its weight, passing a source gains its weight.
        k = 0
        for e in range(indptr[v], indptr[v + 1]):
            breaks[k], change[k] = position[targets[e]], weights[e]
            k += 1
        for i in range(rev_indptr[v], rev_indptr[v + 1]):
            breaks[k], change[k] = position[rev_targets[i]], -weights[rev_edges[i]]
            k += 1
        # Shell sort: short lists mostly, and far less to compile than np.argsort.
        gap = 1
        while gap < k // 9:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(gap, k):
                b, c = breaks[i], change[i]
                j = i - gap
                while j >= 0 and breaks[j] > b:
                    breaks[j + gap], change[j + gap] = breaks[j], change[j]
                    j -= gap
                breaks[j + gap], change[j + gap] = b, c
            gap //= 3
        # Costs relative to the best gap, so that the largest weight never underflows.
        cost, least = 0.0, 0.0
        for i in range(k):
            cost += change[i]
            least = min(least, cost)
        cost = 0.0
        below, total = 0.0, 0.0
        for i in range(k + 1):
            above = breaks[i] if i < k else 1.0
            excess = coldness * max(cost - least - 1e-12, 0.0)  # rounding is no excess
            if excess < 40.0:
                total += (above - below) * np.exp(-excess)
            mass[i] = total
            if i < k:
                cost += change[i]
            below = above
        draw = _uniform(state) * total
        i = 0
        while i < k and mass[i] <= draw:
            i += 1
        below = breaks[i - 1] if i > 0 else 0.0
        above = breaks[i] if i < k else 1.0
        drawn = below + (above - below) * _uniform(state)
        if below < drawn < above:  # a gap may be too narrow for a number in between
            position[v] = drawn


@kernel
def _anneal(
    rows: Any,
    sources: Any,
    place: Any,
    left_out: Any,
    best: Any,
    moves: int,
    scale: Any,
    state: Any,
) -> None:
    """Change `left_out` and the places of the edges that stay; `best` is the lightest set seen."""
    hot, cool, near = scale
    m = len(sources)
    pool, index = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    size = 0
    for e in range(m):
        if left_out[e]:
            pool[size], index[e] = e, size
            size += 1
    clash = np.empty(m, dtype=np.int64)
    gain, most = 0.0, 0.0
    ratio = (cool / hot) ** (1.0 / max(moves, 1))
    temperature = hot
    for _ in range(moves):
        temperature *= ratio
        if size == 0:
            break
        e = pool[int(_uniform(state) * size)]
        u, v = sources[e], rows.targets[e]
        after = _uniform(state) < 0.5
        at, loss, k = (-1.0 if after else 2.0), 0.0, 0
        if after:
            for i in range(rows.rev_indptr[u], rows.rev_indptr[u + 1]):
                f = rows.rev_edges[i]
                if not left_out[f]:
                    at = max(at, place[f])
            at += near * _uniform(state)
            for f in range(rows.indptr[v], rows.indptr[v + 1]):
                if not left_out[f] and place[f] <= at:
                    loss += rows.weights[f]
                    clash[k] = f
                    k += 1
        else:
            for f in range(rows.indptr[v], rows.indptr[v + 1]):
                if not left_out[f]:
                    at = min(at, place[f])
            at -= near * _uniform(state)
            for i in range(rows.rev_indptr[u], rows.rev_indptr[u + 1]):
                f = rows.rev_edges[i]
                if not left_out[f] and place[f] >= at:
                    loss += rows.weights[f]
                    clash[k] = f
                    k += 1
        change = rows.weights[e] - loss
        if change < 0.0 and _uniform(state) >= np.exp(change / temperature):
            continue
        size -= 1
        last = pool[size]
        pool[index[e]], index[last] = last, index[e]
        left_out[e], place[e] = False, at
        for i in range(k):
            f = clash[i]
            left_out[f] = True
            pool[size], index[f] = f, size
            size += 1
        gain += change
        if gain > most + 1e-9:
            most = gain
            best[:] = left_out
