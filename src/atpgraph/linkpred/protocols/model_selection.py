"""Link prediction for scikit-learn's tools: a splitter of edges and a scorer.

With the two, ``GridSearchCV`` chooses the parameters of an embedding by how well it predicts edges
that were held out. The rows of ``X`` are the edges.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph, table_columns
from atpgraph.graph.digraph import DiGraph, pair_array
from atpgraph.linkpred.protocols.judging import PROTOCOLS, Evaluation, RankingTest
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.linkpred.protocols.splits import removable_edges
from atpgraph.util.arrays import AnyArray, FloatArray, Int64Array, IntArray
from atpgraph.util.checks import Registry
from atpgraph.util.random import RandomState, generator

_QUERIES = 300  # of `ranking`; each is scored against all nodes


class EdgeSplit:
    """Hold out edges repeatedly without disconnecting a node: for ``cv=``.

    Each split takes a random `fraction` of the edges out for testing, as :func:`make_split` does,
    so that every node of a test edge is known. An edge listed several times is on one side only.

    Examples
    --------
    >>> edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 3), (2, 4), (0, 3), (1, 4), (0, 4)]
    >>> for train, test in EdgeSplit(2, fraction=0.2, random_state=0).split(edges):
    ...     print(len(train), len(test))
    8 2
    8 2
    """

    def __init__(
        self, n_splits: int = 3, *, fraction: float = 0.1, random_state: RandomState = 0
    ) -> None:
        self.n_splits = n_splits
        self.fraction = fraction
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return how many splits there are."""
        return self.n_splits

    def split(
        self, X: Any, y: object = None, groups: object = None
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield row indices of the training and of the test edges, for each split."""
        if not 0 < self.fraction < 1:
            raise InputError(f"fraction is {self.fraction}; it must be between 0 and 1.")
        listed, graph = _rows(X), as_graph(X)
        codes = graph.codes(listed.reshape(-1)).reshape(-1, 2)
        row_edge = graph.find_edges(codes[:, 0], codes[:, 1])
        wanted = round(self.fraction * (graph.n_edges - graph.n_self_loops))
        for rng in generator(self.random_state).spawn(self.n_splits):
            out = np.zeros(graph.n_edges, dtype=np.bool_)
            out[removable_edges(graph, wanted, rng)] = True
            if not out.any():
                raise InputError(
                    "No edge can be held out: the graph is a forest or too small, so every removal "
                    "would disconnect it."
                )
            test = out[row_edge]
            yield np.flatnonzero(~test), np.flatnonzero(test)


class LinkScorer:
    """Score how well an estimator separates held-out edges from other pairs, for ``scoring=``.

    Parameters
    ----------
    protocol : {"random", "paper", "reversed", "dirlinkbench", "ranking"}
        What the negatives are, see :func:`make_split`. Both the training and the test edges of the
        split count as edges. ``ranking`` ranks the targets of at most 300 test edges.
    metric : str, optional
        For pairs, ``auc`` (the default), ``ap`` (average precision), ``mrr``, ``hits@100`` and so
        on; for ``ranking``, ``mrr`` (the default), ``hits@1``, ``hits@3`` and so on.
    random_state : int or None
        Seed of the negatives; an int gives all estimators of a search the same ones.

    Examples
    --------
    >>> from atpgraph import ATP, noisy_hierarchy
    >>> edges = list(noisy_hierarchy(60, 300, 10, random_state=0).graph.edges())
    >>> train, test = next(EdgeSplit(1, random_state=0).split(edges))
    >>> model = ATP(n_components=8).fit([edges[row] for row in train])
    >>> LinkScorer("reversed")(model, [edges[row] for row in test]) > 0.8
    True
    """

    def __init__(
        self, protocol: str = "random", *, metric: str | None = None, random_state: RandomState = 0
    ) -> None:
        self.protocol = protocol
        self.metric = metric
        self.random_state = random_state

    def __call__(self, estimator: Any, X: Any, y: object = None) -> float:
        """Return the metric of a fitted estimator on test edges; greater is better."""
        protocol = PROTOCOLS[self.protocol]
        if hasattr(estimator, "steps"):  # a pipeline: its last step is the embedding
            before = estimator[:-1]
            X = before.transform(X) if len(before.steps) else X
            estimator = estimator[-1]
        train: DiGraph = estimator.graph_
        test = as_graph(X)
        known = train.codes(test.labels).astype(np.int64)
        edges = Pairs(known[test.sources], known[test.targets])
        rng = generator(self.random_state)
        judged = protocol.make(train.merged(test), edges, rng, _QUERIES)
        if judged is None:
            raise InputError(
                f"The protocol {self.protocol!r} has no pairs to compare on this graph; "
                "use another one."
            )
        found = Evaluation()
        judged.judge(_ByLabel(estimator, train.labels), self.protocol, found)
        metric = self.metric or ("mrr" if isinstance(judged, RankingTest) else "auc")
        return Registry("metric", found.metrics[self.protocol])[metric]


class _ByLabel:
    """An estimator that scores pairs of labels, as a scorer of node indices."""

    name = "the estimator"

    def __init__(self, estimator: Any, labels: AnyArray) -> None:
        self._estimator, self._labels = estimator, labels

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        return np.asarray(self._estimator.score_pairs(self._labels[u], self._labels[v]))

    def score_from(self, u: IntArray) -> FloatArray:
        everyone = np.arange(len(self._labels))
        return np.stack([self.score(np.full(len(everyone), node), everyone) for node in u])


def _rows(X: Any) -> AnyArray:
    """Return edges as an array of pairs, one per row of `X`."""
    columns = table_columns(X)
    if columns is not None:
        pairs = np.empty((len(columns[0]), 2), dtype=object)
        pairs[:, 0], pairs[:, 1] = columns
        return pairs
    if isinstance(X, (str, os.PathLike, DiGraph)) or not hasattr(X, "__getitem__"):
        raise InputError(
            f"A {type(X).__name__} has no rows to split; give a list, array or table of edges."
        )
    return pair_array(X)
