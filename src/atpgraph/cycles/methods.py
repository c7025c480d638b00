"""The ways to break cycles: which edges go, and the score that condemned them.

All of them work inside the strongly connected components only, on the *core*: the graph of the
edges that lie on cycles, without self-loops. Two mechanisms serve them all, each one offline pass:

*By edge* (greedy and voting): edges have a total order; the worst edge that lies on a cycle goes,
again and again. So an edge goes exactly if it closes a cycle with better edges only.

*By node* (forward, backward, degree ratio): nodes have a total order; the top node of a component
loses its out-edges (or in-edges) inside it and so leaves all cycles, again and again. So an edge
goes exactly if its later end loses that side and both ends are in one component of the nodes up to
that end.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from atpgraph.cycles.agony import Agony, agony
from atpgraph.cycles.baselines import degree_ratio, dfs_climb, eades_position
from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.cycles.pagerank import pagerank
from atpgraph.cycles.posterior import downward_probability
from atpgraph.cycles.springs import spring_positions
from atpgraph.cycles.trueskill import TrueSkill, trueskill
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import CyclicCore, cyclic_core
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
    IntArray,
)
from atpgraph.util.jit import kernel
from atpgraph.util.registry import Registry
from atpgraph.util.threads import Workers, checkpoint, result_of

log = logging.getLogger(__name__)

# Set on generated graphs, see docs/concepts/cycle-breaking.md.
COLDNESS = 3.0
N_CHAINS = 4
BURN_IN = 30
N_SAMPLES = 50
SLACK = 1.01

# Edges on cycles up to which "auto" is h-voting, which then takes seconds; measured in
# benchmarks/results/cycles.md.
AUTO_EDGES = 1_000_000


@dataclass(frozen=True)
class Workspace:
    """One graph, its cyclic core, and the node scores that several methods share."""

    graph: DiGraph
    seed: int
    _cache: dict[str, tuple[BoolArray, FloatArray]] = field(default_factory=dict)

    def settle(self, method: str) -> str:
        """The method meant: "auto" is h-voting up to a million edges on cycles, then springs."""
        if method != "auto":
            return METHODS[method].name
        chosen = "h-voting" if len(self.core_edges) <= AUTO_EDGES else "springs"
        log.info("Breaking cycles by %s: %d edges lie on cycles", chosen, len(self.core_edges))
        return chosen

    def rng(self, name: str) -> np.random.Generator:
        """A generator of its own for each purpose, whatever else runs before it."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    @cached_property
    def _core(self) -> CyclicCore:
        return cyclic_core(self.graph)

    @property
    def core_edges(self) -> IntArray:
        """Indices of the edges on cycles, without self-loops."""
        return self._core.edges

    @property
    def core_nodes(self) -> Int64Array:
        """Indices of the nodes on cycles."""
        return self._core.nodes

    @property
    def core(self) -> DiGraph:
        """The edges on cycles; node i of it is ``core_nodes[i]``."""
        return self._core.graph

    @cached_property
    def agony(self) -> Agony:
        """Minimum agony of the graph and its ranks."""
        return agony(self.graph, self._core)

    @cached_property
    def trueskill(self) -> TrueSkill:
        """TrueSkill of the nodes."""
        return trueskill(self.graph, random_state=self.rng("trueskill"))

    @cached_property
    def agony_score(self) -> Float64Array:
        return self.agony.centred[self.core_nodes]

    @cached_property
    def trueskill_score(self) -> Float64Array:
        return self.trueskill.score[self.core_nodes]

    def node_score(self, kind: str) -> Float64Array:
        """Score of the core nodes: ``"sa"`` social agony, ``"ts"`` TrueSkill."""
        return self.agony_score if kind == "sa" else self.trueskill_score

    def drop(self, score: FloatArray, edges: Int32Array | None = None) -> FloatArray:
        """How far core edges go down: score of the source minus score of the target."""
        if edges is None:
            return _drops(self.core.indptr, self.core.targets, score)
        return np.asarray(score[self.core.sources[edges]] - score[self.core.targets[edges]])

    def removed_by(self, kind: str, rule: str) -> BoolArray:
        """Core edges that a strategy removes, without their scores, which take eight bytes each."""
        checkpoint()
        known = self._cache.get(f"{kind}-{rule}")
        return _by_rule(self, kind, rule) if known is None else known[0]

    def solve(self, method: str) -> tuple[BoolArray, FloatArray]:
        """Core edges that `method` removes, and the score of every core edge; remembered."""
        checkpoint()
        if method not in self._cache:
            self._cache[method] = METHODS[method].run(self)
        return self._cache[method]


