"""Evidence that is not local: degrees, levels, times, vectors and attributes of both nodes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from atpgraph.cycles import break_cycles
from atpgraph.embedding import ATP
from atpgraph.embedding.ranking import pair_scores
from atpgraph.errors import BudgetError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence.attributes import Clock
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.linkpred.factor import leading_factors
from atpgraph.util.archive import Field
from atpgraph.util.arrays import AnyArray, Float32Array, Float64Array, Int64Array, IntArray
from atpgraph.util.random import generator

HORIZONS = (0.02, 0.1)  # of recent links: shares of all edges


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of the evidence."""

    n_components: int = 32  # of ATP's vectors; the singular vectors have twice as many
    n_jobs: int | None = None
    random_state: int = 0
    attributes: Float32Array | None = None  # a row for each node
    clock: Clock | None = None

    def grown(self, graph: DiGraph, attributes: Any = None) -> Settings:
        """Return the settings of a larger graph; `attributes` has a row for each new node."""
        clock = None if self.clock is None else self.clock.grown(graph)
        known = self.attributes
        if known is not None:
            rows = np.zeros((graph.n_nodes - len(known), known.shape[1]), dtype=np.float32)
            if attributes is not None:
                if np.size(attributes) != rows.size:
                    size = np.size(attributes)
                    raise InputError(f"The new nodes have {size} attributes, not {rows.size}.")
                rows[:] = np.reshape(attributes, rows.shape)
            known = np.concatenate([known, rows])
        return replace(self, attributes=known, clock=clock)


