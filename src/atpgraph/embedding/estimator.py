"""ATP: source and target vectors that keep direction and reachability."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from atpgraph._memory import budget_bytes, human_bytes
from atpgraph._progress import stage
from atpgraph._random import RandomState
from atpgraph._show import shown
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding import model_file
from atpgraph.embedding.base import Estimator
from atpgraph.embedding.fold import FoldIn
from atpgraph.embedding.ranking import pair_scores, top_by_product
from atpgraph.embedding.threshold import separating_score
from atpgraph.errors import BudgetError, InputError
from atpgraph.factorization import factorize, svdm
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels

Floats = npt.NDArray[np.floating[Any]]
# Chosen on validation splits, see docs/defaults.md.
ZERO_SHARE = 0.02
PENALTY = 4.0
MAX_PENALTY = 0.3

Labels = Hashable | Sequence[Hashable] | npt.NDArray[Any]


class ATP(Estimator):
    """Embed a directed graph so that paths, not only edges, can be read off the vectors.

    The four steps of ATP: break the cycles of the graph; rank the nodes of the acyclic graph; let
    M hold f(rank difference) for every pair joined by a path; factorise M ≈ S·Tᵀ with S, T ≥ 0.
    Row i of S is the source vector of node i, row j of T the target vector of node j, and
    ⟨s_i, t_j⟩ is large where i reaches j and smaller where it does not; `zero_weight` decides how
    near to zero.

    Parameters
    ----------
    n_components : int
        Length of the vectors.
    kernel : {"log", "harmonic", "linear", "constant"} or callable
        f, the weight of a reachable pair by its rank difference; a callable gets the array
        1, 2, … of differences.
    method : str
        How to break cycles, see :func:`atpgraph.break_cycles`.
    solver : {"nnls", "svd"}
        Non-negative factorisation, or the truncated singular value decomposition of M.
    zero_weight : "auto" or float in [0, 1]
        Weight of a pair not joined by a path: 0 fits the reachable pairs only, as the paper does;
        1 is plain non-negative matrix factorisation; "auto" lets all such pairs together weigh 2 %
        of what the reachable pairs weigh, whatever the density of the graph.
    regularization : "auto" or float
        λ of the penalty λ (Σ |R(i)| ‖s_i‖² + Σ |R⁻¹(j)| ‖t_j‖²); "auto" is 4 n_components over the
        mean |R(i)|, at most 0.3: the fewer pairs for each number to learn, the more.
    max_iter : int
        Alternating iterations at the most.
    tol : float
        The relative fall of the objective below which they end.
    c : float
        Offset of the log kernel, c + ln(e + Δ).
    n_jobs : int, optional
        Threads, by default all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of ties and of the first vectors.
    memory : str or number of bytes, optional
        Budget such as "4GB", by default half of what is free. A graph whose closure forest does
        not fit is refused before the work starts.
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    source_, target_ : arrays of shape (n, n_components)
        The vectors, in the order of `labels_`.
    levels_ : int32 array
        Rank of every node, from 1.
    labels_ : array
        Labels of the nodes.
    removed_edges_ : list of pairs of labels
        The edges that were removed to break cycles.
    objective_ : float64 array
        Objective after each iteration; empty for ``solver="svd"``.
    n_iter_ : int
        Iterations done.
    timings_ : dict
        Seconds by stage.
    zero_weight_, regularization_ : float
        The weights used.
    threshold_ : float
        The score that best tells pairs of this graph joined by a path from others, and above which
        :meth:`predict` says there is one.
    n_reachable_pairs_, n_extras_ : int
        Pairs joined by a path, and how many of them the two closure forests store.

    Examples
    --------
    >>> atp = ATP(n_components=4, random_state=0)
    >>> edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("d", "b")]
    >>> atp.fit(edges).removed_edges_
    [('d', 'b')]
    >>> there, back = atp.score_pairs(["a", "d"], ["d", "a"])
    >>> bool(there > 1.0 > 0.1 > back)
    True
    >>> atp.top_targets("c", 1)[0].tolist()
    ['d']

    References
    ----------
    Sun et al., "ATP: Directed Graph Embedding with Asymmetric Transitivity Preservation",
    AAAI 2019.
    """

    source_: Floats
    target_: Floats
    levels_: npt.NDArray[np.int32]
    objective_: npt.NDArray[np.float64]
    n_iter_: int
    timings_: dict[str, float]
    zero_weight_: float
    regularization_: float
    threshold_: float
    n_reachable_pairs_: int
    n_extras_: int
    graph_: DiGraph
    removed_: npt.NDArray[np.int64]
    kernel_table_: npt.NDArray[np.float64]

    def __init__(
        self,
        n_components: int = 64,
        *,
        kernel: str | Callable[[npt.NDArray[np.float64]], npt.ArrayLike] = "log",
        method: str = "h-voting",
        solver: str = "nnls",
        zero_weight: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        max_iter: int = 3,
        tol: float = 1e-4,
        c: float = 0.0,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        memory: str | float | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.method = method
        self.solver = solver
        self.zero_weight = zero_weight
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.c = c
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory = memory
        self.verbose = verbose

    def fit(self, graph: Any, y: object = None) -> Self:
        """Embed a graph: anything :func:`atpgraph.as_graph` takes. `y` is not used."""
        if self.solver not in ("nnls", "svd"):
            raise InputError(f"solver is {self.solver!r}; it must be 'nnls' or 'svd'.")
        with shown() if self.verbose else contextlib.nullcontext():
            self._fit(as_graph(graph))
        return self

    def _fit(self, graph: DiGraph) -> None:
        timings: dict[str, float] = {}
        memory = self._left_for_the_forests(graph.n_nodes)
        with _timed("cycles", timings):
            broken = break_cycles(graph, self.method, random_state=self.random_state)
        with _timed("hierarchy", timings):
            rank = levels(broken.dag)
        with _timed("closure", timings):
            rows, columns = closure_forests(broken.dag, memory=memory, n_jobs=self.n_jobs)
        with _timed("factorization", timings):
            zero_weight, regularization = self._weights(graph.n_nodes, rows.n_pairs)
            table = kernel_table(self.kernel, int(rank.max(initial=1)), self.c)  # type: ignore[arg-type]
            if self.solver == "svd":
                fit = svdm(
                    rows,
                    columns,
                    rank,
                    table,
                    n_components=self.n_components,
                    random_state=self.random_state,
                )
            else:
                fit = factorize(
                    rows,
                    columns,
                    rank,
                    table,
                    n_components=self.n_components,
                    zero_weight=zero_weight,
                    regularization=regularization,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    n_jobs=self.n_jobs,
                    random_state=self.random_state,
                )
        self.graph_, self.removed_, self.levels_ = graph, broken.removed, rank
        self.source_, self.target_ = fit.source, fit.target
        self.objective_, self.n_iter_ = fit.objective, fit.n_iter
        self.zero_weight_, self.regularization_ = zero_weight, regularization
        self.n_reachable_pairs_ = rows.n_pairs
        self.n_extras_ = rows.n_extras + columns.n_extras
        self.kernel_table_ = table
        self.threshold_ = separating_score(broken.dag, fit.source, fit.target)
        self.timings_ = timings

    def _weights(self, n: int, n_pairs: int) -> tuple[float, float]:
        """Weight of a zero and λ, with "auto" resolved."""
        weight, penalty = self.zero_weight, self.regularization
        if weight == "auto":
            zeros = n * (n - 1) - n_pairs
            weight = min(ZERO_SHARE * n_pairs / zeros, 1.0) if zeros > 0 else 0.0
        if penalty == "auto":
            penalty = min(PENALTY * self.n_components * n / max(n_pairs, 1), MAX_PENALTY)
        return float(weight), float(penalty)

    def _left_for_the_forests(self, n: int) -> int:
        """The memory budget less what the vectors take: S, T and a copy of each."""
        budget = budget_bytes(self.memory)
        vectors = 4 * n * self.n_components * 4
        if vectors >= budget:
            raise BudgetError(
                f"The vectors of {n:,} nodes at {self.n_components} components need "
                f"{human_bytes(vectors)}, and the budget is {human_bytes(budget)}; "
                "raise memory or lower n_components."
            )
        return budget - vectors

    @property
    def labels_(self) -> npt.NDArray[Any]:
        """Labels of the nodes, in the order of the vectors."""
        return self._fitted().labels

    @property
    def removed_edges_(self) -> list[tuple[Any, Any]]:
        """The edges that were removed to break cycles, as pairs of labels."""
        sources, targets = self._fitted().edge_labels(self.removed_)
        return list(zip(sources.tolist(), targets.tolist(), strict=True))

    @property
    def dag_(self) -> DiGraph:
        """The graph without the removed edges."""
        keep = np.ones(self._fitted().n_edges, dtype=np.bool_)
        keep[self.removed_] = False
        return self.graph_.keep_edges(keep)

    def _fitted(self) -> DiGraph:
        if not hasattr(self, "graph_"):
            raise InputError("This ATP is not fitted yet; call fit(graph) first.")
        return self.graph_

    def _pairs(self, u: Labels, v: Labels) -> tuple[Any, Any]:
        graph = self._fitted()
        sources, targets = np.broadcast_arrays(graph.codes(u), graph.codes(v))
        return sources, targets

    def score_pairs(self, u: Labels, v: Labels) -> npt.NDArray[np.float64]:
        """⟨s_u, t_v⟩ for every pair of labels: how strongly a path u → v is indicated."""
        sources, targets = self._pairs(u, v)
        return pair_scores(self.source_, self.target_, sources, targets)

    def predict_proba(self, u: Labels, v: Labels) -> npt.NDArray[np.float64]:
        """σ(⟨s_u, t_v⟩) for every pair; a half where nothing indicates a path."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.score_pairs(u, v))))

    def predict(
        self, u: Labels, v: Labels, threshold: float | None = None
    ) -> npt.NDArray[np.bool_]:
        """Whether a path is indicated, for every pair.

        Parameters
        ----------
        u, v : labels
        threshold : float in [0.5, 1), optional
            What σ(⟨s_u, t_v⟩) has to exceed; by default that of a score of `threshold_`, which was
            found when the model was fitted.
        """
        if threshold is None:
            return self.score_pairs(u, v) > self.threshold_
        if not 0.5 <= threshold < 1.0:
            raise InputError(f"threshold is {threshold}; it must be in [0.5, 1).")
        return self.predict_proba(u, v) > threshold

    def top_targets(self, u: Labels, k: int = 10) -> tuple[npt.NDArray[Any], Floats]:
        """The k nodes that each node of `u` most strongly leads to, and the scores.

        Exact. One node gives arrays of k entries, several give a row each.
        """
        return self._top(u, k, "source_", "target_")

    def top_sources(self, v: Labels, k: int = 10) -> tuple[npt.NDArray[Any], Floats]:
        """The k nodes that most strongly lead to each node of `v`, and the scores."""
        return self._top(v, k, "target_", "source_")

    def _top(self, nodes: Labels, k: int, near: str, far: str) -> tuple[npt.NDArray[Any], Floats]:
        if k < 1:
            raise InputError(f"k is {k}; it must be at least 1.")
        codes = self._fitted().codes(nodes).astype(np.int64)
        queries, vectors = getattr(self, near)[codes], getattr(self, far)
        found, scores = top_by_product(queries, vectors, k, skip=codes)
        labels = self.labels_[found]
        if isinstance(nodes, (list, np.ndarray)):
            return labels, scores
        return labels[0], scores[0]

    def fold_in(
        self,
        out_edges: Sequence[Hashable] | npt.NDArray[Any] = (),
        in_edges: Sequence[Hashable] | npt.NDArray[Any] = (),
    ) -> tuple[Floats, Floats]:
        """Source and target vector of a node that was not there at training.

        One non-negative least-squares solve for each, all other vectors kept: what a refit would
        give this node if nothing else moved.

        Parameters
        ----------
        out_edges, in_edges : labels
            Nodes of the graph that the new node has edges to, and from. An edge that would close a
            cycle does not count: what leads to the new node is not taken to be reachable from it.

        Examples
        --------
        >>> atp = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> source, target = atp.fold_in(in_edges=["c"])
        >>> bool(atp.source_[0] @ target > 1.0)
        True
        """
        if self.solver != "nnls":
            raise InputError(
                "fold_in needs the solver 'nnls'; singular vectors have no such solve."
            )
        graph = self._fitted()
        folder = FoldIn.of(self)
        return folder.vectors(graph.codes(list(out_edges)), graph.codes(list(in_edges)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one ``.npz`` file: no pickle, safe to load from a stranger."""
        self._fitted()
        model_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ATP:
        """Read a model that :meth:`save` wrote."""
        return model_file.load(cls, path)


@contextlib.contextmanager
def _timed(name: str, timings: dict[str, float]) -> Iterator[None]:
    started = time.perf_counter()
    with stage(name):
        yield
    timings[name] = time.perf_counter() - started
