"""All evidence that a model weighs, side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from atpgraph.errors import BudgetError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.attributes import Attributes
from atpgraph.linkpred.evidence.base import Evidence, LocalEvidence, local_pairs
from atpgraph.linkpred.evidence.nodes import Degrees, Levels
from atpgraph.linkpred.evidence.proximity import PersonalisedPageRank
from atpgraph.linkpred.evidence.vectors import AtpScore, SpectralScore
from atpgraph.linkpred.evidence.walks import Walks
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array, IntArray
from atpgraph.util.progress import stage
from atpgraph.util.registry import Registry

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What the constructors of evidence may need."""

    n_components: int = 32
    n_jobs: int | None = None
    random_state: int = 0


Make = Callable[[Settings], list[Evidence]]

KINDS: Registry[Make] = Registry(
    "evidence",
    {
        "proximity": lambda s: [PersonalisedPageRank("both")],
        "reach": lambda s: [PersonalisedPageRank("out"), PersonalisedPageRank("in")],
        "paths": lambda s: [
            Walks(">>"),
            Walks(">>>"),
            Walks("><>", damping=(0.0, 1.0, 0.0)),
            Walks("><>", damping=0.5, name="><> damped"),
            Walks("><>", damping=(0.0, 0.5, 0.0), arrival=0.5, name="item-item cosine"),
        ],
        "citation": lambda s: [Walks("<>"), Walks("><"), Walks("<>>")],
        "reverse": lambda s: [Walks("<")],
        "degrees": lambda s: [Degrees()],
        "levels": lambda s: [Levels(random_state=s.random_state)],
        "atp": lambda s: [AtpScore(s.n_components, n_jobs=s.n_jobs, random_state=s.random_state)],
        "spectral": lambda s: [SpectralScore(2 * s.n_components, random_state=s.random_state)],
    },
)


class Collection:
    """Kinds of evidence, fitted together.

    Parameters
    ----------
    kinds : "all" or names out of :data:`KINDS`
    settings : Settings
    attributes : Attributes, optional
        Evidence of node attributes, one row for each node of the graph.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "d"), ("d", "c")])
    >>> found = Collection(["paths", "degrees"]).fit(graph)
    >>> found.terms(np.array([0]), np.array([2])).shape == (1, len(found.term_names))
    True
    """

    def __init__(
        self,
        kinds: str | Iterable[str] = "all",
        settings: Settings | None = None,
        attributes: Attributes | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.parts: dict[str, list[Evidence]] = {
            name: make(self.settings) for name, make in KINDS.select(kinds).items()
        }
        if attributes is not None:
            self.parts["attributes"] = [attributes]
        if not self.parts:
            raise InputError(f"Name evidence to weigh; there are {', '.join(KINDS)}.")

    def fit(self, graph: DiGraph) -> Self:
        """Fit every evidence to the graph; what ATP found about levels is used twice."""
        self.graph = graph
        with stage("evidence", len(self.parts)) as progress:
            level = None
            for name in sorted(self.parts, key=lambda kind: kind != "atp"):
                for part in self.parts[name]:
                    if isinstance(part, Levels) and level is not None:
                        part.use(level)
                        continue
                    try:
                        part.fit(graph)
                    except BudgetError as error:
                        if name != "atp":
                            raise
                        log.warning("Evidence of ATP is left out: %s", error)
                        continue
                    if isinstance(part, AtpScore):
                        level = part.model_.levels_
                progress.advance()
        if "atp" in self.parts and level is None:
            del self.parts["atp"]
        return self

    def __iter__(self) -> Iterator[Evidence]:
        return (part for parts in self.parts.values() for part in parts)

    @property
    def local(self) -> list[LocalEvidence]:
        """The evidence whose rows are sparse."""
        return [part for part in self if isinstance(part, LocalEvidence)]

    @property
    def names(self) -> list[str]:
        """Names of all numbers, in the order of :meth:`pairs`."""
        return [name for part in self for name in part.names]

    @property
    def term_names(self) -> list[str]:
        """Names of all terms, in the order of :meth:`terms`."""
        return [name for part in self for name in part.term_names]

    def spans(self) -> list[tuple[str, Evidence, slice, slice]]:
        """For every evidence its kind, itself, and its columns among the numbers and the terms."""
        found, low, first = [], 0, 0
        for kind, parts in self.parts.items():
            for part in parts:
                high, last = low + len(part.names), first + len(part.term_names)
                found.append((kind, part, slice(low, high), slice(first, last)))
                low, first = high, last
        return found

    def columns_of(self, *kinds: str) -> BoolArray:
        """Which terms belong to evidence of these kinds."""
        chosen = np.zeros(len(self.term_names), dtype=bool)
        for kind, _, _, terms in self.spans():
            chosen[terms] = kind in kinds
        return chosen

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """All numbers of the pairs."""
        jobs = self.settings.n_jobs
        return self.with_local(local_pairs(self.local, u, v, n_jobs=jobs), u, v)

    def with_local(self, near: Float64Array, u: IntArray, v: IntArray) -> Float64Array:
        """All numbers of the pairs, where those of local evidence are known."""
        columns = iter(near.T)
        return np.column_stack(
            [
                next(columns) if isinstance(part, LocalEvidence)
                else part.pairs(u, v, n_jobs=self.settings.n_jobs)
                for part in self
            ]
        )  # fmt: skip

    def terms(self, u: IntArray, v: IntArray) -> Float64Array:
        """All terms of the pairs."""
        return self.as_terms(self.pairs(u, v))

    def as_terms(self, found: Float64Array) -> Float64Array:
        """Numbers as terms."""
        return np.concatenate(
            [part.terms(found[:, numbers]) for _, part, numbers, _ in self.spans()], axis=1
        )

    def add_rows(self, u: int, weights: Float64Array, line: Float64Array) -> None:
        """Add the weighted terms of (u, v), for every node v, to `line`."""
        for _, part, _, terms in self.spans():
            if weights[terms].any():
                part.add_row(u, weights[terms], line)

    def near(self, u: int, weights: Float64Array, room: Float64Array) -> Int64Array:
        """The nodes near u by any local evidence; the weighted terms of that are left in `room`.

        `room` holds a number for every node and is 0 before; whoever calls clears it.
        """
        found = []
        for _, part, _, terms in self.spans():
            if isinstance(part, LocalEvidence):
                rows = part.rows(np.array([u]))
                room[rows.nodes] += (
                    part.terms(rows.values[:, None].astype(np.float64)) @ weights[terms]
                )
                found.append(rows.nodes)
        return np.unique(np.concatenate(found)).astype(np.int64) if found else np.empty(0, np.int64)
