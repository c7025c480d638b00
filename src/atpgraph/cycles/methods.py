"""The methods that break cycles: each returns the edges to remove and a score for every edge.

All of them work inside the strongly connected components only, on the *core*: the graph of the
edges that lie on cycles, without self-loops. Two mechanisms serve them all, each one offline pass:

*By edge* (greedy and voting): edges have a total order; the worst edge on a cycle is removed, again
and again. So an edge is removed if and only if it closes a cycle with better edges.

*By node* (forward, backward, degree ratio): nodes have a total order; the top node of a component
loses its out-edges (or in-edges) inside it and so leaves all cycles, again and again. So an edge is
removed if and only if its later end loses that side and both ends are in one component of the nodes
up to that end.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from atpgraph.cycles.agony import Agony, agony
from atpgraph.cycles.baselines import dfs_climb, eades_position
from atpgraph.cycles.closing import restore
from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.cycles.ordering import anneal, downward_probability, sift, spread_out
from atpgraph.cycles.scores import TrueSkill, pagerank, spring_positions, trueskill
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import CyclicCore, cyclic_core
from atpgraph.graph.traversal import peel
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array, FloatArray, Int64Array, IntArray
from atpgraph.util.checks import Registry
from atpgraph.util.threads import Workers, checkpoint, result_of

log = logging.getLogger(__name__)

# Set on generated graphs, see docs/concepts/cycle-breaking.md.
COLDNESS = 3.0
N_CHAINS = 4
BURN_IN = 30
N_SAMPLES = 50
SLACK = 1.01
BIAS = 0.9
SWEEPS = 30
MOVES_PER_EDGE = 200
MOST_MOVES = 1_000_000

# What "auto" is up to this number of edges on cycles, which then takes seconds: it finds the most
# planted edges while it removes the fewest. Measured in benchmarks/results/cycles.md.
AUTO = "sift"
AUTO_EDGES = 300_000


class Solution(NamedTuple):
    """Result of a method on the cyclic core: the edges to remove, and the score of every edge.

    `lower_bound` is proven for the weight of any set of edges that breaks all cycles.
    """

    removed: BoolArray
    scores: FloatArray
    lower_bound: float | None = None


@dataclass(frozen=True)
class Workspace:
    """One graph, its cyclic core, and the node scores that several methods share.

    `weights` and `keep` have an entry for every edge: the cost of removing it, and whether it must
    stay.
    """

    graph: DiGraph
    seed: int
    weights: Float64Array | None = None
    keep: BoolArray | None = None
    time_limit: float = 10.0
    _cache: dict[str, Solution] = field(default_factory=dict)

    def settle(self, method: str) -> str:
        """Return the method to run; "auto" depends on the number of edges on cycles."""
        if method != "auto":
            return METHODS[method].name
        chosen = AUTO if len(self.on_cycles.edges) <= AUTO_EDGES else "springs"
        log.info("Breaking cycles by %s: %d edges lie on cycles", chosen, len(self.on_cycles.edges))
        return chosen

    def rng(self, name: str) -> np.random.Generator:
        """Return a generator for one purpose, which does not depend on other random draws."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    @cached_property
    def on_cycles(self) -> CyclicCore:
        """The cyclic core: the indices of its edges and nodes, and the graph that they form."""
        return cyclic_core(self.graph)

    @property
    def core(self) -> DiGraph:
        """The graph of the edges on cycles; its node i is ``on_cycles.nodes[i]``."""
        return self.on_cycles.graph

    @cached_property
    def kept(self) -> BoolArray:
        """Core edges that must stay."""
        if self.keep is None:
            return np.zeros(self.core.n_edges, dtype=np.bool_)
        return self.keep[self.on_cycles.edges]

    @cached_property
    def cost(self) -> Float64Array:
        """Cost of removing each core edge: 1 on average, prohibitive for those that must stay."""
        cost = np.ones(self.core.n_edges)
        if self.weights is not None and len(cost):
            mine = self.weights[self.on_cycles.edges]
            cost = mine / (mine.mean() or 1.0)
        cost[self.kept] = cost.sum() + 1.0
        return cost

    @cached_property
    def agony(self) -> Agony:
        """Minimum agony of the graph and its ranks."""
        return agony(self.graph, self.on_cycles)

    @cached_property
    def trueskill(self) -> TrueSkill:
        """TrueSkill of the nodes."""
        return trueskill(self.graph, random_state=self.rng("trueskill"))

    def node_score(self, kind: str) -> Float64Array:
        """Score of the core nodes: ``"sa"`` social agony, ``"ts"`` TrueSkill."""
        score = self.agony.centred if kind == "sa" else self.trueskill.score
        return score[self.on_cycles.nodes]

    def drop(self, score: FloatArray) -> FloatArray:
        """Return how far core edges go down: score of the source minus score of the target."""
        return np.asarray(score[self.core.sources] - score[self.core.targets])

    def removed_by(self, kind: str, rule: str) -> BoolArray:
        """Core edges that a strategy removes, without their scores, which take eight bytes each."""
        checkpoint()
        name, score = f"{kind}-{rule}", self.node_score(kind)
        if rule == "g":
            return _greedy(self, self.drop(score), name)[0]
        out = np.full(self.core.n_nodes, rule == "f")
        return remove_by_node(self, score if rule == "f" else -score, out, name=name)

    def restored(self, removed: BoolArray, scores: FloatArray) -> BoolArray:
        """Return `removed` without edges that close no cycle with the rest: a minimal set.

        The most expensive edges are tried first; among equals, those with the lowest score.
        """
        removed = removed.copy()
        edges = np.flatnonzero(removed)
        restore(self.core, removed, edges[np.lexsort([scores[edges], -self.cost[edges]])])
        return removed

    def solve(self, method: str) -> Solution:
        """The core edges that `method` removes, and the score of every core edge; cached."""
        checkpoint()
        if method not in self._cache:
            self._cache[method] = Solution(*METHODS[method].run(self))
        return self._cache[method]


