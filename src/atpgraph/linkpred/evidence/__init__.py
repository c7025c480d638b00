"""Evidence for links: the surroundings of a source, properties of both nodes, and all combined."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk
from atpgraph.linkpred.evidence.parts import PARTS, Settings
from atpgraph.util.arrays import AnyArray, Float64Array, IntArray
from atpgraph.util.checks import Registry
from atpgraph.util.progress import stage

# Columns of local evidence; the other kinds are classes, one each, out of PARTS.
LOCAL = (
    PageRank("both"),
    PageRank("out", "reached", "reach"),
    PageRank("in", "reaching", "reach"),
    Walk(">>"),
    Walk(">>>"),
    Walk("><>", damping=(1.0, 0.0)),
    Walk("><>", "><> damped", damping=(0.5, 0.5)),
    Walk("><>", "item-item cosine", damping=(0.5, 0.0), arrival=0.5),
    Walk("<>", kind="citation"),
    Walk("><", kind="citation"),
    Walk("<>>", kind="citation"),
    Walk("<", kind="reverse"),
)
KINDS: Registry[str] = Registry(
    "evidence",
    {
        "proximity": "personalized PageRank on the graph without directions",
        "reach": "personalized PageRank forward and backward",
        "paths": "directed paths of two and three steps, item-item cosine",
        "citation": "targets and sources in common",
        "reverse": "the edge v → u",
        "degrees": "degrees of both nodes",
        "spectral": "a low-rank approximation of the adjacency matrix",
        "levels": "levels of both nodes once cycles are broken",
        "atp": "ATP's vectors for links",
    },
)
DEFAULT = tuple(kind for kind in KINDS if kind != "atp")
_GROUPS = {"default": DEFAULT}


def select_kinds(kinds: str | Iterable[str]) -> list[str]:
    """Return kinds by name; "default" stands for :data:`DEFAULT`, "all" for all.

    Examples
    --------
    >>> select_kinds("degrees,paths")
    ['paths', 'degrees']
    """
    wanted = [part.strip() for part in kinds.split(",")] if isinstance(kinds, str) else list(kinds)
    chosen = KINDS.select(kind for name in wanted for kind in _GROUPS.get(name, (name,)))
    if not chosen:
        raise InputError(f"Name at least one kind of evidence: {', '.join(KINDS)}.")
    return [kind for kind in KINDS if kind in chosen]


class Collection:
    """Kinds of evidence, fitted together.

    ``names`` and ``number_kinds`` describe the numbers of a pair, ``term_names`` and ``term_kinds``
    the terms that linear models weigh. Kinds are named as in :data:`KINDS`; settings with
    attributes or a clock add evidence of their own.
    """

    graph: DiGraph

    def __init__(
        self, kinds: str | Iterable[str] = "default", settings: Settings | None = None
    ) -> None:
        self.settings = given = settings or Settings()
        chosen = select_kinds(kinds)
        chosen += ["recency"] if given.clock is not None else []
        chosen += ["attributes"] if given.attributes is not None else []
        self.local = Local([c for c in LOCAL if c.kind in chosen], n_jobs=given.n_jobs)
        self.parts = [part(given) for part in PARTS if part.kind in chosen]
        self._all: list[Any] = [self.local, *self.parts]
        self.names = [name for part in self._all for name in part.names]
        self.term_names = [name for part in self._all for name in part.term_names]
        columns = self.local.columns
        self.number_kinds = [column.kind for column in columns]
        self.number_kinds += [part.kind for part in self.parts for _ in part.names]
        self.term_kinds = [column.kind for column in columns for _ in range(3)]
        self.term_kinds += [part.kind for part in self.parts for _ in part.term_names]
        self.kinds = list(dict.fromkeys(self.number_kinds))

    def fit(self, graph: DiGraph) -> Self:
        """Fit every kind of evidence to the graph."""
        self.graph = graph
        with stage("evidence", len(self._all)) as progress:
            for part in self._all:
                part.fit(graph)
                progress.advance()
        return self

    def grown(self, graph: DiGraph, attributes: Any = None) -> Collection:
        """Return the evidence of a larger graph, whose first nodes are those of this one."""
        other = copy.copy(self)
        other.graph, other.settings = graph, self.settings.grown(graph, attributes)
        other.local = Local(self.local.columns, n_jobs=self.local.n_jobs).fit(graph)
        other.parts = [part.grown(graph, other.settings) for part in self.parts]
        other._all = [other.local, *other.parts]
        return other

    def part(self, kind: str) -> Any:
        """Return the evidence of a kind, or None."""
        return next((part for part in self.parts if part.kind == kind), None)

    def pairs(self, u: IntArray, v: IntArray, near: AnyArray | None = None) -> Float64Array:
        """Return all numbers of the pairs; `near` are those of local evidence, if known."""
        near = self.local.pairs(u, v) if near is None else near.astype(np.float64)
        return np.concatenate([near, *(part.pairs(u, v) for part in self.parts)], axis=1)

    def terms(self, u: IntArray, v: IntArray, near: AnyArray | None = None) -> Float64Array:
        """Return all terms of the pairs."""
        return self.as_terms(self.pairs(u, v, near))

    def as_terms(self, found: Float64Array) -> Float64Array:
        """Turn numbers into terms."""
        sides = np.split(found, np.cumsum([len(part.names) for part in self._all])[:-1], axis=1)
        terms = [part.terms(side) for part, side in zip(self._all, sides, strict=True)]
        return np.concatenate(terms, axis=1)

    def local_weights(self, weights: Float64Array, local: Local | None = None) -> Float64Array:
        """Return the weights of the terms of local evidence, or of some of its columns."""
        own = weights[: 3 * len(self.local.columns)].reshape(-1, 3)
        return own if local is None else own[[self.local.names.index(n) for n in local.names]]

    def terms_of(self, source: int, nodes: IntArray, room: Room) -> Float64Array:
        """Return the terms of pairs of a source, whose local evidence is in the room, and nodes."""
        return self.terms(np.full(len(nodes), source), nodes, room.table[nodes])

    def score_from(self, sources: IntArray, weights: Float64Array) -> Float64Array:
        """Return the weighted terms of each source with all nodes, one row for each source."""
        everyone = np.arange(self.graph.n_nodes)

        def visit(at: int, room: Room) -> Float64Array:
            return self.terms_of(int(sources[at]), everyone, room) @ weights

        return np.stack(self.local.scan(sources, visit))
