"""ATP: source and target vectors that preserve direction and reachability."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from atpgraph.closure import ClosureForest, Paths, closure_forests, collect_paths, kernel_table
from atpgraph.closure.reachability import Labels, Reachability
from atpgraph.cycles import break_cycles
from atpgraph.embedding import files
from atpgraph.embedding.fidelity import Calibration, Evaluation, Fidelity, best_zero, evaluate
from atpgraph.embedding.growth import FoldIn, grown
from atpgraph.embedding.path_sample import PathSample
from atpgraph.embedding.ranking import (
    ORDERS,
    NeighborIndex,
    first_reached,
    listed,
    pair_scores,
    ranked,
    view_of,
)
from atpgraph.embedding.settings import Estimator, checked, settle, without_removed
from atpgraph.errors import BudgetError, InputError
from atpgraph.factorization import Descent, Factorization, Options, factorize, fit_panels
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array, FloatArray, Int64Array
from atpgraph.util.checkpoints import Loop
from atpgraph.util.checks import unknown_name, whole_number
from atpgraph.util.frames import KINDS, frame, html_table, ranking_frame
from atpgraph.util.progress import progress_display, stage
from atpgraph.util.random import RandomState
from atpgraph.util.threads import thread_count

if TYPE_CHECKING:
    from atpgraph.embedding.spread import Run

log = logging.getLogger(__name__)

_ENOUGH = 0.02  # mean loss per path, which trees reach in a few rounds
# Larger graphs are evaluated on fewer rows, since each row is compared with all nodes. They get two
# rounds, which would miss many edges if the rows did not draw more edges and fewer far paths.
_MANY_NODES = 500_000
_FEW_ROUNDS = {"draws": 8, "edges": 3}
_HALF = 0.01, 65504.0  # largest components between which half precision is enough
_CANDIDATES = 64  # checked for each node that is asked for, nearest first


class ATP(Estimator):
    """Embed a directed graph so that paths, not only edges, can be read off the vectors.

    The steps: break the cycles of the graph; compute the level of every node of the acyclic graph;
    collect its paths; find vectors that score paths above non-paths; evaluate them. The score of a
    pair is ⟨s_u, t_v⟩, with s_u the source vector of u and t_v the target vector of v.

    - ``purpose="reachability"`` preserves the paths of this graph, at any size. ⟨s_u, t_v⟩ is near
      f(difference of levels) if u reaches v, and below 0 otherwise
      (:func:`~atpgraph.factorization.fit_panels`).
    - ``purpose="paper"`` is the method of the paper: M ≈ S·Tᵀ with S, T ≥ 0 over the reachable
      pairs, whose entries in M are f(difference of levels). All paths are stored exactly, so the
      graph has to be small enough (:func:`~atpgraph.factorization.factorize`). With
      ``zero_weight="auto"``, the vectors are suitable for link prediction.

    Parameters
    ----------
    n_components : int
        Length of the vectors. For reachability, two components of each vector are a bias and a 1.
    purpose : {"reachability", "paper"}
        What the vectors are for.
    method : str
        How to break cycles, see :func:`atpgraph.break_cycles`; "auto" is ``sift`` up to 300,000
        edges on cycles and the cheaper ``springs`` beyond; for the paper's method, ``h-voting``.
    max_iter : "auto" or int
        Rounds of learning, in each of which every node draws up to 16 paths ("auto": 32, fewer for
        more than 62,500 nodes or where little is left to learn); for the paper's method,
        iterations ("auto": 3).
    random_state : int, Generator or None
        Seed for ties, initial vectors and sampled pairs.
    kernel : {"log", "harmonic", "linear", "constant"} or callable
        f, the score of a path by its difference of levels; a callable gets the array 1, 2, … of
        differences.
    zero_weight : float in [0, 1] or "auto"
        For the paper's method, the weight of a pair without a path: 0 fits the reachable pairs
        only; 1 is plain non-negative matrix factorization; "auto" gives all pairs without a path
        together 2% of the weight of the reachable pairs.
    regularization : "auto" or float
        Penalty on long vectors, λ (‖s‖² + ‖t‖²) for each pair ("auto": 0.0001). For the paper's
        method, λ (Σ |R(i)| ‖s_i‖² + Σ |R⁻¹(j)| ‖t_j‖²); "auto" is 4 n_components over the mean
        |R(i)|, at most 0.3.
    n_jobs : int, optional
        Threads, by default all cores. The result does not depend on it.
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    source_, target_ : arrays of shape (n, n_components)
        The vectors, in the order of `labels_`: float16 for reachability, float32 for the paper's
        method.
    levels_ : int32 array
        Level of every node, from 1.
    objective_ : float64 array
        Mean loss per path in each round, or objective after each iteration.
    n_iter_ : int
        Rounds or iterations done.
    timings_ : dict
        Seconds by stage.
    method_ : str
        The method that broke the cycles.
    settings_ : Settings
        Purpose, weights and iterations, with every "auto" resolved.
    margin_ : float
        How far below 0 the scores of pairs without a path were pushed; 0 for the paper's method.
    zero_ : float
        By how much all scores were lowered at the end, so that fewer pairs without a path score
        above 0, at the price of a few paths that score below it.
    n_reachable_pairs_ : int
        Number of pairs joined by a path; an estimate for reachability.

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

    source_: FloatArray
    target_: FloatArray
    timings_: dict[str, float]
    _evaluation: Evaluation | Paths  # paths: not evaluated before somebody asks for the result

    def __init__(
        self,
        n_components: int = 128,
        *,
        purpose: str = "reachability",
        method: str = "auto",
        max_iter: int | Literal["auto"] = "auto",
        random_state: RandomState = 0,
        kernel: str | Callable[[Float64Array], npt.ArrayLike] = "log",
        zero_weight: float | Literal["auto"] = 0.0,
        regularization: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
        **removed: Any,
    ) -> None:
        self.n_components = n_components
        self.purpose = purpose
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state
        self.kernel = kernel
        self.zero_weight = zero_weight
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.verbose = verbose
        if removed:
            self.set_params(**without_removed(removed, self.get_params()))

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
            Ignored.
        work : path, optional
            A folder for checkpoints. Call a killed fit again with the same folder to resume it; the
            vectors are the same as without the interruption.
        client : distributed.Client, optional
            A Dask cluster whose workers solve for the vectors; they and this process share the
            folder. The result is the same.
        """
        params = self.get_params()
        checked(params)
        thread_count(self.n_jobs)
        given = as_graph(graph)
        if given.weights is not None:
            log.warning("The embedding ignores edge weights.")
        with contextlib.ExitStack() as opened:
            if self.verbose:
                opened.enter_context(progress_display())
            run = None
            if work is not None or client is not None:
                from atpgraph.embedding.spread import open_run

                run = opened.enter_context(open_run(work, client, given, params))
            self._fit(given, run)
        return self

    def _fit(self, graph: DiGraph, run: Run | None) -> None:
        self.timings_ = {}
        with self._timed("cycles"):
            work = partial(self._break_cycles, graph)
            parts, facts = work() if run is None else run.folder.stage("cycles", work)
            removed, self.method_ = parts["removed"], str(facts["method"])
            dag = graph.without_edges(removed)
        with self._timed("hierarchy"):
            level = levels(dag)
            table = kernel_table(self.kernel, int(level.max(initial=1)))
        with self._timed("paths"):
            paths = collect_paths(dag, level, self.n_jobs)
        with self._timed("factorization"):
            fit = self._solve(paths, table, run)
        self.graph_, self.removed_, self.levels_ = graph, removed, level
        self.kernel_table_ = table
        self.objective_, self.n_iter_, self.margin_ = fit.objective, fit.n_iter, fit.margin
        vectors = [fit.source, fit.target]
        del fit  # its vectors are twice as large as those that are kept
        self._keep(vectors)
        with self._timed("fidelity"):
            self._measure(paths, place_zero=True)

    def _break_cycles(self, graph: DiGraph) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the edges whose removal breaks the cycles, and the method that chose them."""
        as_published = self.method == "auto" and self.purpose != "reachability"
        method = "h-voting" if as_published else self.method
        broken = break_cycles(graph, method, random_state=self.random_state)
        return {"removed": broken.removed}, {"method": broken.method}

    def _solve(self, paths: Paths, table: Float64Array, run: Run | None) -> Factorization:
        """Learn vectors from sampled paths; for the paper's method, factorize M over all paths."""
        n = paths.dag.n_nodes
        learned = self.purpose == "reachability"
        forests = None if learned else self._forests(paths)
        self.n_reachable_pairs_ = paths.n_pairs if forests is None else forests[0].n_pairs
        self.settings_ = settle(self.get_params(), n, self.n_reachable_pairs_)
        log.info("%s", self.settings_)
        options = Options(
            n_components=self.n_components, regularization=self.settings_.regularization,
            max_iter=self.settings_.max_iter, n_jobs=self.n_jobs, random_state=self.random_state,
            loop=None if run is None else Loop(run.folder, "vectors"),
        )  # fmt: skip
        if forests is not None:
            weight = self.settings_.zero_weight
            return factorize(forests, paths.levels, table, options, zero_weight=weight)
        drawn = _FEW_ROUNDS if n > _MANY_NODES else {}
        descent = Descent(enough=_ENOUGH if self.max_iter == "auto" else 0.0, **drawn)
        rows = None if run is None else run.rows
        return fit_panels(paths, table, options, descent=descent, run=rows)

    def _forests(self, paths: Paths) -> tuple[ClosureForest, ClosureForest]:
        """Return all paths, from both ends."""
        try:
            return closure_forests(paths.dag, paths.levels, n_jobs=self.n_jobs)
        except BudgetError as error:
            raise BudgetError(
                f"{str(error).partition(';')[0]}; the default, purpose='reachability', needs no "
                "list of all paths."
            ) from None

    def _keep(self, vectors: list[FloatArray]) -> None:
        """Store the vectors, those of the learned solver in half precision; empty the list."""
        bounds = [(x.max(axis=0, initial=0.0), x.min(axis=0, initial=0.0)) for x in vectors]
        largest = np.array([np.maximum(high, -low) for high, low in bounds])
        highest = largest.max()
        if not np.isfinite(highest):
            raise InputError(
                "The vectors diverged with a regularization of "
                f"{self.settings_.regularization:g}; choose a smaller one."
            )
        # The last two components are biases and ones, which say nothing of the size of the others.
        free = largest[:, : max(self.n_components - 2, 1)].max()
        fits = _HALF[0] <= free and highest <= _HALF[1]
        kind: Any = np.float16 if self._is_learned and fits else np.float32
        self.source_ = vectors.pop(0).astype(kind, copy=False)  # freed before the next one
        self.target_ = vectors.pop(0).astype(kind, copy=False)

    def _lower(self, zero: float) -> None:
        """Lower all scores by the bias of the sources; without biases, `zero` is 0."""
        self.zero_ = zero
        if zero:
            self.source_[:, -2] -= zero

    def _measure(self, paths: Paths, *, place_zero: bool = False) -> Evaluation:
        """Evaluate the vectors, after placing the zero of their scores if requested."""
        effort = 1.0 if paths.dag.n_nodes <= _MANY_NODES else 0.5
        sample = PathSample.of(paths, effort=effort, n_jobs=self.n_jobs)
        if place_zero:
            may_move = self._is_learned and self.source_.shape[1] >= 3
            self._lower(best_zero(sample, self.source_, self.target_) if may_move else 0.0)
        # Vectors of the paper's method are not negative, so no score means "no path" by itself.
        cut = 0.0 if self._is_learned else None
        self._evaluation = found = evaluate(sample, self.source_, self.target_, cut)
        log.info("%s", found.fidelity)
        if self._is_learned and found.fidelity is not None and found.fidelity.is_poor:
            log.warning("%s", found.fidelity.advice())
        return found

    def _evaluated(self) -> Evaluation:
        """Return the evaluation; for a grown model it is computed on first use."""
        if isinstance(self._evaluation, Paths):
            return self._measure(self._evaluation)
        return self._evaluation

    @property
    def fidelity_(self) -> Fidelity | None:
        """How well the vectors keep the paths of the graph; see
        :class:`~atpgraph.embedding.fidelity.Fidelity`.
        """
        return self._evaluated().fidelity

    @property
    def threshold_(self) -> float:
        """The score above which :meth:`predict` predicts a path.

        It has the best F1 over all pairs of the graph. A threshold of 0 would find more of the
        edges, but also more pairs without a path.
        """
        return self._evaluated().threshold

    @property
    def calibration_(self) -> Calibration | None:
        """The curve that turns scores into probabilities; None for models of earlier versions."""
        return self._evaluated().calibration

    @property
    def _is_learned(self) -> bool:
        return self.settings_.purpose == "reachability"

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        with stage(name):
            yield
        self.timings_[name] = time.perf_counter() - started

    def fold_in(
        self,
        out_edges: Labels = (),
        in_edges: Labels = (),
    ) -> tuple[FloatArray, FloatArray]:
        """Return the source and target vector of a node that is not in the graph.

        Each vector takes one solve with all others fixed, as if a refit moved only this node.
        :meth:`add_edges` takes many nodes at once, with edges among them.

        Parameters
        ----------
        out_edges, in_edges : labels
            Nodes of the graph that the new node has edges to, and from. Edges that would close a
            cycle are ignored: nodes that lead to the new node do not count as reachable from it.

        Examples
        --------
        >>> atp = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> source, target = atp.fold_in(in_edges=["c"])
        >>> bool(atp.source_[0] @ target > 1.0)
        True
        """
        graph = self._fitted()
        out, into = (graph.codes(side) for side in (out_edges, in_edges))
        folding: FoldIn = self._kept("_folding", self.source_, lambda: FoldIn(self))
        return folding.vectors(out, into)

    def add_edges(
        self, edges: Any, nodes: Iterable[Hashable] = (), *, inplace: bool = False
    ) -> Self:
        """Return a model with these edges and nodes added.

        Cycles that the new edges close are broken by leaving out new edges. Vectors of new nodes
        are learned first, then those of all nodes with new descendants or ancestors, in a few
        rounds; the others keep theirs. Parameters stay as fitted. Fidelity, threshold and
        calibration are measured on first use.

        Parameters
        ----------
        edges : anything :func:`atpgraph.as_graph` takes
            Edges among known nodes, new ones, or both.
        nodes : labels
            Nodes to add even if they have no edges.
        inplace : bool
            Change this model instead of a copy.

        Examples
        --------
        >>> old = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> new = old.add_edges([("d", "e"), ("e", "f"), ("f", "a")])
        >>> new.removed_edges_, new.levels_.tolist(), len(old.labels_)
        ([('f', 'a')], [1, 2, 3, 4, 5, 6], 4)
        >>> there, back = new.score_pairs(["a", "f"], ["f", "a"])
        >>> bool(there > 1.0 > back)
        True
        """
        self._fitted()
        if not self._is_learned:
            raise InputError(
                "A model with purpose='paper' cannot take new edges; fit the grown graph, or use "
                "purpose='reachability'."
            )
        model = self if inplace else copy.copy(self)
        started = time.perf_counter()
        graph, removed, paths, model.kernel_table_, vectors = grown(self, edges, nodes)
        model.graph_, model.removed_, model.levels_ = graph, removed, paths.levels
        model._evaluation, model.n_reachable_pairs_ = paths, paths.n_pairs
        model._keep(vectors)
        model.timings_ = {"growth": time.perf_counter() - started}
        return model

    def add(self, edges: Any, nodes: Iterable[Hashable] = ()) -> Self:
        """Call :meth:`add_edges`; this old name will be removed in 0.4."""
        _warn_renamed("add(edges)", "add_edges(edges)")
        return self.add_edges(edges, nodes)

    def update(self, edges: Any) -> Self:
        """Call ``add_edges(edges, inplace=True)``; this old name will be removed in 0.4."""
        _warn_renamed("update(edges)", "add_edges(edges, inplace=True)")
        return self.add_edges(edges, inplace=True)

    @property
    def labels_(self) -> AnyArray:
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
        graph = self._fitted()
        dag: DiGraph = self._kept("_dag", self.removed_, lambda: graph.without_edges(self.removed_))
        return dag

    @property
    def reachability_(self) -> Reachability:
        """The exact paths of the graph."""
        graph = self._fitted()
        reach: Reachability = self._kept("_reachability", graph, lambda: Reachability(graph))
        return reach

    def _kept(self, name: str, of: object, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, cached until `of` is another object."""
        if name not in vars(self) or vars(self)[name][0] is not of:
            setattr(self, name, (of, make()))
        return vars(self)[name][1]

    def reaches(self, u: Labels, v: Labels) -> bool | BoolArray:
        """Return exactly whether the graph, cycles included, has a path from u to v.

        `reachability_`, a :class:`~atpgraph.Reachability`, answers more such questions.
        """
        return self.reachability_.reaches(u, v)

    def score_pairs(self, u: Labels, v: Labels) -> Float64Array:
        """Return ⟨s_u, t_v⟩ for every pair of labels; the larger it is, the likelier is a path."""
        codes: tuple[Any, Any] = self._fitted().pair_codes(u, v)
        return pair_scores(self.source_, self.target_, *codes)

    def level_difference(self, u: Labels, v: Labels) -> Int64Array:
        """Return the level of v minus the level of u for every pair; positive along every path."""
        sources, targets = self._fitted().pair_codes(u, v)
        return np.asarray(self.levels_[targets].astype(np.int64) - self.levels_[sources])

    def predict_proba(
        self, u: Labels, v: Labels, *, base_rate: float | None = None
    ) -> Float64Array:
        """Return the probability of a path for every pair, calibrated on the graph of the model.

        A pair whose target is not on a higher level has probability 0. Models of earlier versions
        are not calibrated: they give σ(⟨s_u, t_v⟩).

        Parameters
        ----------
        u, v : labels
        base_rate : float in (0, 1), optional
            Share of paths among the pairs you ask about. By default it is their share among all
            pairs of the graph, which is small: a pair that you have a reason to ask about is more
            likely to be a path than a random pair with the same score.
        """
        scores = self.score_pairs(u, v)
        if self.calibration_ is None:
            return np.asarray(expit(scores))
        probability = self.calibration_(scores, base_rate)
        return np.where(self.level_difference(u, v) > 0, probability, 0.0)

    def predict(
        self,
        u: Labels,
        v: Labels,
        threshold: float | None = None,
        *,
        base_rate: float | None = None,
    ) -> BoolArray:
        """Predict for every pair whether there is a path.

        Parameters
        ----------
        u, v : labels
        threshold : float in (0, 1), optional
            Probability above which a path is predicted. By default, the score must exceed
            `threshold_`, which has the best F1 over all pairs of the graph, and v must be on a
            higher level than u.
        base_rate : float in (0, 1), optional
            As for :meth:`predict_proba`, with a `threshold`.
        """
        if threshold is None:
            return (self.score_pairs(u, v) > self.threshold_) & (self.level_difference(u, v) > 0)
        if not 0.0 < threshold < 1.0:
            raise InputError(f"threshold is {threshold}; it must be between 0 and 1.")
        return self.predict_proba(u, v, base_rate=base_rate) > threshold

    def top_targets(
        self,
        u: Labels | None = None,
        k: int = 10,
        *,
        order: str = "nearest",
        threshold: float | Literal["auto"] | None = "auto",
        vector: npt.ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Find up to k nodes that each node of `u` leads to; return their labels and scores.

        Every node of the graph is compared. For one node, the results are two arrays; for several,
        two lists with an array for each node, since fewer than k nodes may be above the threshold.

        Parameters
        ----------
        u : label or list of labels
        k : int
        order : {"nearest", "score"}
            "nearest": smallest difference of levels first, then largest score. "score": largest
            score first, which gives the most certain but usually the farthest nodes. Near nodes are
            the hardest to predict, so "nearest" leaves out nodes that a search of the graph from
            `u` does not find (with `vector`, it cannot check).
        threshold : float or None
            Leave out nodes that do not score above this, by default `threshold_`. None returns k
            nodes whatever their scores; it needs ``order="score"``.
        vector : array, optional
            A source vector, as :meth:`fold_in` returns it, or an array with one in each row,
            instead of `u`.
        as_frame : bool
            Return a pandas data frame with the columns source, target and score.
        """
        return self._top("targets", u, k, order, threshold, vector, as_frame)

    def top_sources(
        self,
        v: Labels | None = None,
        k: int = 10,
        *,
        order: str = "nearest",
        threshold: float | Literal["auto"] | None = "auto",
        vector: npt.ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Find up to k nodes that lead to each node of `v`, as :meth:`top_targets` does."""
        return self._top("sources", v, k, order, threshold, vector, as_frame)

    def _top(
        self,
        direction: str,
        nodes: Labels | None,
        k: int,
        order: str,
        threshold: float | Literal["auto"] | None,
        vector: npt.ArrayLike | None,
        as_frame: bool,
    ) -> Any:
        whole_number("k", k)
        if order not in ORDERS:
            raise unknown_name("order", order, ORDERS)
        graph = self._fitted()
        if (nodes is None) == (vector is None):
            raise InputError("Name nodes, or give a vector; not both.")
        near, far, levels, dag = view_of(self, direction)
        least = self.threshold_ if threshold == "auto" else threshold
        if nodes is None:
            if as_frame:
                raise InputError("as_frame=True needs nodes, not vectors.")
            queries = np.asarray(vector, dtype=np.float32)
            if queries.ndim not in (1, 2) or queries.shape[-1] != far.shape[1]:
                raise InputError(
                    f"The vector has the shape {queries.shape}; those of the model have "
                    f"{far.shape[1]} components."
                )
            found = ranked(np.atleast_2d(queries), far, k, levels, order=order, threshold=least)
            return listed(graph, found, queries.ndim == 2)
        codes, several = graph.codes(nodes).astype(np.int64), graph.several(nodes)
        many = k * _CANDIDATES if order == "nearest" else k
        found = ranked(near[codes], far, many, levels, order=order, threshold=least, skip=codes)
        if order == "nearest":
            each = zip(codes.tolist(), found, strict=True)
            found = [first_reached(dag, levels, u, rows, k) for u, rows in each]
        if as_frame:
            asked, answer = ("source", "target") if direction == "targets" else ("target", "source")
            names = [nodes] if several is None else several
            return ranking_frame(names, *listed(graph, found, True), (asked, answer, "score"))
        return listed(graph, found, several is not None)

    def index(self, direction: str = "targets") -> NeighborIndex:
        """Build an approximate index, for many queries on a large model.

        :meth:`top_targets` compares a node with all others, exactly; the index finds nearly the
        same nodes in a fraction of the time, and measures its recall on a sample (``recall_``). If
        the recall is below 0.95, it searches exactly and logs a warning. Needs Faiss, the extra
        ``ann``.

        Parameters
        ----------
        direction : {"targets", "sources"}
            Whether to find nodes that a node leads to, or nodes that lead to it.
        """
        self._fitted()
        return NeighborIndex(self, direction)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the result of :meth:`transform`: "default" (an array), "pandas" or "polars"."""
        if transform is not None and transform not in ("default", *KINDS):
            raise unknown_name("output", transform, ("default", *KINDS))
        self._output = transform or getattr(self, "_output", "default")
        return self

    def fit_transform(self, graph: Any, y: object = None) -> Any:
        """Call :meth:`fit`, then return the vectors of all nodes, as :meth:`transform` does."""
        self.fit(graph, y)
        return self.transform(self.graph_)

    def transform(self, nodes: Any) -> Any:
        """Return the source and target vector of each node, side by side.

        They describe which nodes a node reaches and which reach it, and are poor features for
        classifying nodes by their direct links. Accuracy of predicting the topic of a paper in
        generated citation graphs (2,800 papers, seven topics, 20% labeled, five seeds;
        ``benchmarks/features.py``), with 50 and 80% of the citations within a topic:

        ==================================================  =====  =====
        levels alone                                        0.143  0.144
        these vectors, 128 + 128                            0.416  0.821
        singular vectors of the adjacency matrix, 64 + 64   0.467  0.879
        undirected proximity, 64                            0.745  0.984
        these vectors and undirected proximity              0.654  0.939
        ==================================================  =====  =====

        Use undirected proximity there: the singular vectors of D^−½ (A + Aᵀ) D^−½, by
        :func:`scipy.sparse.linalg.svds`. Add these vectors only if direction matters.

        Parameters
        ----------
        nodes : label, list or array of labels, or a graph
            Nodes of the model. A graph (anything :func:`atpgraph.as_graph` takes) stands for all
            its nodes, in its order.

        Returns
        -------
        float32 array of shape (nodes, 2 n_components), or a data frame
        """
        graph = self._fitted()
        codes = graph.codes(_labels_in(graph, nodes))
        both = np.concatenate([self.source_[codes], self.target_[codes]], axis=1)
        both = both.astype(np.float32)
        kind = getattr(self, "_output", "default")
        if kind == "default":
            return both
        made = frame(dict(zip(self.get_feature_names_out(), both.T, strict=True)), kind)
        return made.set_index(graph.labels[codes]) if kind == "pandas" else made

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Return the names of the columns of :meth:`transform`, for scikit-learn."""
        self._fitted()
        k = self.source_.shape[1]
        return np.array([f"{side}{at}" for side in ("source", "target") for at in range(k)], object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one ``.npz`` file without pickle, so loading it cannot run code."""
        self._fitted()
        files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote."""
        return files.load(cls, path)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        rows = {name: repr(value) for name, value in self._changed().items()}
        state = "not fitted"
        if self.__sklearn_is_fitted__():
            state = "fitted"
            rows |= {
                "nodes": f"{self.graph_.n_nodes:,}",
                "edges": f"{self.graph_.n_edges:,}",
                "edges removed to break cycles": f"{len(self.removed_):,}",
                "levels": f"{int(self.levels_.max(initial=0)):,}",
                "components": f"{self.source_.shape[1]:,}",
                "fidelity": str(self.fidelity_ or "not measured"),
            }
        return html_table(f"{type(self).__name__}, {state}", rows)


def _labels_in(graph: DiGraph, nodes: Any) -> list[Any]:
    """Return the labels that a label, a list of labels or a graph stands for."""
    with contextlib.suppress(InputError):  # not hashable, so not a label
        if graph.codes_or_minus_one([nodes])[0] >= 0:
            return [nodes]
    if isinstance(nodes, (list, tuple)) or getattr(nodes, "ndim", 0) == 1:
        labels = list(nodes.tolist() if hasattr(nodes, "tolist") else nodes)
        pairs = {type(label) for label in labels} & {list, tuple}
        if not pairs or (list not in pairs and (graph.codes_or_minus_one(labels) >= 0).all()):
            return labels
    return list(as_graph(nodes).labels.tolist())


def _warn_renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} will be removed in 0.4; use {new}.", DeprecationWarning, stacklevel=3)
