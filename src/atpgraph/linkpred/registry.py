"""The rows of a benchmark: names, how to make each, and what turns our models into rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from atpgraph.embedding import ATP
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred import baselines as rows
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols.judging import EmbeddingMethod, Method
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray
from atpgraph.util.checks import Registry


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


# The question of the predictor that a protocol asks; others ask for links.
ASKED = {"paper": "order", "reversed": "direction"}
ASKED |= dict.fromkeys(("ranking", "time", "time-cold"), "target")


@dataclass(eq=False)
class LearnedLinks:
    """:class:`~atpgraph.LinkPredictor`, judged by the question a protocol asks.

    ATP's vectors have half the dimension of the table, the singular vectors all of it.
    """

    n_components: int = 64
    evidence: str | Sequence[str] = field(default="default", kw_only=True)
    random_state: int = field(default=0, kw_only=True)
    question: str = field(default="link", init=False)
    name: ClassVar[str] = "LinkPredictor"
    note: ClassVar[str] = (
        "one linear model for each protocol's question (is it a link, which way, in which order, "
        "which target), learned on edges hidden from the training graph"
    )
    uses_times: ClassVar[bool] = True

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Learn from the training graph."""
        self.model_ = LinkPredictor(
            self.evidence,
            n_components=max(self.n_components // 2, 1),
            random_state=self.random_state,
        ).fit(graph, times=times)
        self._seen: dict[bytes, Registry[Float64Array]] = {}
        return self

    def under(self, protocol: str) -> LearnedLinks:
        """Return the same model, which answers the question that a protocol asks."""
        other = copy.copy(self)
        other.question = ASKED.get(protocol, "link")
        return other

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the log-odds of the pairs."""
        key = u.tobytes() + v.tobytes()
        if key not in self._seen:
            while len(self._seen) > 1:  # keep the positives, which several protocols share
                del self._seen[next(reversed(self._seen))]
            self._seen[key] = self.model_.score_all(u, v)
        return self._seen[key][self.question]

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


def _plain(key: str, formula: rows.Formula) -> Row:
    return Row(key, "trivial", lambda k, seed: replace(formula, random_state=seed), False)


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
    Row("svd", "trivial", _sized(rows.AdjacencySVD)),
    *(_plain(key, formula) for key, formula in rows.FORMULAS.items()),
]
ROWS = Registry("method", {row.key: row for row in _ROWS})


def choose(names: str | Sequence[str | Row] = "all") -> list[Row]:
    """Return the rows named, in the order of the table, then rows that are given as they are.

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


_GRAPHS = ("cora_ml", "citeseer", "photo", "computers", "wikics", "slashdot", "epinions")
# Hits@100 in percent, table 8 of arXiv 2502.05724v2; None: out of time or memory. The first three
# rows use no node features, the others do where a graph has them.
_TABLE: dict[str, tuple[float | None, ...]] = {
    "STRAP": (79.09, 69.32, 69.16, 51.87, 76.27, 31.43, 58.99),
    "ODIN": (54.85, 63.95, 14.13, 12.98, 9.83, 34.17, 36.91),
    "ELTRA": (87.45, 84.97, 20.63, 14.74, 9.88, 33.44, 41.63),
    "MLP": (60.61, 70.27, 20.91, 17.57, 12.99, 32.97, 44.59),
    "GCN": (70.15, 80.36, 58.77, 43.77, 38.37, 33.16, 46.10),
    "GAT": (79.72, 85.88, 58.06, 40.74, 40.47, 30.16, 43.65),
    "APPNP": (86.02, 83.57, 47.51, 32.24, 20.23, 33.76, 41.99),
    "GPRGNN": (86.03, 88.70, 47.60, 38.39, 20.87, 32.61, 41.14),
    "DGCN": (63.32, 68.97, 51.61, 39.92, 25.91, None, None),
    "DiGCN": (63.21, 70.95, 40.17, 27.51, 25.31, None, None),
    "DiGCNIB": (80.57, 85.32, 48.26, 32.44, 28.28, None, None),
    "DirGNN": (76.13, 76.83, 49.15, 35.65, 50.48, 41.74, 50.10),
    "MagNet": (56.54, 65.32, 13.89, 12.85, 10.81, 31.98, 28.01),
    "DUPLEX": (69.00, 73.39, 17.94, 17.90, 8.52, 18.42, 16.50),
    "DHYPR": (86.81, 92.32, 20.93, None, None, None, None),
    "DiGAE": (82.06, 83.64, 55.05, 41.55, 29.21, 41.95, 55.14),
    "SDGAE": (90.37, 93.69, 68.84, 53.79, 54.67, 42.42, 55.91),
}
PUBLISHED = {
    graph: {name: row[at] for name, row in _TABLE.items() if row[at] is not None}
    for at, graph in enumerate(_GRAPHS)
}