@kernel
def _drops(indptr: Any, targets: Any, score: Any) -> FloatArray:
    drop = np.empty(len(targets), dtype=score.dtype)
    for u in range(len(score)):
        for e in range(indptr[u], indptr[u + 1]):
            drop[e] = score[u] - score[targets[e]]
    return drop


def remove_by_edge(
    space: Workspace, *keys: AnyArray, name: str, acyclic: BoolArray | None = None
) -> BoolArray:
    """Repeatedly remove the cyclic edge with the largest keys (first key first, then a draw).

    `acyclic` marks edges that come before all others and close no cycle among themselves.
    """
    if acyclic is None:
        asked = np.arange(space.core.n_edges, dtype=np.int32)
    else:
        asked = np.flatnonzero(~acyclic).astype(np.int32)
        keys = tuple(key[asked] for key in keys)
    return _closing(space, _edge_order(space, asked, *keys, name=name))


def _closing(space: Workspace, order: Int32Array) -> BoolArray:
    core = space.core
    return closes_in_order(core.n_nodes, core.sources, core.targets, order)


def _edge_order(space: Workspace, asked: Int32Array, *keys: AnyArray, name: str) -> Int32Array:
    """The edges `asked` about, those with the smallest keys first."""
    draw = space.rng(f"ties of {name}").random(space.core.n_edges)[asked]
    return asked[sorted_by(*keys, draw)]


def sorted_by(*keys: AnyArray) -> Int32Array:
    """The order by the first key, ties by the next: what ``np.lexsort`` gives for `keys` reversed.

    Examples
    --------
    >>> sorted_by(np.array([1, 0, 0]), np.array([0.5, 0.7, 0.1])).tolist()
    [2, 1, 0]
    """
    order = np.arange(len(keys[0]), dtype=np.int32)
    for key in reversed(keys):
        # The sum makes −0 what 0 is.
        order = _sorted(np.add(key, 0.0, dtype=np.float64).view(np.uint64), order)
    return order


@kernel
def _sorted(bits: Any, order: Any) -> Any:
    """`order` by the numbers of these bits, stable: byte by byte, but for those that all share."""
    n = len(order)
    key, next_key = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    next_order = np.empty_like(order)
    place = np.zeros((8, 256), dtype=np.int64)
    for i in range(n):
        x = bits[order[i]]
        # In the order of the numbers: negative ones turned round, and before the others.
        x ^= np.uint64(2**64 - 1) if x >> np.uint64(63) else np.uint64(2**63)
        key[i] = x
        for k in range(8):
            place[k, (x >> np.uint64(8 * k)) & np.uint64(255)] += 1
    for k in range(8):
        shift = np.uint64(8 * k)
        total = most = 0
        for byte in range(256):
            many = place[k, byte]
            place[k, byte] = total
            total += many
            most = max(most, many)
        if most == n:
            continue
        for i in range(n):
            byte = (key[i] >> shift) & np.uint64(255)
            to = place[k, byte]
            place[k, byte] += 1
            next_key[to], next_order[to] = key[i], order[i]
        key, next_key = next_key, key
        order, next_order = next_order, order
    return order


