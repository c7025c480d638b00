"""The rows of a benchmark: names, how to make each, and what turns our models into rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred import baselines as rows
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols.judging import EmbeddingMethod, Method
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray
from atpgraph.util.registry import Registry


@dataclass(eq=False)
class PlainATP(EmbeddingMethod):
    """:class:`atpgraph.ATP` for links, as a row of a benchmark."""

    n_components: int = 64
    kernel: str = "log"  # f, the weight of a reachable pair
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"ATP-{self.kernel}"

    def fit(self, graph: DiGraph) -> Self:
        """Run the four steps of ATP."""
        atp = ATP(
            self.n_components, purpose="paper", kernel=self.kernel, zero_weight="auto",
            random_state=self.random_state,
        ).fit(graph)  # fmt: skip
        self.source_, self.target_ = atp.source_, atp.target_
        return self


# The question of the predictor that each protocol asks.
ASKED = Registry(
    "protocol",
    {
        "paper": "order",
        "random": "link",
        "reversed": "direction",
        "ranking": "target",
        "dirlinkbench": "link",
        "time": "target",
        "time-cold": "target",
    },
)


class LearnedLinks:
    """:class:`~atpgraph.LinkPredictor`, judged by the question a protocol asks.

    ATP's vectors have half of the dimension of the table, the singular vectors all of it.
    """

    name = "LinkPredictor"
    note = (
        "one linear model for each protocol's question (is it a link, which way, in which order, "
        "which target), learned on edges hidden from the training graph"
    )
    uses_times = True
    question = "link"

    def __init__(
        self,
        n_components: int = 64,
        *,
        evidence: str | Sequence[str] = "default",
        random_state: int = 0,
    ) -> None:
        self.n_components, self.evidence, self.random_state = n_components, evidence, random_state

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Learn from the training graph."""
        self.model_ = LinkPredictor(
            self.evidence,
            n_components=max(self.n_components // 2, 1),
            random_state=self.random_state,
        ).fit(graph, times=times)
        self._seen: dict[bytes, Float64Array] = {}
        return self

    def under(self, protocol: str) -> LearnedLinks:
        """Return the same model, which answers the question that a protocol asks."""
        other = copy.copy(self)
        other.question = ASKED[protocol]
        return other

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the log-odds of the pairs."""
        key = u.tobytes() + v.tobytes()
        if key not in self._seen:
            while len(self._seen) > 1:  # keep the positives, which several protocols share
                del self._seen[next(reversed(self._seen))]
            self._seen[key] = self.model_.score_all(u, v)
        return np.asarray(self._seen[key][:, list(self.model_.heads_).index(self.question)])

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


def _sized(kind: Any, *options: str) -> Callable[[int, int], Method]:
    return lambda k, seed: kind(k, *options, random_state=seed)


def _plain(key: str, kind: Callable[..., Method], *options: Any) -> Row:
    return Row(key, "trivial", lambda k, seed: kind(*options), False)


_KERNELS = ("log", "harmonic", "linear", "constant")
_ROWS = [
    *(Row(f"atp-{kernel}", "ours", _sized(PlainATP, kernel)) for kernel in _KERNELS),
    Row("links", "ours", _sized(LearnedLinks)),
    *(Row(f"svdm-{kernel}", "rival", _sized(rows.SVDM, kernel)) for kernel in _KERNELS[:2]),
    Row("line", "rival", _sized(rows.LINE)),
    Row("app", "rival", _sized(rows.APP)),
    Row("nrp", "rival", _sized(rows.NRP)),
    Row("strap", "rival", _sized(rows.STRAP)),
    Row("hope-katz", "rival", _sized(rows.HOPE, "katz")),
    Row("hope-cn", "rival", _sized(rows.HOPE, "common-neighbours")),
    Row("hope-aa", "rival", _sized(rows.HOPE, "adamic-adar")),
    Row("hope-rpr", "rival", _sized(rows.HOPE, "rooted-pagerank")),
    Row("levels", "trivial", lambda k, seed: rows.LevelDifference(random_state=seed), False),
    Row("svd", "trivial", _sized(rows.AdjacencySVD)),
    _plain("common-neighbours", rows.CommonNeighbours),
    _plain("common-neighbours-any", rows.AnyNeighbours),
    _plain("paths", rows.ThreeSteps),
    _plain("item-cosine", rows.ItemCosine),
    _plain("ppr", rows.Proximity),
    _plain("ppr-degree", rows.Proximity, True),
    _plain("degree-product", rows.DegreeProduct),
    _plain("popularity", rows.Popularity),
    _plain("recent-popularity", rows.RecentPopularity),
    _plain("recent-cosine", rows.RecentItemCosine),
    _plain("preferential", rows.PreferentialAttachment),
]
ROWS = Registry("method", {row.key: row for row in _ROWS})


def choose(names: str | Sequence[str] = "all") -> list[Row]:
    """Return the rows named, in the order of the table; "all", or names separated by commas.

    A group (``ours``, ``rival``, ``trivial``) stands for its rows.

    Examples
    --------
    >>> [row.key for row in choose("nrp,line")]
    ['line', 'nrp']
    """
    wanted = (
        [part.strip().lower() for part in names.split(",")] if isinstance(names, str) else names
    )
    groups = {row.group for row in ROWS.values()} | {"all"}
    ROWS.select(name for name in wanted if name not in groups)  # an unknown name is refused
    return [row for row in ROWS.values() if {"all", row.group, row.key} & set(wanted)]
