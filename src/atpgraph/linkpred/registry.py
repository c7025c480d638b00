"""The rows of a benchmark: names, how to make each, and what turns our models into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.baselines import (
    APP,
    HOPE,
    LINE,
    NRP,
    STRAP,
    SVDM,
    AdjacencySVD,
    AnyNeighbours,
    CommonNeighbours,
    DegreeProduct,
    ItemCosine,
    LevelDifference,
    PreferentialAttachment,
    Proximity,
    RecentItemCosine,
    RecentPopularity,
    ThreeSteps,
)
from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.linkpred.protocols.method import EmbeddingMethod, Method
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray
from atpgraph.util.registry import Registry


@dataclass(eq=False)
class PlainATP(EmbeddingMethod):
    """:class:`atpgraph.ATP` for links, as a row of a benchmark.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> atp = PlainATP(4, "harmonic").fit(chain)
    >>> there, back = atp.score(np.array([0, 3]), np.array([3, 0]))
    >>> bool(there > 1.0 > 0.1 > back)
    True
    """

    n_components: int = 64
    kernel: str = "log"  # f, the weight of a reachable pair
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"ATP-{self.kernel}"

    def fit(self, graph: DiGraph) -> Self:
        """Run the four steps of ATP."""
        atp = ATP(
            self.n_components,
            purpose="paper",
            kernel=self.kernel,
            zero_weight="auto",
            random_state=self.random_state,
        ).fit(graph)
        self.source_, self.target_ = atp.source_, atp.target_
        return self


# What each protocol asks.
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


@dataclass(frozen=True, eq=False)
class Answers:
    """The scores of a fitted predictor for one of its questions."""

    name: str
    model: LinkPredictor
    question: str
    seen: dict[bytes, Float64Array]  # scores for all questions of the pairs asked about last

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Log-odds of the pairs."""
        key = u.tobytes() + v.tobytes()
        if key not in self.seen:
            while len(self.seen) > 1:  # the positives, which several protocols share, and one more
                del self.seen[next(reversed(self.seen))]
            self.seen[key] = self.model.score_all(u, v)
        return np.asarray(self.seen[key][:, list(self.model.heads_).index(self.question)])

    def score_from(self, u: IntArray) -> FloatArray:
        """Log-odds against all nodes."""
        head = self.model.heads_[self.question]
        scores = self.model.evidence_.score_from(u, head.weights) + head.intercept
        for row, source in enumerate(u.tolist() if self.question == "target" else []):
            popular = self.model.popularity_of(source)
            if popular is not None:
                scores[row] = popular
        return scores


class LearnedLinks:
    """:class:`~atpgraph.LinkPredictor`, judged by the question a protocol asks.

    Parameters
    ----------
    n_components : int
        Dimension of the table; ATP's vectors have half of it, the singular vectors all of it.
    evidence : "default", "all" or names
    random_state : int

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> row = LearnedLinks(8).fit(citation_dag(200, 1000, random_state=0))
    >>> row.under("reversed").score(np.array([0]), np.array([1])).shape
    (1,)
    """

    note = (
        "one linear model for each protocol's question (is it a link, which way, in which order, "
        "which target), learned on edges hidden from the training graph"
    )

    def __init__(
        self,
        n_components: int = 64,
        *,
        evidence: str | Sequence[str] = "default",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.evidence = evidence
        self.random_state = random_state
        self.name = "LinkPredictor"

    uses_times = True

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Learn from the training graph."""
        self.model_ = LinkPredictor(
            self.evidence,
            n_components=max(self.n_components // 2, 1),
            random_state=self.random_state,
        ).fit(graph, times=times)
        self._seen: dict[bytes, Float64Array] = {}
        return self

    def under(self, protocol: str) -> Answers:
        """The scores to use under a protocol."""
        return Answers(self.name, self.model_, ASKED[protocol], self._seen)

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Whether it is a link."""
        return self.under("random").score(u, v)

    def score_from(self, u: IntArray) -> FloatArray:
        """Whether it is a link, against all nodes."""
        return self.under("random").score_from(u)


Make = Callable[[int, int], Method]


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes
    ----------
    key : str
        What a user types.
    group : {"ours", "rival", "trivial"}
    make : function of (dimension, seed)
    has_dimension : bool
        Whether the dimension changes anything.
    """

    key: str
    group: Literal["ours", "rival", "trivial"]
    make: Make
    has_dimension: bool = True


def _atp(kernel: str) -> Make:
    return lambda k, seed: PlainATP(k, kernel, random_state=seed)


def _svdm(kernel: str) -> Make:
    return lambda k, seed: SVDM(k, kernel, random_state=seed)


def _hope(proximity: str) -> Make:
    return lambda k, seed: HOPE(k, proximity, random_state=seed)


ROWS = Registry(
    "method",
    {
        row.key: row
        for row in [
            Row("atp-log", "ours", _atp("log")),
            Row("atp-harmonic", "ours", _atp("harmonic")),
            Row("atp-linear", "ours", _atp("linear")),
            Row("atp-constant", "ours", _atp("constant")),
            Row("links", "ours", lambda k, seed: LearnedLinks(k, random_state=seed)),
            Row("svdm-log", "rival", _svdm("log")),
            Row("svdm-harmonic", "rival", _svdm("harmonic")),
            Row("line", "rival", lambda k, seed: LINE(k, random_state=seed)),
            Row("app", "rival", lambda k, seed: APP(k, random_state=seed)),
            Row("nrp", "rival", lambda k, seed: NRP(k, random_state=seed)),
            Row("strap", "rival", lambda k, seed: STRAP(k, random_state=seed)),
            Row("hope-katz", "rival", _hope("katz")),
            Row("hope-cn", "rival", _hope("common-neighbours")),
            Row("hope-aa", "rival", _hope("adamic-adar")),
            Row("hope-rpr", "rival", _hope("rooted-pagerank")),
            Row("levels", "trivial", lambda k, seed: LevelDifference(random_state=seed), False),
            Row("svd", "trivial", lambda k, seed: AdjacencySVD(k, random_state=seed)),
            Row("common-neighbours", "trivial", lambda k, seed: CommonNeighbours(), False),
            Row("common-neighbours-any", "trivial", lambda k, seed: AnyNeighbours(), False),
            Row("paths", "trivial", lambda k, seed: ThreeSteps(), False),
            Row("item-cosine", "trivial", lambda k, seed: ItemCosine(), False),
            Row("ppr", "trivial", lambda k, seed: Proximity(), False),
            Row("ppr-degree", "trivial", lambda k, seed: Proximity(by_degree=True), False),
            Row("degree-product", "trivial", lambda k, seed: DegreeProduct(), False),
            Row("popularity", "trivial", lambda k, seed: RecentPopularity(1.0), False),
            Row("recent-popularity", "trivial", lambda k, seed: RecentPopularity(), False),
            Row("recent-cosine", "trivial", lambda k, seed: RecentItemCosine(), False),
            Row("preferential", "trivial", lambda k, seed: PreferentialAttachment(), False),
        ]
    },
)


def choose(names: str | Sequence[str] = "all") -> list[Row]:
    """The rows named, in the order of the table; "all", or names separated by commas.

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
    for name in wanted:
        if name not in groups:
            ROWS[name]  # an unknown name is refused
    return [row for row in ROWS.values() if {"all", row.group, row.key} & set(wanted)]