def remove_by_edge(
    space: Workspace, *keys: AnyArray, name: str, acyclic: BoolArray | None = None
) -> BoolArray:
    """Repeatedly remove the cyclic edge with the largest keys (first key first, then a draw).

    `acyclic` marks edges that come before all others and close no cycle among themselves; edges
    that must stay are such edges.
    """
    first = space.kept if acyclic is None or space.kept.any() else acyclic
    asked = np.flatnonzero(~first)
    draw = space.rng(f"ties of {name}").random(space.core.n_edges)
    return _closing(space, asked[np.lexsort([key[asked] for key in (draw, *keys[::-1])])])


def _closing(space: Workspace, order: IntArray) -> BoolArray:
    core = space.core
    return closes_in_order(core.n_nodes, core.sources, core.targets, order)


def remove_by_node(
    space: Workspace, key: Float64Array, loses_out_edges: BoolArray, *, name: str
) -> BoolArray:
    """Repeatedly let the cyclic node with the largest key lose its out-edges, or its in-edges."""
    core = space.core
    draw = space.rng(f"ties of {name}").random(core.n_nodes)
    nodes = np.lexsort([draw, key])
    at = np.empty(core.n_nodes, dtype=np.int32)
    at[nodes] = np.arange(core.n_nodes, dtype=np.int32)
    # An edge that its later end keeps may be there from the beginning: of the two edges of a cycle
    # at its latest node one is lost, and arrives with that node. Those that a node loses may arrive
    # in any order: none of them needs another to close a cycle, which passes the node but once.
    start, end = at[core.sources], at[core.targets]
    later = np.maximum(start, end)
    lost = np.flatnonzero(loses_out_edges[nodes[later]] == (start > end))
    return _closing(space, lost[np.argsort(later[lost], kind="stable")])


def _greedy(space: Workspace, drop: FloatArray, name: str) -> tuple[BoolArray, FloatArray]:
    return remove_by_edge(space, drop, name=name, acyclic=drop < 0), drop