class Evidence(ABC):
    """Numbers for each ordered pair of nodes, and the terms of linear models derived from them."""

    kind: str
    names: tuple[str, ...]
    term_names: tuple[str, ...]
    # The arrays that are stored in a file; all else follows from the graph and the settings.
    fields: ClassVar[Mapping[str, Field]] = {}

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def fit(self, graph: DiGraph) -> Self:
        """Store the data of the graph that later steps need."""
        return self

    @abstractmethod
    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the numbers of the pairs (u[i], v[i]): an array of shape (pairs, names)."""

    def terms(self, found: Float64Array) -> Float64Array:
        """Turn numbers into terms of a linear model: an array of shape (pairs, term_names)."""
        return found

    def grown(self, graph: DiGraph, settings: Settings) -> Evidence:
        """Return the evidence of a larger graph, whose first nodes are those of this one."""
        return type(self)(settings).fit(graph)


_DEGREES = ("out-degree of u", "in-degree of u", "out-degree of v", "in-degree of v")


class Degrees(Evidence):
    """log(1 + degree), out and in, of both ends."""

    kind = "degrees"
    names = _DEGREES
    term_names = (
        *(f"log {name}" for name in _DEGREES),
        *(f"log² {name}" for name in _DEGREES),
        *(f"no {name}" for name in _DEGREES),
        *(f"{a}·{b}" for a in _DEGREES[:2] for b in _DEGREES[2:]),
    )

    def fit(self, graph: DiGraph) -> Self:
        self._log = np.log1p(np.column_stack([graph.out_degree, graph.in_degree]))
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        return np.concatenate([self._log[u], self._log[v]], axis=1)

    def terms(self, found: Float64Array) -> Float64Array:
        products = (found[:, :2, None] * found[:, None, 2:]).reshape(-1, 4)
        return np.concatenate([found, found**2, found == 0, products], axis=1)


class Recency(Evidence):
    """In-degree of v shortly before u chooses, at two horizons, and how much older v is than u.

    Horizons are shares of all edges, so that they do not depend on the unit of time.
    """

    kind = "recency"
    names = (*(f"recent in-degree, {100 * h:g} %" for h in HORIZONS), "age gap", "in-degree then")
    term_names = (
        *(f"log {name}" for name in names[:2]),
        "log² recent in-degree",
        "recent share",
        "older",
        "root of age gap",
        "age gap",
        "log age gap",
        "log in-degree then",
        "young and cited",
    )

    def fit(self, graph: DiGraph) -> Self:
        assert self.settings.clock is not None
        self.clock = self.settings.clock
        # One sorted array answers for all nodes: node first, then the time, which is at most 1.
        self._keys = np.sort(2.0 * graph.targets + self.clock.arrivals(graph))
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        until, node = self.clock.now[u], 2.0 * np.asarray(v)
        upto = np.searchsorted(self._keys, node + until)
        counts = [
            np.maximum(upto - np.searchsorted(self._keys, node + np.maximum(until - h, -1e-9)), 0)
            for h in (*HORIZONS, 2.0)
        ]
        return np.column_stack([*counts[:2], until - self.clock.start[v], counts[2]])

    def terms(self, found: Float64Array) -> Float64Array:
        short, long, ever = (np.log1p(found[:, at]) for at in (0, 1, 3))
        gap, share = found[:, 2], found[:, 1] / (found[:, 3] + 1.0)
        old = np.maximum(gap, 0.0)
        age = np.log(old + 0.01)
        columns = [short, long, long**2, share, gap > 0, np.sqrt(old), gap, age, ever, ever * age]
        return np.column_stack(columns)


class Levels(Evidence):
    """Levels of u and v once cycles are broken, counted from the bottom and from the top.

    Edges lead up. The two counts differ if paths have different lengths; together they tell the
    direction of a link better than either alone.
    """

    kind = "levels"
    method: ClassVar[str] = "springs"  # of breaking cycles: cheap on large graphs
    names = ("level of u", "level of v", "levels above u", "levels above v")
    term_names = (
        *names,
        *(f"{form}{what}" for what in ("level difference", "difference of levels above")
          for form in ("", "sign of ", "signed log of ")),
    )  # fmt: skip
    fields: ClassVar[Mapping[str, Field]] = dict.fromkeys(
        ("level_", "above_"), Field("f", ("n",), low=0, optional=True)
    )
    level_: Float64Array
    above_: Float64Array

    def fit(self, graph: DiGraph) -> Self:
        dag = break_cycles(graph, self.method, random_state=self.settings.random_state).dag
        self.level_ = levels(dag).astype(np.float64)
        self.above_ = levels(dag.reverse()).astype(np.float64)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        return np.column_stack([side[end] for side in (self.level_, self.above_) for end in (u, v)])

    def terms(self, found: Float64Array) -> Float64Array:
        columns = [found]
        for at in (0, 2):
            apart = found[:, at + 1] - found[:, at]
            sign = np.sign(apart)
            columns += [apart, sign, sign * np.log1p(np.abs(apart))]
        return np.column_stack(columns)


class VectorEvidence(Evidence):
    """The products ⟨source vector of u, target vector of v⟩ and the same from v to u."""

    source_: Float32Array
    target_: Float32Array

    def __init_subclass__(cls) -> None:
        pair = Field("f", ("n", cls.kind), optional=True)
        cls.fields = {"source_": pair, "target_": pair}

    def use(self, source: AnyArray, target: AnyArray) -> Self:
        """Use vectors that were computed before."""
        self.source_ = np.ascontiguousarray(source, dtype=np.float32)
        self.target_ = np.ascontiguousarray(target, dtype=np.float32)
        return self

    def grown(self, graph: DiGraph, settings: Settings) -> VectorEvidence:
        """Return the evidence with vectors for new nodes, from nodes before them; others stay."""
        other, sides, old = copy.copy(self), (self.source_, self.target_), len(self.source_)
        more = np.zeros((graph.n_nodes - old, self.source_.shape[1]), dtype=np.float32)
        source, target = (np.concatenate([side, more]) for side in sides)
        other.use(source, target)
        squares = np.stack([(side.astype(np.float64) ** 2).sum(axis=0) for side in sides])
        for node in range(old, graph.n_nodes):
            out, into = (targets_of(side, node) for side in (graph, graph.reverse()))
            vectors = other.project(out[out < node], into[into < node], squares)
            source[node], target[node] = vectors
            squares += np.stack([source[node], target[node]]).astype(np.float64) ** 2
        return other

    @abstractmethod
    def project(
        self, out: Int64Array, into: Int64Array, squares: Float64Array
    ) -> tuple[AnyArray, AnyArray]:
        """Return the vectors of a new node with edges to some nodes and from others.

        `squares` has the squared norms of the columns of the source vectors, then of the targets.
        """


class AtpScore(VectorEvidence):
    """The scores of ATP's vectors for links, from u to v and from v to u."""

    kind = "atp"
    names = ("ATP score", "ATP score of v → u")
    term_names = ("log ATP score", "log ATP score of v → u")

    def fit(self, graph: DiGraph) -> Self:
        """Embed the graph; if there are too many paths to store, use the purpose reachability."""
        given = self.settings
        model = ATP(
            given.n_components, purpose="paper", zero_weight="auto", n_jobs=given.n_jobs,
            random_state=given.random_state,
        )  # fmt: skip
        try:
            model.fit(graph)
        except BudgetError:
            model.set_params(purpose="reachability", zero_weight=0.0).fit(graph)
        return self.use(model.source_, model.target_)

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        ways = ((u, v), (v, u))
        return np.column_stack([pair_scores(self.source_, self.target_, *way) for way in ways])

    def terms(self, found: Float64Array) -> Float64Array:
        return np.log1p(np.maximum(found, 0.0))

    def project(
        self, out: Int64Array, into: Int64Array, squares: Float64Array
    ) -> tuple[AnyArray, AnyArray]:
        """Return vectors of a new node, whose components are the largest of those of its neighbors.

        The node reaches all nodes that its targets reach, and all nodes that reach its sources
        reach it.
        """
        source = self.source_[out].max(axis=0, initial=0.0)
        return source, self.target_[into].max(axis=0, initial=0.0)


