"""ATP-blend: ATP's vectors beside vectors for locality and terms for degrees and levels."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from atpgraph._random import generator
from atpgraph._typing import Float32Array, Float64Array
from atpgraph.embedding import ATP
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred._weights import Parts, Weights, learn_pairs, learn_ranking, unit_scale
from atpgraph.linkpred.baselines import HOPE, LINE, NRP
from atpgraph.linkpred.method import EmbeddingMethod, check_components
from atpgraph.linkpred.protocols import PROTOCOLS, PairTest, Ranking, RankingTest
from atpgraph.linkpred.splits import make_split


class Vectors(EmbeddingMethod):
    """Source and target vectors, to score with."""

    def __init__(self, name: str, source: Float32Array, target: Float32Array) -> None:
        self.name = name
        self.source_ = source
        self.target_ = target


class ATPBlend(EmbeddingMethod):
    """One pair of vectors made of blocks, with block weights learned on validation edges.

    The score of (u, v) is a weighted sum of ⟨s_u, t_v⟩ of ATP-log, HOPE-Katz, NRP and LINE, and of
    x_uᵀ W x_v, where x holds 1, the logarithms of the degrees, the level, their squares and whether
    a degree is zero. A weighted sum of inner products is one inner product, of the
    concatenated vectors.

    ``fit`` gets the training graph alone. It takes validation edges out of that graph, fits the
    blocks on what is left, learns the weights, and fits the blocks again on the whole training
    graph. Under ``paper``, ``random`` and ``reversed`` the weights are those of a logistic
    regression of validation edges against negatives of the protocol's own kind; under ``ranking``
    they come from a coordinate search for the mean reciprocal rank. **So there is one set of
    weights for each protocol**, with the same blocks: :meth:`under` gives the vectors of one.

    Parameters
    ----------
    n_components : int
        Dimension of each of the four blocks. The joined vectors have 4 k + 9 dimensions, fewer
        where a block gets weight 0.
    fraction : float
        Share of the training edges taken out for validation.
    regularization : float
        Ridge penalty of the logistic regressions.
    max_queries : int
        Limit on the validation edges that the ranking weights are searched on.
    random_state : int

    Attributes
    ----------
    weights_ : dict from protocol to Weights
        A protocol is missing where the training graph has no validation pairs for it.
    source_, target_ : float32 arrays
        The vectors of the protocol ``random``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u, v = rng.integers(60, size=(2, 500))
    >>> graph = DiGraph.from_codes(np.minimum(u, v)[u != v], np.maximum(u, v)[u != v], 60)
    >>> blend = ATPBlend(4).fit(graph)
    >>> blend.under("paper").source_.shape
    (60, 25)
    >>> low, high = np.array([5, 10]), np.array([50, 55])
    >>> bool((blend.under("paper").score(low, high) > blend.under("paper").score(high, low)).all())
    True
    """

    note = (
        "one set of block weights for each protocol, learned on validation edges of the training "
        "graph; four blocks of the dimension of the table and nine terms for degrees and levels"
    )

    def __init__(
        self,
        n_components: int = 64,
        *,
        fraction: float = 0.1,
        regularization: float = 1e-3,
        max_queries: int = 2000,
        random_state: int = 0,
    ) -> None:
        self.n_components = check_components(n_components)
        self.fraction = fraction
        self.regularization = regularization
        self.max_queries = max_queries
        self.random_state = random_state
        self.name = f"ATP-blend (4 × {n_components} + 9)"

    def fit(self, graph: DiGraph) -> Self:
        """Learn the weights on validation edges, then fit the blocks on the whole graph."""
        rng_split, rng_ranking = generator(self.random_state).spawn(2)
        ranking = Ranking(sample_size=1, max_queries=self.max_queries)
        inner = make_split(
            graph,
            fraction=self.fraction,
            protocols=[*PROTOCOLS, ranking],
            random_state=rng_split,
        )
        parts = self._parts(inner.train)
        self.weights_: dict[str, Weights] = {}
        for protocol, test in inner.tests.items():
            if isinstance(test, PairTest):
                self.weights_[protocol] = learn_pairs(
                    parts, test.positives, test.negatives, self.regularization
                )
            elif isinstance(test, RankingTest):
                self.weights_[protocol] = learn_ranking(
                    parts, test.queries, test.known, rng_ranking
                )
        del parts
        self._fitted = self._parts(graph)
        self._default = "random" if "random" in self.weights_ else "ranking"
        default = self.under(self._default)
        self.source_, self.target_ = default.source_, default.target_
        return self

    def under(self, protocol: str) -> Vectors:
        """The vectors with the weights learned for one protocol.

        Where the training graph has no validation pairs of its kind, those of ``random``.
        """
        PROTOCOLS[protocol]  # an unknown name is refused
        weights = self.weights_.get(protocol, self.weights_[self._default])
        return Vectors(self.name, *self._fitted.join(weights))

    def _parts(self, graph: DiGraph) -> Parts:
        seed = self.random_state
        k = self.n_components
        atp = ATP(k, purpose="links", random_state=seed).fit(graph)
        katz = HOPE(k, "katz", random_state=seed).fit(graph)
        nrp = NRP(k, random_state=seed).fit(graph)
        line = LINE(k, random_state=seed).fit(graph)
        blocks = [
            unit_scale(method.source_.astype(np.float32), method.target_.astype(np.float32))
            for method in (atp, katz, nrp, line)
        ]
        out, inn, level = (
            _standard(x)
            for x in (np.log1p(graph.out_degree), np.log1p(graph.in_degree), atp.levels_)
        )
        features = np.column_stack(
            [
                np.ones(graph.n_nodes),
                out,
                inn,
                level,
                out**2,
                inn**2,
                level**2,
                graph.out_degree == 0,
                graph.in_degree == 0,
            ]
        )
        return Parts(blocks, features.astype(np.float32), popularity=2)


def _standard(x: npt.NDArray[np.generic]) -> Float64Array:
    centred: Float64Array = x.astype(np.float64) - x.astype(np.float64).mean()
    spread = float(centred.std())
    return centred / spread if spread > 0 else centred