def _voting(space: Workspace, kinds: tuple[str, ...], name: str) -> tuple[BoolArray, FloatArray]:
    """Remove edges in order of votes: the number of strategies, for these scores, that remove them.

    Ties are broken by how far the edge points down, with each score in units of its standard
    deviation.
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
    drop = np.zeros(len(votes))
    for kind in kinds:
        score = space.node_score(kind)
        drop += space.drop(score) / max(float(np.std(score)), 1e-12)
    # What no strategy removes is part of what one of them leaves, which is acyclic.
    removed = remove_by_edge(space, votes, drop, name=name, acyclic=votes == 0)
    return removed, votes.astype(np.float32)


def _pagerank(space: Workspace) -> tuple[BoolArray, FloatArray]:
    return _greedy(space, space.drop(pagerank(space.graph)[space.on_cycles.nodes]), "pagerank")


def _springs(space: Workspace) -> tuple[BoolArray, FloatArray]:
    return _greedy(space, space.drop(spring_positions(space.core, space.cost)), "springs")


def _shuffled(space: Workspace, name: str) -> tuple[DiGraph, Int64Array]:
    """Return the core with its nodes in random order, and the new index of each node."""
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
    out, into = (
        np.bincount(ends, space.cost, core.n_nodes) for ends in (core.sources, core.targets)
    )
    ratio = np.maximum(out, into) / np.maximum(np.minimum(out, into), 1)  # how one-sided it is
    removed = remove_by_node(space, ratio, into >= out, name="mfas")
    return removed, np.maximum(ratio[core.sources], ratio[core.targets])


def _bayes(space: Workspace) -> tuple[BoolArray, FloatArray]:
    """Remove edges by the probability of pointing down, or by sa-g if that removes far fewer."""
    core = space.core
    probability, position = downward_probability(
        core,
        space.cost,
        space.node_score("sa"),
        space.rng("bayes"),
        coldness=COLDNESS,
        n_chains=N_CHAINS,
        burn_in=BURN_IN,
        n_samples=N_SAMPLES,
    )
    removed = remove_by_edge(space, probability, space.drop(position), name="bayes")
    by_agony, drop = space.solve("sa-g")[:2]
    if space.cost[removed].sum() > SLACK * space.cost[by_agony].sum():
        return space.restored(by_agony, drop), drop
    return space.restored(removed, probability), probability


def _sift(space: Workspace, bias: float = BIAS) -> tuple[BoolArray, FloatArray]:
    """Improve the result of bayes by local search: few edges, preferring those probably wrong.

    An edge that probably points down costs less, so among the many sets of about the least cost the
    search prefers those that the sampler considers likely.
    """
    core, rng = space.core, space.rng("sift")
    removed, scores, _ = space.solve("bayes")
    confidence = scores
    if scores is space.solve("sa-g").scores:  # ranks that differ by d: from 1/2 at 0 to 1
        confidence = np.where(scores < 0, 0.0, 1.0 - 1.0 / (2.0 + np.maximum(scores, 0.0)))
    cost = space.cost * (1.0 - bias * np.where(space.kept, 0.0, confidence))
    start = spread_out(peel(core.keep_edges(~removed))[0])
    position = sift(core, cost, start, rng, SWEEPS)
    moves = min(MOVES_PER_EDGE * core.n_edges, MOST_MOVES)
    return anneal(core, cost, position, rng, moves), confidence


def _minimum(space: Workspace) -> tuple[BoolArray, FloatArray, float]:
    """Sift without bias, then solve exactly, component by component, until time runs out."""
    from atpgraph.cycles.minimum import cheapest_cut  # imports scipy.optimize, which takes time

    removed, confidence = _sift(space, 0.0)
    weights = space.cost if space.weights is None else space.weights[space.on_cycles.edges]
    rng = space.rng("minimum")
    removed, bound = cheapest_cut(space.core, weights, space.kept, removed, space.time_limit, rng)
    return removed, confidence, bound


@dataclass(frozen=True)
class Method:
    """A way to break cycles.

    A `weighted` method minimizes the cost of the removed edges instead of their number. An
    `as_published` method, requested by name, does not restore edges that could stay.
    """

    name: str
    summary: str
    run: Callable[[Workspace], tuple[Any, ...]]
    weighted: bool = False
    as_published: bool = False


def _strategies(kind: str, what: str) -> list[Method]:
    """Return the three strategies over one node score."""

    def method(rule: str, summary: str) -> Method:
        def run(space: Workspace) -> tuple[BoolArray, FloatArray]:
            return space.removed_by(kind, rule), space.drop(space.node_score(kind))

        return Method(f"{kind}-{rule}", f"{what}, {summary}", run, as_published=True)

    return [
        method("g", "greedy: the edge that goes down most"),
        method("f", "forward: the top node loses its out-edges"),
        method("b", "backward: the bottom node loses its in-edges"),
        _vote(f"{kind}-voting", "vote of the three", (kind,)),
    ]


def _vote(name: str, summary: str, kinds: tuple[str, ...]) -> Method:
    return Method(name, summary, lambda space: _voting(space, kinds, name), as_published=True)


METHODS = Registry(
    "cycle-breaking method",
    {
        method.name: method
        for method in [
            Method("dfs", "back edges of a depth-first search", _dfs),
            Method("mfas", "the most one-sided node loses its few edges", _mfas, weighted=True),
            Method("eades", "greedy line of Eades, Lin and Smyth", _eades),
            Method("pagerank", "PageRank, greedy", _pagerank),
            *_strategies("sa", "social agony"),
            *_strategies("ts", "TrueSkill"),
            _vote("h-voting", "vote of all six", ("sa", "ts")),
            Method("springs", "springs that give way: cheap on large graphs", _springs, True),
            Method("bayes", "posterior probability of pointing down", _bayes, True),
            Method("sift", "few edges, those that probably point down", _sift, True),
            Method("minimum", "least number or weight of edges, with a proof", _minimum, True),
        ]
    },
)
