"""All evidence that a model weighs, side by side."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from atpgraph.errors import BudgetError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.attributes import Attributes
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.linkpred.evidence.kernels import Room, weigh
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk
from atpgraph.linkpred.evidence.nodes import Degrees, Levels
from atpgraph.linkpred.evidence.times import Clock, Recency
from atpgraph.linkpred.evidence.vectors import AtpScore, SpectralScore
from atpgraph.util.arrays import BoolArray, Float64Array, IntArray
from atpgraph.util.progress import stage
from atpgraph.util.registry import Registry

log = logging.getLogger(__name__)
E = TypeVar("E", bound=Evidence)

# Local evidence by kind, computed together; then the kinds that are classes of their own.
_LOCAL: dict[str, tuple[PageRank | Walk, ...]] = {
    "proximity": (PageRank("both"),),
    "reach": (PageRank("out", "reached", "reach"), PageRank("in", "reaching", "reach")),
    "paths": (
        Walk(">>"),
        Walk(">>>"),
        Walk("><>", damping=(1.0, 0.0)),
        Walk("><>", "><> damped", damping=(0.5, 0.5)),
        Walk("><>", "item-item cosine", damping=(0.5, 0.0), arrival=0.5),
    ),
    "citation": (
        Walk("<>", kind="citation"),
        Walk("><", kind="citation"),
        Walk("<>>", kind="citation"),
    ),
    "reverse": (Walk("<", kind="reverse"),),
}
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
DEFAULT = tuple(kind for kind in KINDS if kind not in ("levels", "atp"))


@dataclass(frozen=True, eq=False)
class Settings:
    """What the constructors of evidence may need."""

    n_components: int = 32  # of ATP's vectors; the singular vectors have twice as many
    n_jobs: int | None = None
    random_state: int = 0
    attributes: Attributes | None = None
    clock: Clock | None = None
    whole: DiGraph | None = None  # the graph whose edges the clock knows


def select_kinds(kinds: str | Iterable[str]) -> list[str]:
    """Return kinds by name; "default" stands for :data:`DEFAULT`, "all" for all.

    Examples
    --------
    >>> select_kinds("degrees,paths")
    ['paths', 'degrees']
    """
    wanted = [part.strip() for part in kinds.split(",")] if isinstance(kinds, str) else list(kinds)
    named = [name for name in wanted if name not in ("default", "all") and KINDS[name]]
    groups = [k for name, k in (("default", DEFAULT), ("all", KINDS)) if name in wanted]
    chosen = {name for group in groups for name in group} | set(named)
    if not chosen:
        raise InputError(f"Name evidence to weigh; there are {', '.join(KINDS)}.")
    return [kind for kind in KINDS if kind in chosen]


class Collection:
    """Kinds of evidence, fitted together.

    Parameters
    ----------
    kinds : "default", "all" or names out of :data:`KINDS`
    settings : Settings
        Attributes and a clock add evidence of their own.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "d"), ("d", "c")])
    >>> found = Collection(["paths", "degrees"]).fit(graph)
    >>> found.terms(np.array([0]), np.array([2])).shape == (1, len(found.term_names))
    True
    """

    graph: DiGraph

    def __init__(
        self, kinds: str | Iterable[str] = "default", settings: Settings | None = None
    ) -> None:
        self.settings = s = settings or Settings()
        chosen = select_kinds(kinds)
        columns = [column for kind in chosen for column in _LOCAL.get(kind, ())]
        self.local = Local(columns, n_jobs=s.n_jobs)
        self.others: list[Evidence] = []
        if "degrees" in chosen:
            self.others.append(Degrees())
        if s.clock is not None and s.whole is not None:
            self.others.append(Recency(s.clock, s.whole))
        if "levels" in chosen:
            self.others.append(Levels(random_state=s.random_state))
        if "atp" in chosen:
            self.others.append(
                AtpScore(s.n_components, n_jobs=s.n_jobs, random_state=s.random_state)
            )
        if "spectral" in chosen:
            self.others.append(SpectralScore(2 * s.n_components, random_state=s.random_state))
        if s.attributes is not None:
            self.others.append(s.attributes)

    def fit(self, graph: DiGraph) -> Self:
        """Fit every evidence to the graph."""
        self.graph = graph
        with stage("evidence", 1 + len(self.others)) as progress:
            self.local.fit(graph)
            for part in list(self.others):
                progress.advance()
                try:
                    part.fit(graph)
                except BudgetError as error:
                    if not isinstance(part, AtpScore):
                        raise
                    log.warning("Evidence of ATP is left out: %s", error)
                    self.others.remove(part)
        return self

    def grown(self, new: NewNode) -> Collection:
        """Return the evidence of the graph with one node more; this one does not change."""
        other = copy.copy(self)
        other.graph = new.graph
        other.local = self.local.grown(new)
        other.others = [part.grown(new) for part in self.others]
        return other

    def part(self, kind: type[E]) -> E | None:
        """Return the evidence of a class, or None."""
        return next((part for part in self.others if isinstance(part, kind)), None)

    @property
    def parts(self) -> list[Evidence]:
        """All evidence, the local one first."""
        return [self.local, *self.others]

    @property
    def kinds(self) -> list[str]:
        """The kinds of evidence that were fitted."""
        return list(dict.fromkeys(kind for part in self.parts for kind in part.kinds))

    @property
    def names(self) -> list[str]:
        """Names of all numbers, in the order of :meth:`pairs`."""
        return [name for part in self.parts for name in part.names]

    @property
    def number_kinds(self) -> list[str]:
        """The kind of each number."""
        return [kind for part in self.parts for kind in part.kinds]

    @property
    def term_names(self) -> list[str]:
        """Names of all terms, in the order of :meth:`terms`."""
        return [name for part in self.parts for name in part.term_names]

    @property
    def term_kinds(self) -> list[str]:
        """The kind of each term."""
        return [kind for part in self.parts for kind in part.term_kinds]

    def columns_of(self, *kinds: str) -> BoolArray:
        """Return which terms belong to evidence of these kinds."""
        return np.array([kind in kinds for kind in self.term_kinds], dtype=bool)

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return all numbers of the pairs."""
        return self.numbers(self.local.pairs(u, v), u, v)

    def terms(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return all terms of the pairs."""
        return self.as_terms(self.pairs(u, v))

    def numbers(self, near: Float64Array, u: IntArray, v: IntArray) -> Float64Array:
        """Return all numbers of the pairs, given those of local evidence."""
        return np.concatenate([near, *(part.pairs(u, v) for part in self.others)], axis=1)

    def as_terms(self, found: Float64Array) -> Float64Array:
        """Turn numbers into terms."""
        bounds = np.cumsum([0, *(len(part.names) for part in self.parts)])
        return np.concatenate(
            [part.terms(found[:, low:high])
             for part, low, high in zip(self.parts, bounds[:-1], bounds[1:], strict=True)],
            axis=1,
        )  # fmt: skip

    def near_scores(self, room: Room, weights: Float64Array) -> Float64Array:
        """Return the weighted terms of local evidence, for the nodes that are near."""
        return self.weigh(room, self.local_weights(weights, self.local), self.local.floors)

    def local_weights(self, weights: Float64Array, local: Local) -> Float64Array:
        """Return the weights of the terms of some columns of the local evidence."""
        at = [self.local.names.index(name) for name in local.names]
        return np.ascontiguousarray(weights[: 3 * len(self.local.columns)].reshape(-1, 3)[at])

    def weigh(self, room: Room, weights: Float64Array, floors: Float64Array) -> Float64Array:
        """Return the weighted terms of the local evidence in a room."""
        scores = np.empty(len(room.near))
        weigh(room, weights, floors, scores)
        return scores

    def score_from(self, sources: IntArray, weights: Float64Array) -> Float64Array:
        """Return the weighted terms of each source with all nodes, one row for each source."""
        n = self.graph.n_nodes
        scores = np.zeros((len(sources), n))
        first = 3 * len(self.local.columns)

        def visit(at: int, room: Room) -> None:
            scores[at, room.near] = self.near_scores(room, weights)
            low = first
            for part in self.others:
                own = weights[low : low + len(part.term_names)]
                low += len(own)
                if own.any():
                    scores[at] += part.terms(part.from_source(int(sources[at]), n)) @ own

        self.local.scan(sources, visit)
        return scores