def remove_by_node(
    space: Workspace, key: Float64Array, loses_out_edges: BoolArray, *, name: str
) -> BoolArray:
    """Repeatedly let the cyclic node with the largest key lose its out-edges, or its in-edges."""
    core = space.core
    draw = space.rng(f"ties of {name}").random(core.n_nodes)
    at = np.empty(core.n_nodes, dtype=np.int32)
    at[sorted_by(key, draw)] = np.arange(core.n_nodes, dtype=np.int32)
    # An edge that its later end keeps may be there from the beginning: of the two edges of a cycle
    # at its latest node one is lost, and arrives with that node. Those that a node loses may arrive
    # in any order: none of them needs another to close a cycle, which passes the node but once.
    return _closing(space, _lost_edges(core.indptr, core.targets, at, loses_out_edges))


@kernel
def _lost_edges(indptr: Any, targets: Any, at: Any, loses_out_edges: Any) -> Int32Array:
    """The edges that their later end loses, in the order of those ends."""
    n = len(at)
    place = np.zeros(n + 1, dtype=np.int32)
    lost = np.empty(0, dtype=np.int32)
    for fill in (False, True):
        for u in range(n):
            for e in range(indptr[u], indptr[u + 1]):
                v = targets[e]
                source_is_later = at[u] > at[v]
                end = u if source_is_later else v
                if loses_out_edges[end] == source_is_later:
                    if fill:
                        lost[place[at[end]]] = e
                    place[at[end] + (not fill)] += 1
        if not fill:
            for k in range(n):
                place[k + 1] += place[k]
            lost = np.empty(place[n], dtype=np.int32)
    return lost


def _greedy(space: Workspace, drop: FloatArray, name: str) -> tuple[BoolArray, FloatArray]:
    return remove_by_edge(space, drop, name=name, acyclic=drop < 0), drop


def _by_rule(space: Workspace, kind: str, rule: str) -> BoolArray:
    """Core edges that one of the three strategies removes by one score."""
    score, name = space.node_score(kind), f"{kind}-{rule}"
    if rule == "g":
        drop = space.drop(score)
        asked = np.flatnonzero(drop >= 0).astype(np.int32)
        order = _edge_order(space, asked, drop[asked], name=name)
        del asked, drop
        return _closing(space, order)
    out = np.full(space.core.n_nodes, rule == "f")
    return remove_by_node(space, score if rule == "f" else -score, out, name=name)


def _voting(space: Workspace, kinds: tuple[str, ...], name: str) -> tuple[BoolArray, FloatArray]:
    """The edge that most strategies of the given kinds of score remove goes first.

    Ties go by how far the edge goes down, each score measured in its own standard deviations.
    """
    votes = np.zeros(space.core.n_edges, dtype=np.uint8)
    if not len(votes):
        return np.zeros(0, dtype=np.bool_), votes.astype(np.float32)
    with Workers() as pool:
        # A thread for each score; the one that is ready first starts its strategies.
        pending = {pool.submit(space.node_score, kind): kind for kind in kinds}
        strategies = []
        for done in as_completed(pending):
            kind = pending[done]
            strategies += [pool.submit(space.removed_by, kind, rule) for rule in "gfb"]
        strategies.reverse()
        while strategies:
            votes += result_of(strategies.pop())
    # What no strategy removes is part of what one of them leaves, which is acyclic.
    asked = np.flatnonzero(votes).astype(np.int32)
    drop = np.zeros(len(asked))
    for kind in kinds:
        score = space.node_score(kind)
        drop += space.drop(score, asked) / max(float(np.std(score)), 1e-12)
    order = _edge_order(space, asked, votes[asked], drop, name=name)
    del asked, drop
    return _closing(space, order), votes.astype(np.float32)


def _pagerank(space: Workspace) -> tuple[BoolArray, FloatArray]:
    return _greedy(space, space.drop(pagerank(space.graph)[space.core_nodes]), "pagerank")


def _springs(space: Workspace) -> tuple[BoolArray, FloatArray]:
    return _greedy(space, space.drop(spring_positions(space.core)), "springs")