_SPECTRAL = tuple(
    f"spectral score{what}" for what in ("", " of v → u", ", an eighth", ", a quarter", ", half")
)


class SpectralScore(VectorEvidence):
    """The entry of low-rank approximations of the adjacency matrix, of all components and of fewer.

    The first components describe popularity in the whole graph, the last ones closeness; how useful
    each is differs from graph to graph, so the sums over the first eighth, quarter and half of them
    are evidence of their own.
    """

    kind = "spectral"
    names = _SPECTRAL
    term_names = tuple(
        f"{form}{name}" for form in ("", "root of ", "log of ") for name in _SPECTRAL
    )

    def fit(self, graph: DiGraph) -> Self:
        """Factor the adjacency matrix; a second fit starts from the vectors of the first."""
        forward = graph.keep_edges(graph.sources != graph.targets).to_scipy().astype(np.float32)
        forward.data[:] = 1.0  # an edge is an edge
        k = max(min(2 * self.settings.n_components, graph.n_nodes), 1)
        start = getattr(self, "target_", None)
        return self.use(*leading_factors(forward, k, generator(self.settings.random_state), start))

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        k = self.source_.shape[1]
        parts = [
            pair_scores(self.source_[:, low:high], self.target_[:, low:high], u, v)
            for low, high in pairwise([0, -(-k // 8), -(-k // 4), -(-k // 2), k])
        ]
        sums = np.cumsum(parts, axis=0)
        reverse = pair_scores(self.source_, self.target_, v, u)
        return np.column_stack([sums[3], reverse, *sums[:3]])

    def terms(self, found: Float64Array) -> Float64Array:
        positive = np.maximum(found, 0.0)
        return np.concatenate([found, np.sqrt(positive), np.log(np.maximum(found, 1e-3))], axis=1)

    def project(
        self, out: Int64Array, into: Int64Array, squares: Float64Array
    ) -> tuple[AnyArray, AnyArray]:
        """Return the projections a V Σ^−½ of the rows of the node, one for each direction."""
        scale = np.where(squares > 0, squares, 1.0)  # the columns of U √Σ and V √Σ have norm √σ
        return self.target_[out].sum(axis=0) / scale[1], self.source_[into].sum(axis=0) / scale[0]


class Attributes(Evidence):
    """How similar the attributes of u and v are, and which of them indicate a link.

    x holds the attributes of a node along their main components (the longest first, scaled so that
    the inner product of two nodes is near their cosine). Terms are the cosine; x_u ∘ x_v, with one
    weight each, which is a bilinear form x_uᵀ diag(w) x_v; and x_v − x_u, which tells the direction
    if attributes rise or fall along edges.
    """

    kind = "attributes"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        assert settings.attributes is not None
        self.vectors_ = settings.attributes
        self._norm = np.maximum(np.linalg.norm(self.vectors_, axis=1), 1e-12)
        forms, k = ("attributes in common", "attributes apart"), self.vectors_.shape[1]
        self.names = ("similarity", *(f"{form}, {at + 1}" for form in forms for at in range(k)))
        self.term_names = self.names

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        a, b = self.vectors_[u], self.vectors_[v]
        product = (a * b).astype(np.float64)
        cosine = product.sum(axis=1) / (self._norm[u] * self._norm[v])
        return np.concatenate([cosine[:, None], product, b - a], axis=1)


PARTS: tuple[type[Evidence], ...] = (Degrees, Recency, Levels, AtpScore, SpectralScore, Attributes)
