"""Sample orders of the nodes, sift one to a local optimum, and anneal the edges it leaves out.

The model behind the sampler: the nodes have independent uniform positions in [0, 1]; an edge of
weight w points down (from the higher position to the lower) with odds exp(−coldness · w). Given the
others, the position of one node has a piecewise constant density with breaks at its neighbors'
positions, so it is drawn exactly in O(d log d) for d neighbors. At infinite coldness the same step
moves the node to a cheapest place in the order, with ties broken at random: sifting.

A wrong edge closes a cycle, so it usually points far down, while the direction of an edge between
neighbors in the order is often just uncertain. The dependence of the odds on how far an edge points
down is learned from the samples; the draw of the plain model is then a proposal (Metropolis and
Hastings).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import TwoWayRows
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import kernel_seed
from atpgraph.util.threads import Workers, checkpoint

WARM, COOLED, COLD = 1.0, 6.0, 1e9  # coldness of sifting in its warm sweeps, and after them
N_BINS = 16  # of the distance that an edge points down
LEAST = 1.5  # how far the learned costs may fall below `coldness`
FORGET = 0.8  # weight of what was counted before, at each sweep
PATIENCE = 8  # sweeps without gain after which sifting stops
HOT, COOL = 0.5, 0.2  # temperatures of the annealing, in mean weights


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
    learn: bool = True,
) -> tuple[Float64Array, Float64Array]:
    """Return the probability that each edge points down, and the mean position of each node.

    Every chain starts from the order of `start`, ties drawn by its own seed; with `learn`, it
    learns how far down edges point, during the last two thirds of its `burn_in`. Chains run in
    threads and are added up in a fixed order, so the result does not depend on the number of cores.
    """
    rows = TwoWayRows.of(graph)

    def chain(seeds: tuple[Float64Array, AnyArray]) -> tuple[AnyArray, AnyArray]:
        position, state = seeds
        down, total = np.zeros(graph.n_edges, dtype=np.int32), np.zeros(graph.n_nodes)
        excess, gaps = np.zeros(0), np.zeros(N_BINS)
        for sweep in range(burn_in + n_samples):
            checkpoint()
            _sweep(rows, weights, position, coldness, excess, state)
            if learn and sweep < burn_in:
                gaps *= FORGET
                _count_gaps(rows, position, gaps)
                if 3 * sweep >= burn_in and sweep % 5 == 0:
                    excess = _excess(gaps, graph.n_edges / (1.0 - FORGET)) - coldness
                    excess = np.maximum(excess, -LEAST)
            elif sweep >= burn_in:
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


def _excess(gaps: Float64Array, total: float) -> Float64Array:
    """Return the log odds that an edge points up rather than down, by distance, per pair of nodes.

    `gaps` counts the edges that point down by their distance, `total` all edges.
    """
    up = max(total - float(gaps.sum()), 1.0)
    # The share of pairs at each distance, and a thousandth of an edge each, so that none is zero.
    pairs = 2.0 * (1.0 - (np.arange(N_BINS) + 0.5) / N_BINS) / N_BINS
    return np.asarray(np.log(up * pairs / (gaps + 1e-3 * up * pairs)))


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
    graph: DiGraph,
    weights: Float64Array,
    start: Float64Array,
    rng: np.random.Generator,
    most: int,
    warm: int = 0,
) -> Float64Array:
    """Move each node to its best place in the order, repeatedly; return the positions.

    The first `warm` sweeps draw positions as the sampler does, at rising coldness. At most `most`
    more sweeps follow, in which the weight of the edges that point down never grows.
    """
    rows, state, flat = TwoWayRows.of(graph), _state(rng), np.zeros(0)
    position, stale, least = start, 0, np.inf
    for sweep in range(warm + most):
        checkpoint()
        # Even spacing again, because nodes that crowd between two others use up the digits.
        position = spread_out(np.argsort(position, kind="stable"))
        if sweep < warm:
            _sweep(rows, weights, position, WARM * (COOLED / WARM) ** (sweep / warm), flat, state)
            continue
        _sweep(rows, weights, position, COLD, flat, state)
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
    """Return edges to leave out, in total no heavier than those that point down now.

    Simulated annealing over orders of the *edges*: each edge that stays comes after the ones that
    stay and enter its source. A move puts an edge back right after those (or right before the ones
    that leave its target) and takes out the edges in its way. If most nodes have one edge in or
    out, this finds improvements that no move of a single node does.
    """
    rows = TwoWayRows.of(graph)
    rank = spread_out(np.argsort(position, kind="stable"))
    left_out = rank[graph.sources] >= rank[graph.targets]
    best = left_out.copy()
    scale = float(np.median(weights)) if len(weights) else 1.0
    _anneal(
        rows, graph.sources, weights, rank[graph.sources], left_out, best, moves,
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
def _count_gaps(rows: Any, position: Any, gaps: Any) -> None:
    """Count the edges that point down, by distance."""
    for v in range(len(position)):
        for e in range(rows.indptr[v], rows.indptr[v + 1]):
            gap = position[v] - position[rows.targets[e]]
            if gap > 0.0:
                gaps[int(gap * len(gaps))] += 1.0


@kernel
def _sweep(
    rows: Any, weights: Any, position: Any, coldness: float, excess: Any, state: Any
) -> None:
    """Redraw the position of every node, given all others.

    `excess` is the cost of an edge beyond `coldness`, by how far it points down; empty for none.
    """
    n, bins = len(position), len(excess)
    indptr, targets = rows.indptr, rows.targets
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
            if i + 1 == k or breaks[i + 1] > breaks[i]:  # no place between the ends of a 2-cycle
                least = min(least, cost)
        cost = 0.0
        below, total = 0.0, 0.0
        for i in range(k + 1):
            above = breaks[i] if i < k else 1.0
            energy = coldness * max(cost - least - 1e-12, 0.0)  # rounding costs nothing
            if energy < 40.0:
                total += (above - below) * np.exp(-energy)
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
        if not below < drawn < above:  # a gap may be too narrow for a number in between
            continue
        more = 0.0
        for i in range(k if bins else 0):
            sign = 1.0 if change[i] > 0.0 else -1.0
            old, new = sign * (position[v] - breaks[i]), sign * (drawn - breaks[i])
            if old > 0.0:
                more -= abs(change[i]) * excess[int(old * bins)]
            if new > 0.0:
                more += abs(change[i]) * excess[int(new * bins)]
        if more <= 0.0 or _uniform(state) < np.exp(-more):
            position[v] = drawn


@kernel
def _anneal(
    rows: Any,
    sources: Any,
    weights: Any,
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
                    loss += weights[f]
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
                    loss += weights[f]
                    clash[k] = f
                    k += 1
        change = weights[e] - loss
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