def _shuffled(space: Workspace, name: str) -> tuple[DiGraph, Int64Array]:
    """The core with its nodes in random order, and the new index of each node."""
    core = space.core
    number = space.rng(name).permutation(core.n_nodes)
    return DiGraph.from_codes(number[core.sources], number[core.targets], core.n_nodes), number


def _dfs(space: Workspace) -> tuple[BoolArray, FloatArray]:
    core = space.core
    mixed, number = _shuffled(space, "dfs")
    climb = np.zeros(mixed.n_edges, dtype=np.int32)
    dfs_climb(mixed.indptr, mixed.targets, climb)
    edge = mixed.find_edges(number[core.sources], number[core.targets])
    return climb[edge] > 0, climb[edge].astype(np.float64)


def _eades(space: Workspace) -> tuple[BoolArray, FloatArray]:
    mixed, number = _shuffled(space, "eades")
    back = mixed.reverse()
    position = eades_position(mixed.indptr, mixed.targets, back.indptr, back.targets)
    drop = space.drop(position[number].astype(np.float64))
    return drop > 0, drop


def _mfas(space: Workspace) -> tuple[BoolArray, FloatArray]:
    core = space.core
    ratio = degree_ratio(core.out_degree, core.in_degree)
    loses_out = core.in_degree >= core.out_degree
    removed = remove_by_node(space, ratio, loses_out, name="mfas")
    return removed, np.maximum(ratio[core.sources], ratio[core.targets])


def _bayes(space: Workspace) -> tuple[BoolArray, FloatArray]:
    """Greedy by the posterior probability of pointing down; sa-g where that removes far less."""
    core = space.core
    probability, position = downward_probability(
        core,
        space.agony_score,
        space.rng("bayes"),
        coldness=COLDNESS,
        n_chains=N_CHAINS,
        burn_in=BURN_IN,
        n_samples=N_SAMPLES,
    )
    removed = remove_by_edge(space, probability, space.drop(position), name="bayes")
    by_agony, drop = space.solve("sa-g")
    if np.count_nonzero(removed) > SLACK * np.count_nonzero(by_agony):
        return by_agony, drop
    return removed, probability


@dataclass(frozen=True)
class Method:
    """A way to break cycles."""

    name: str
    summary: str
    run: Callable[[Workspace], tuple[BoolArray, FloatArray]]


def _strategies(kind: str, what: str) -> list[Method]:
    """The three strategies over one node score."""

    def run(rule: str) -> Callable[[Workspace], tuple[BoolArray, FloatArray]]:
        return lambda space: (_by_rule(space, kind, rule), space.drop(space.node_score(kind)))

    return [
        Method(f"{kind}-g", f"{what}, greedy: the edge that goes down most", run("g")),
        Method(f"{kind}-f", f"{what}, forward: the top node loses its out-edges", run("f")),
        Method(f"{kind}-b", f"{what}, backward: the bottom node loses its in-edges", run("b")),
    ]


METHODS = Registry(
    "cycle-breaking method",
    {
        method.name: method
        for method in [
            Method("dfs", "back edges of a depth-first search", _dfs),
            Method("mfas", "the most one-sided node loses its few edges", _mfas),
            Method("eades", "greedy line of Eades, Lin and Smyth", _eades),
            Method("pagerank", "PageRank, greedy", _pagerank),
            *_strategies("sa", "social agony"),
            Method("sa-voting", "vote of the three", lambda s: _voting(s, ("sa",), "sa-voting")),
            *_strategies("ts", "TrueSkill"),
            Method("ts-voting", "vote of the three", lambda s: _voting(s, ("ts",), "ts-voting")),
            Method("h-voting", "vote of all six", lambda s: _voting(s, ("sa", "ts"), "h-voting")),
            Method("springs", "springs that give way, greedy: cheap on large graphs", _springs),
            Method("bayes", "posterior probability of pointing down", _bayes),
        ]
    },
)
