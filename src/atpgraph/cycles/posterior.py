"""Which edges probably point down? A Gibbs sampler over hidden orders of the nodes.

The model: the nodes have independent uniform positions in [0, 1]; an edge points down (from the
higher position to the lower) with odds exp(−coldness) against pointing up. Given the others, the
position of one node has a piecewise constant density with breaks at its neighbours' positions, so
it can be drawn exactly in O(d log d) for d neighbours, and a sweep over all nodes costs O(m log d).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import kernel_seed
from atpgraph.util.threads import Workers, checkpoint


def downward_probability(
    graph: DiGraph,
    start: Float64Array,
    rng: np.random.Generator,
    *,
    coldness: float,
    n_chains: int,
    burn_in: int,
    n_samples: int,
) -> tuple[Float64Array, Float64Array]:
    """Probability that each edge points down, and the mean position of each node.

    Every chain starts from the order of `start`, ties drawn by its own seed. Chains run in threads
    and are added up in a fixed order, so the result does not depend on the number of cores.
    """
    reverse = graph.reverse()
    n = graph.n_nodes
    widest = int((graph.out_degree + graph.in_degree).max(initial=0))
    likelihood = np.exp(-coldness * np.arange(2 * widest + 1))
    chains: list[Callable[[], tuple[AnyArray, AnyArray]]] = []
    for _ in range(n_chains):
        order = np.lexsort([rng.random(n), start])
        position = np.empty(n)
        position[order] = (np.arange(n) + 0.5) / max(n, 1)
        seed = kernel_seed(rng)

        def chain(
            position: Float64Array = position, seed: np.uint64 = seed
        ) -> tuple[AnyArray, AnyArray]:
            down = np.zeros(graph.n_edges, dtype=np.int64)
            total = np.zeros(n)
            state = np.array([seed], dtype=np.uint64)
            for sweep in range(burn_in + n_samples):
                checkpoint()
                _sweep(
                    graph.indptr,
                    graph.targets,
                    reverse.indptr,
                    reverse.targets,
                    position,
                    likelihood,
                    state,
                    sweep >= burn_in,
                    down,
                    total,
                )
            return down, total

        chains.append(chain)
    with Workers() as pool:
        results = list(pool.map(lambda chain: chain(), chains))
    scale = 1.0 / (n_chains * n_samples)
    downs, totals = (np.sum(parts, axis=0) for parts in zip(*results, strict=True))
    return downs * scale, totals * scale


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
def _sweep(
    indptr: Any,
    targets: Any,
    rev_indptr: Any,
    rev_targets: Any,
    position: Any,
    likelihood: Any,
    state: Any,
    counting: bool,
    down: Any,
    total: Any,
) -> None:
    """Draw every node's position anew; then count downward edges and add up positions, if asked.

    The likelihood is given for up to twice as many downward edges as a node has in all.
    """
    n = len(position)
    widest = len(likelihood) // 2
    breaks = np.empty(widest + 1)
    change = np.empty(widest + 1, dtype=np.int64)
    weight = np.empty(widest + 1)
    for v in range(n):
        # Passing a target on the way up costs 1, passing a source gains 1.
        k = 0
        for e in range(indptr[v], indptr[v + 1]):
            breaks[k] = position[targets[e]]
            change[k] = 1
            k += 1
        for e in range(rev_indptr[v], rev_indptr[v + 1]):
            breaks[k] = position[rev_targets[e]]
            change[k] = -1
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
        cost, least = 0, 0
        for i in range(k):
            cost += change[i]
            least = min(least, cost)
        cost = 0
        below, mass = 0.0, 0.0
        for i in range(k + 1):
            above = breaks[i] if i < k else 1.0
            mass += (above - below) * likelihood[cost - least]
            weight[i] = mass
            if i < k:
                cost += change[i]
            below = above
        draw = _uniform(state) * mass
        i = 0
        while i < k and weight[i] <= draw:
            i += 1
        below = breaks[i - 1] if i > 0 else 0.0
        above = breaks[i] if i < k else 1.0
        position[v] = below + (above - below) * _uniform(state)
    if counting:
        for v in range(n):
            total[v] += position[v]
            for e in range(indptr[v], indptr[v + 1]):
                if position[v] > position[targets[e]]:
                    down[e] += 1
