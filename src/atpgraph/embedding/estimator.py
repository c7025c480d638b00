"""ATP: source and target vectors that keep direction and reachability."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from atpgraph.closure import ExactClosure, HeldClosure, hold_closure, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding import model_file, purposes
from atpgraph.embedding.growing import Growing
from atpgraph.embedding.job import Job
from atpgraph.embedding.ranking import pair_scores, top_by_product
from atpgraph.embedding.reachability import fit_paths
from atpgraph.errors import BudgetError, InputError
from atpgraph.factorization import Factorization, factorize, svdm
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)
from atpgraph.util.checks import whole_number
from atpgraph.util.memory import available_bytes, budget_bytes, human_bytes
from atpgraph.util.progress import stage
from atpgraph.util.progress_display import Shown
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from atpgraph.embedding.index import NeighborIndex

log = logging.getLogger(__name__)

Labels = Hashable | Sequence[Hashable] | AnyArray


class ATP(Growing):
    """Embed a directed graph so that paths, not only edges, can be read off the vectors.

    The four steps of ATP: break the cycles of the graph; find the level of every node of the
    acyclic graph; let M hold f(difference of levels) for every pair joined by a path; find vectors
    with ⟨s_i, t_j⟩ ≈ M_ij. Row i of S is the source vector of node i, row j of T the target vector
    of node j.

    What the vectors are for decides what becomes of the pairs without a path, which M leaves open:

    - ``purpose="reachability"`` keeps the paths of this graph. ⟨s_i, t_j⟩ is near f(difference of
      levels) where i reaches j, and below 0 where it does not, so that σ(⟨s_i, t_j⟩) > ½ means a
      path: a one-sided regression over sampled pairs, with vectors of any sign
      (:func:`~atpgraph.factorization.fit_pairs`, with sketches
      :func:`~atpgraph.factorization.fit_panels`).
    - ``purpose="links"`` generalises to edges that are not there: M ≈ S·Tᵀ with S, T ≥ 0, a little
      weight on the pairs without a path (:func:`~atpgraph.factorization.factorize`).
    - ``purpose="paper"`` is the paper's recipe: the same, over the reachable pairs alone.

    Parameters
    ----------
    n_components : int
        Length of the vectors. For reachability two of the components are biases, facing ones.
    purpose : {"reachability", "links", "paper"}
        What the vectors are for; decides every parameter that is "auto".
    kernel : {"log", "harmonic", "linear", "constant"} or callable
        f, the weight of a reachable pair by its difference of levels; a callable gets
        the array 1, 2, … of differences.
    method : str
        How to break cycles, see :func:`atpgraph.break_cycles`; "auto" is the paper's ``h-voting``
        up to a million edges on cycles, beyond that ``springs``, which is cheaper.
    closure : {"auto", "exact", "sketch"}
        How the paths are held: in a closure forest, exactly, or by sketches, a sample of the
        descendants and ancestors of every node (:class:`~atpgraph.closure.ReachSketch`), in memory
        that does not depend on how many paths there are. "auto" estimates the forest, and takes
        sketches if it does not fit the budget; for pairs also above 100,000 nodes.
    sketch_size : "auto" or int
        Descendants, and ancestors, that a sketch keeps for each node; "auto" is 64, for pairs
        32, less if that does not fit.
    solver : {"auto", "pairs", "nnls", "svd"}
        Regression over sampled pairs, non-negative factorisation, or the truncated singular value
        decomposition of M; "auto" is pairs for reachability, else nnls.
    zero_weight : "auto" or float in [0, 1]
        For nnls, the weight of a pair not joined by a path: 0 fits the reachable pairs only; 1 is
        plain non-negative matrix factorisation; "auto" is 0 for ``purpose="paper"``, else it lets
        all such pairs together weigh 2 % of what the reachable pairs weigh, whatever the density of
        the graph.
    regularization : "auto" or float
        Penalty on long vectors. For nnls, λ of λ (Σ |R(i)| ‖s_i‖² + Σ |R⁻¹(j)| ‖t_j‖²); "auto" is
        4 n_components over the mean |R(i)|, at most 0.3: the fewer pairs for each number to learn,
        the more. For pairs, λ of λ (‖s‖² + ‖t‖²) for each pair; "auto" is 0.0001.
    max_iter : "auto" or int
        Limit on the alternating iterations of nnls ("auto": 3), or on the rounds of pairs
        ("auto": 32, above 100,000 nodes fewer), in each of which every node draws up to 16 paths.
    tol : float
        For nnls, the relative fall of the objective below which they end; for pairs, the share of
        the first round's loss.
    c : float
        Offset of the log kernel, c + ln(e + Δ).
    n_jobs : int, optional
        Threads, by default all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of ties, of the first vectors and of sampled pairs.
    memory : str or number of bytes, optional
        Budget such as "4GB", by default half of what is free. A closure forest that does not fit
        gives way to sketches, or with ``closure="exact"`` is refused before it is built.
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    source_, target_ : arrays of shape (n, n_components)
        The vectors, in the order of `labels_`.
    fidelity_ : Fidelity
        How well the vectors keep the paths of the graph, measured on pairs that are hard to tell
        apart (:class:`~atpgraph.embedding.fidelity.Fidelity`).
    levels_ : int32 array
        Level of every node, from 1.
    labels_ : array
        Labels of the nodes.
    removed_edges_ : list of pairs of labels
        The edges that were removed to break cycles.
    objective_ : float64 array
        Objective after each iteration, or mean loss for a path in each round; empty for svd.
    n_iter_ : int
        Iterations done.
    timings_ : dict
        Seconds by stage.
    method_ : str
        The method that broke the cycles.
    solver_, zero_weight_, regularization_ : str, float, float
        The solver and the weights used.
    threshold_ : float
        The score above which :meth:`predict` says that there is a path: 0 for pairs, else the one
        that best tells pairs of this graph joined by a path from others.
    margin_ : float
        How far below 0 the scores of pairs without a path were put; 0 except for pairs.
    n_reachable_pairs_, n_extras_ : int
        Pairs joined by a path, with sketches an estimate, and how many of them are stored.
    closure_ : ClosureChoice
        How the paths were held, `kind` "exact" or "sketch", and the `reason`.

    Examples
    --------
    >>> atp = ATP(n_components=8, random_state=0)
    >>> edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b", "d"), ("d", "b"), ("a", "e")]
    >>> atp.fit(edges).removed_edges_
    [('d', 'b')]
    >>> atp.predict(["a", "d", "e"], ["d", "a", "d"]).tolist()
    [True, False, False]
    >>> atp.top_targets("c", 1)[0].tolist()
    ['d']

    References
    ----------
    Sun et al., "ATP: Directed Graph Embedding with Asymmetric Transitivity Preservation",
    AAAI 2019.
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        purpose: str = "reachability",
        kernel: str | Callable[[Float64Array], npt.ArrayLike] = "log",
        method: str = "auto",
        closure: str = "auto",
        sketch_size: int | Literal["auto"] = "auto",
        solver: str = "auto",
        zero_weight: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        c: float = 0.0,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        memory: str | float | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.purpose = purpose
        self.kernel = kernel
        self.method = method
        self.closure = closure
        self.sketch_size = sketch_size
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

    def fit(
        self,
        graph: Any,
        y: object = None,
        *,
        work: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Self:
        """Embed a graph.

        Parameters
        ----------
        graph : anything :func:`atpgraph.as_graph` takes
        y
            Not used.
        work : path, optional
            A folder for what is done so far. A fit that was killed goes on where it was if it is
            called again with the same folder, and gives the same vectors as one that was not.
        client : distributed.Client, optional
            A Dask cluster whose workers do the work; they and this process share the folder. The
            vectors are the same.
        """
        given = self._checked(graph)
        with (
            Shown() if self.verbose else contextlib.nullcontext(),
            Job.at(work, given, self.get_params(), client) as job,
        ):
            self._fit(given, job)
        return self

    def _fit(self, graph: DiGraph, job: Job) -> None:
        timings: dict[str, float] = {}
        memory = self._left_for_the_forests(graph.n_nodes)
        solver = purposes.check(self.get_params())
        with _timed("cycles", timings):
            removed, self.method_ = job.removed(
                lambda: break_cycles(graph, self.method, random_state=self.random_state)
            )
            dag = graph.without_edges(removed)
        with _timed("hierarchy", timings):
            level = levels(dag)
        with _timed("closure", timings):
            closure = job.closure(
                dag,
                level,
                memory,
                lambda: hold_closure(
                    dag, level, sketch_size=self.sketch_size, memory=memory, n_jobs=self.n_jobs,
                    **purposes.how_to_hold(self.closure, solver),
                ),
            )  # fmt: skip
        with _timed("factorization", timings):
            settings = purposes.settle(
                self.get_params(), graph.n_nodes, closure.n_pairs, closure.choice.kind
            )
            log.info("Fitting for %s: %s", self.purpose, settings)
            table = kernel_table(self.kernel, int(level.max(initial=1)), self.c)
            fit = self._factorize(settings, closure, level, table, job)
            if not (np.isfinite(fit.source).all() and np.isfinite(fit.target).all()):
                raise InputError(
                    "The vectors grew beyond all bounds with a regularization of "
                    f"{settings.regularization:g}; choose a smaller one."
                )
        self.graph_, self.removed_, self.levels_ = graph, removed, level
        self.source_, self.target_ = fit.source, fit.target
        self.objective_, self.n_iter_ = fit.objective, fit.n_iter
        self.solver_, self.margin_ = settings.solver, fit.margin
        self.zero_weight_, self.regularization_ = settings.zero_weight, settings.regularization
        self.n_reachable_pairs_, self.n_extras_ = closure.n_pairs, closure.n_stored
        self.closure_ = closure.choice
        self.kernel_table_ = table
        with _timed("fidelity", timings):
            self._judge(closure)
        self.timings_ = timings

    def _factorize(
        self,
        settings: purposes.Settings,
        closure: HeldClosure,
        level: Int32Array,
        table: Float64Array,
        job: Job,
    ) -> Factorization:
        k, seed = self.n_components, self.random_state
        exact = isinstance(closure, ExactClosure)
        if settings.solver == "pairs" and exact and job.spread is not None:
            return job.spread.pairs(table, settings.regularization, settings.max_iter)
        if settings.solver == "pairs":
            return fit_paths(
                closure, level, table, n_components=k, max_iter=settings.max_iter,
                regularization=settings.regularization, tol=self.tol, n_jobs=self.n_jobs,
                random_state=seed, loop=job.loop(), spread=job.spread,
            )  # fmt: skip
        if isinstance(closure, ExactClosure) and settings.solver == "svd":
            return svdm(*closure.sides, level, table, n_components=k, random_state=seed)
        rows, columns = closure.sides
        return factorize(
            rows, columns, level, table, n_components=k, zero_weight=settings.zero_weight,
            regularization=settings.regularization, max_iter=settings.max_iter, tol=self.tol,
            n_jobs=self.n_jobs, random_state=seed, loop=job.loop(),
            spread=job.spread,
        )  # fmt: skip

    def _left_for_the_forests(self, n: int) -> int:
        """The memory budget less what the vectors take: S, T and a copy of each."""
        budget = budget_bytes(self.memory)
        vectors = 4 * n * self.n_components * 4
        if self.memory is None and budget <= vectors < available_bytes():
            return 1  # nothing is left of the half that is ours: sketches, as small as they get
        if vectors >= budget:
            raise BudgetError(
                f"The vectors of {n:,} nodes at {self.n_components} components need "
                f"{human_bytes(vectors)}, and the budget is {human_bytes(budget)}; "
                "raise memory or lower n_components."
            )
        return budget - vectors

    @property
    def labels_(self) -> AnyArray:
        """Labels of the nodes, in the order of the vectors."""
        return self._fitted().labels

    @property
    def removed_edges_(self) -> list[tuple[Any, Any]]:
        """The edges that were removed to break cycles, as pairs of labels."""
        sources, targets = self._fitted().edge_labels(self.removed_)
        return list(zip(sources.tolist(), targets.tolist(), strict=True))

    def _pairs(self, u: Labels, v: Labels) -> tuple[Any, Any]:
        return self._fitted().pair_codes(u, v)

    def score_pairs(self, u: Labels, v: Labels) -> Float64Array:
        """⟨s_u, t_v⟩ for every pair of labels: how strongly a path u → v is indicated."""
        sources, targets = self._pairs(u, v)
        return pair_scores(self.source_, self.target_, sources, targets)

    def predict_proba(self, u: Labels, v: Labels) -> Float64Array:
        """σ(⟨s_u, t_v⟩) for every pair; above a half where a path is indicated.

        Vectors that are not negative (nnls) cannot score below a half.
        """
        return np.asarray(expit(self.score_pairs(u, v)))

    def predict(self, u: Labels, v: Labels, threshold: float | None = None) -> BoolArray:
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

    def top_targets(
        self, u: Labels | None = None, k: int = 10, *, vector: npt.ArrayLike | None = None
    ) -> tuple[AnyArray, FloatArray]:
        """The k nodes that each node of `u` most strongly leads to, and the scores.

        Exact. One node gives arrays of k entries, several give a row each. A source vector, such
        as :meth:`fold_in` gives, or a row of them each, can stand for a node.
        """
        return self._top(u, k, vector, "source_", "target_")

    def top_sources(
        self, v: Labels | None = None, k: int = 10, *, vector: npt.ArrayLike | None = None
    ) -> tuple[AnyArray, FloatArray]:
        """The k nodes that most strongly lead to each node of `v`, or to a target vector."""
        return self._top(v, k, vector, "target_", "source_")

    def index(self, direction: str = "targets") -> NeighborIndex:
        """Build an approximate index, for many queries to a model of many nodes.

        :meth:`top_targets` compares a node with all others, exactly; the index finds nearly the
        same in a fraction of the time, and measures its recall on a sample (``recall_``). If the
        recall is below 0.9, it searches exactly and says so. Needs Faiss, the extra ``ann``.

        Parameters
        ----------
        direction : {"targets", "sources"}
            What to look for: what nodes lead to, or what leads to them.
        """
        from atpgraph.embedding.index import NeighborIndex

        self._fitted()
        return NeighborIndex(self, direction)

    def _top(
        self, nodes: Labels | None, k: int, vector: npt.ArrayLike | None, near: str, far: str
    ) -> tuple[AnyArray, FloatArray]:
        whole_number("k", k)
        graph, vectors = self._fitted(), getattr(self, far)
        if (nodes is None) == (vector is None):
            raise InputError("Name nodes, or give a vector; not both.")
        if nodes is not None:
            codes: Int64Array | None = graph.codes(nodes).astype(np.int64)
            queries, several = getattr(self, near)[codes], isinstance(nodes, (list, np.ndarray))
        else:
            codes, queries = None, np.asarray(vector, dtype=vectors.dtype)
            several = queries.ndim == 2
            if queries.ndim not in (1, 2) or queries.shape[-1] != vectors.shape[1]:
                raise InputError(
                    f"The vector has the shape {queries.shape}; those of the model have "
                    f"{vectors.shape[1]} components."
                )
        best, scores = top_by_product(np.atleast_2d(queries), vectors, k, skip=codes)
        labels = graph.labels[best]
        return (labels, scores) if several else (labels[0], scores[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one ``.npz`` file: no pickle, safe to load from a stranger."""
        self._fitted()
        model_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote."""
        return model_file.load(cls, path)


@contextlib.contextmanager
def _timed(name: str, timings: dict[str, float]) -> Iterator[None]:
    started = time.perf_counter()
    with stage(name):
        yield
    timings[name] = time.perf_counter() - started
