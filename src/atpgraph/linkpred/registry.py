"""The rows of a benchmark by name, and the adapters that turn our models into rows."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred import baselines as rows
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols.judging import EmbeddingMethod, Method
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray
from atpgraph.util.checks import Registry, whole_number


@dataclass(eq=False)
class Embedding(EmbeddingMethod):
    """A row of a benchmark, with the vectors that a function learns from a graph."""

    name: str
    learn: Callable[[DiGraph, int, int], tuple[FloatArray, FloatArray]]  # dimension, then seed
    n_components: int = 64
    random_state: int = 0

    def fit(self, graph: DiGraph) -> Self:
        """Learn source and target vectors."""
        whole_number("the dimension", self.n_components)
        self.source_, self.target_ = self.learn(graph, self.n_components, self.random_state)
        return self


# The question of the predictor that a protocol asks; others ask for links.
ASKED = {"paper": "order", "reversed": "direction"}
ASKED |= dict.fromkeys(("ranking", "time", "time-cold"), "target")


@dataclass(eq=False)
class LearnedLinks:
    """:class:`~atpgraph.LinkPredictor`, which answers the question that a protocol asks.

    ATP's vectors have half the dimension of the table, the singular vectors all of it.
    """

    n_components: int = 64
    evidence: str | Sequence[str] = field(default="default", kw_only=True)
    random_state: int = field(default=0, kw_only=True)
    question: str = field(default="link", init=False)
    name: str = field(default="LinkPredictor", init=False)
    note: ClassVar[str] = (
        "one linear model for each protocol's question (is it a link, which way, in which order, "
        "which target), learned on edges hidden from the training graph"
    )
    uses_times: ClassVar[bool] = True

    def fit(self, graph: DiGraph, *, times: Any = None) -> Self:
        """Learn from the training graph."""
        self.model_ = LinkPredictor(
            self.evidence,
            n_components=max(self.n_components // 2, 1),
            random_state=self.random_state,
        ).fit(graph, times=times)
        self._seen: dict[tuple[object, ...], Float64Array] = {}
        return self

    def under(self, protocol: str) -> LearnedLinks:
        """Return the same model, which answers the question that a protocol asks."""
        other = copy.copy(self)
        other.question = ASKED.get(protocol, "link")
        return other

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the log-odds of the pairs; some protocols share theirs."""
        key = (self.question, u.tobytes(), v.tobytes())
        if key not in self._seen:
            self._seen[key] = self.model_.score_codes(u, v, self.question)
        return self._seen[key]

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the log-odds against all nodes."""
        return self.model_.score_from(u, self.question)


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    key: str  # what a user types
    group: Literal["ours", "rival", "trivial"]
    make: Callable[[int, int], Method]  # of dimension and seed
    has_dimension: bool = True  # whether the dimension changes anything


def _embedding(key: str, name: str, learn: Any, group: Any = "rival", **options: Any) -> Row:
    learned = partial(learn, **options)
    return Row(key, group, lambda k, seed: Embedding(name, learned, k, seed))


def _plain(key: str, formula: rows.Formula) -> Row:
    return Row(key, "trivial", lambda k, seed: replace(formula, random_state=seed), False)


_KERNELS = ("log", "harmonic", "linear", "constant")
_ROWS = [
    *(_embedding(f"atp-{f}", f"ATP-{f}", rows.atp, "ours", kernel=f) for f in _KERNELS),
    Row("links", "ours", lambda k, seed: LearnedLinks(k, random_state=seed)),
    *(_embedding(f"svdm-{f}", f"SVDM-{f}", rows.svdm, kernel=f) for f in _KERNELS[:2]),
    _embedding("line", "LINE", rows.line),
    _embedding("app", "APP", rows.app),
    _embedding("nrp", "NRP", rows.nrp),
    _embedding("strap", "STRAP", rows.strap),
    *(
        _embedding(f"hope-{key}", f"HOPE-{name}", rows.hope, proximity=key)
        for key, name in rows.PROXIMITIES.items()
    ),
    _embedding("svd", "SVD of A", rows.adjacency_svd, "trivial"),
    *(_plain(key, formula) for key, formula in rows.FORMULAS.items()),
]
ROWS = Registry("method", {row.key: row for row in _ROWS})


def choose(names: str | Sequence[str | Row] = "all") -> list[Row]:
    """Return the named rows, in the order of the table, then the rows given as objects.

    Names are separated by commas, or listed; a group (``ours``, ``rival``, ``trivial``, ``all``) is
    short for its rows.

    Examples
    --------
    >>> [row.key for row in choose("nrp,line")]
    ['line', 'nrp']
    """
    given = names.split(",") if isinstance(names, str) else names
    wanted = [name.strip().lower() for name in given if isinstance(name, str)]
    groups = {row.group for row in ROWS.values()} | {"all"}
    ROWS.select(name for name in wanted if name not in groups)  # an unknown name is refused
    named = [row for row in ROWS.values() if {"all", row.group, row.key} & set(wanted)]
    return named + [row for row in given if isinstance(row, Row)]


def _published() -> dict[str, dict[str, float]]:
    """Return Hits@100 in percent by graph and method: table 8 of arXiv 2502.05724v2.

    An empty cell means that the method ran out of time or memory. The first three rows use no node
    features; the others do if a graph has them.
    """
    with Path(__file__).with_name("published.csv").open(encoding="utf-8") as file:
        rows = {row.pop("method"): row for row in csv.DictReader(file)}
    graphs = next(iter(rows.values()))
    return {g: {name: float(row[g]) for name, row in rows.items() if row[g]} for g in graphs}


PUBLISHED = _published()
