"""Models that grow: new nodes and edges without fitting everything again."""

from __future__ import annotations

import copy
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atpgraph.closure import HeldClosure, Paths, SketchedClosure, hold_closure, kernel_table
from atpgraph.closure.reachability import Reachability
from atpgraph.cycles.growing import GrownGraph, grow
from atpgraph.embedding.base import Embedding
from atpgraph.embedding.fold_in import FoldIn
from atpgraph.embedding.purposes import how_to_hold
from atpgraph.errors import InputError
from atpgraph.factorization import Descent, RowSolver, factorize, fit_pairs, fit_panels
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import AnyArray, Float64Array, FloatArray, Int32Array, Int64Array

# Checked on generated graphs, see docs/evidence/defaults.md.
ROUNDS = 3  # at most, over the paths that changed: fewer where most of them did
PASSES = 16  # over the paths of new nodes, before that,
FEWEST = 2048  # and at least so many paths from either end
_EFFORT = 0.3  # of the measurement after a fit, in that after a batch
_SOLVE = 40  # cost of the solve of a row, in products of two vectors


class Growing(Embedding):
    """A fitted model that takes new nodes and edges."""

    _folding: tuple[FloatArray, FoldIn]  # and the vectors it was made from

    def fold_in(
        self,
        out_edges: Sequence[Hashable] | AnyArray = (),
        in_edges: Sequence[Hashable] | AnyArray = (),
    ) -> tuple[FloatArray, FloatArray]:
        """Source and target vector of a node that was not there at training.

        One solve for each, all other vectors kept: what a refit would give this node if nothing
        else moved. :meth:`add` takes many nodes at once, with edges among them.

        Parameters
        ----------
        out_edges, in_edges : labels
            Nodes of the graph that the new node has edges to, and from. An edge that would close a
            cycle does not count: what leads to the new node is not taken to be reachable from it.

        Examples
        --------
        >>> from atpgraph import ATP
        >>> atp = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> source, target = atp.fold_in(in_edges=["c"])
        >>> bool(atp.source_[0] @ target > 1.0)
        True
        """
        graph = self._can_grow("fold_in")
        if not hasattr(self, "_folding") or self._folding[0] is not self.source_:
            self._folding = self.source_, FoldIn.of(self)
        out, into = (graph.codes(list(side)) for side in (out_edges, in_edges))
        return self._folding[1].vectors(out, into)

    def add(self, edges: Any, nodes: Iterable[Hashable] = ()) -> Self:
        """A model that has these edges and nodes as well; this one stays as it is.

        Cycles that the new edges close are broken by leaving out new edges. Levels and closure are
        repaired, vectors are solved for the new nodes, and again for the nodes whose descendants or
        ancestors changed; all others keep theirs. Parameters stay as fitted.

        Parameters
        ----------
        edges : anything :func:`atpgraph.as_graph` takes
            Edges among known nodes, new ones, or both.
        nodes : labels
            Nodes to add even if no edge names them.

        Examples
        --------
        >>> from atpgraph import ATP
        >>> old = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> new = old.add([("d", "e"), ("e", "f"), ("f", "a")])
        >>> new.removed_edges_, new.levels_.tolist(), len(old.labels_)
        ([('f', 'a')], [1, 2, 3, 4, 5, 6], 4)
        >>> there, back = new.score_pairs(["a", "f"], ["f", "a"])
        >>> bool(there > 1.0 > back)
        True
        """
        grown = copy.copy(self)
        grown._grow(edges, nodes)
        return grown

    def update(self, edges: Any) -> Self:
        """Take new edges between known nodes into this model; see :meth:`add`."""
        graph = self._fitted()
        more = as_graph(edges)
        unknown = np.flatnonzero(graph.codes_or_minus_one(more.labels) < 0)
        if len(unknown):
            raise InputError(
                f"The graph has no node {more.labels.tolist()[unknown[0]]!r}; "
                "add(edges) takes new nodes."
            )
        self._grow(more)
        return self

    def _can_grow(self, what: str) -> DiGraph:
        graph = self._fitted()
        if self.solver_ == "svd":
            raise InputError(f"{what} needs another solver; singular vectors have no such solve.")
        return graph

    def _grow(self, edges: Any, nodes: Iterable[Hashable] = ()) -> None:
        self._can_grow("Growing")
        started = time.perf_counter()
        more = _more(edges, nodes)
        params = self.get_params()
        growth = Growth.of(self, more)
        closure = hold_closure(
            growth.dag, growth.levels, sketch_size=params["sketch_size"],
            memory=params["memory"], n_jobs=params["n_jobs"],
            **how_to_hold(params["closure"], self.solver_),
        )  # fmt: skip
        table = _longer_table(self.kernel_table_, params, int(growth.levels.max(initial=1)))
        solve = _pairs if self.solver_ == "pairs" else _nnls
        source, target = solve(self, growth, closure, table)
        self.graph_, self.removed_, self.levels_ = growth.graph, growth.removed, growth.levels
        self.source_, self.target_, self.kernel_table_ = source, target, table
        self.n_reachable_pairs_, self.n_extras_ = closure.n_pairs, closure.n_stored
        self.closure_ = closure.choice
        self._judge(closure, _EFFORT)
        self.timings_ = {"growth": time.perf_counter() - started}


@dataclass(frozen=True, eq=False)
class Growth:
    """What new edges change in a graph.

    Attributes
    ----------
    graph, removed, dag, levels
        As after a fit, with the old nodes first.
    new : int64 array
        The new nodes.
    sources, targets : int64 arrays
        Nodes that reach, and that are reached by, more than before; new ones included.
    """

    graph: DiGraph
    removed: Int64Array
    dag: DiGraph
    levels: Int32Array
    new: Int64Array
    sources: Int64Array
    targets: Int64Array

    @classmethod
    def of(cls, model: Embedding, more: DiGraph) -> Growth:
        """The changes that `more` makes in the graph of a model."""
        before = model.graph_.n_nodes
        grown = grow(model.graph_, model.removed_, model.levels_, more)
        dag = grown.dag
        sources, targets = _opening(model, grown)
        new = np.arange(before, grown.graph.n_nodes)
        return cls(
            grown.graph,
            grown.removed,
            dag,
            levels(dag),
            new,
            np.union1d(reachable(dag.reverse(), sources), new),
            np.union1d(reachable(dag, targets), new),
        )


def _opening(model: Embedding, grown: GrownGraph) -> tuple[Int64Array, Int64Array]:
    """The ends of the new edges that open paths: there was none before from one to the other."""
    edges = np.setdiff1d(grown.new_edges, grown.removed, assume_unique=True)
    sources = grown.graph.sources[edges].astype(np.int64)
    targets = grown.graph.targets[edges].astype(np.int64)
    known = (sources < model.graph_.n_nodes) & (targets < model.graph_.n_nodes)
    labels = model.graph_.labels
    before = Reachability(model.dag_, index=False)
    joined = np.zeros(len(edges), dtype=np.bool_)
    joined[known] = before.reaches(labels[sources[known]], labels[targets[known]])
    return sources[~joined], targets[~joined]


def _more(edges: Any, nodes: Iterable[Hashable]) -> DiGraph:
    listed = list(nodes)
    if isinstance(edges, (list, tuple)) and not edges:
        return DiGraph.from_edges([], nodes=listed)
    more = as_graph(edges)
    known = set(more.labels.tolist())
    fresh = [label for label in dict.fromkeys(listed) if label not in known]
    if not fresh:
        return more
    labels = [*more.labels.tolist(), *fresh]
    pairs = list(more.edges())
    return DiGraph.from_edges(pairs, weights=more.weights, nodes=labels)


def _longer_table(table: Float64Array, params: dict[str, Any], n_levels: int) -> Float64Array:
    """The kernel's values up to a new highest level; the last one again if it was a function."""
    if n_levels <= len(table):
        return table
    if params["kernel"] is None:  # a function that the model file could not hold
        last = table[-1:] if len(table) > 1 else np.ones(1)
        return np.concatenate([table, np.repeat(last, n_levels - len(table))])
    return kernel_table(params["kernel"], n_levels, params["c"])


def _nnls(
    model: Embedding,
    growth: Growth,
    closure: HeldClosure,
    table: Float64Array,
) -> tuple[FloatArray, FloatArray]:
    """The vectors that changed solved again: one by one, or all in one pass if they are many."""
    weights = {"zero_weight": model.zero_weight_, "regularization": model.regularization_}
    blank = np.zeros((len(growth.new), model.source_.shape[1]), dtype=model.source_.dtype)
    source, target = (np.concatenate([side, blank]) for side in (model.source_, model.target_))

    def solve(nodes: Int64Array, paths: Paths, near: FloatArray, far: FloatArray) -> None:
        listed = list(paths.reached(nodes))
        ends = np.cumsum([0, *map(len, listed)])
        reached = np.concatenate([*listed, np.zeros(0, dtype=np.int32)])
        here = np.repeat(growth.levels[nodes], np.diff(ends))
        values = table[np.abs(growth.levels[reached] - here)]
        near[nodes] = RowSolver(far, **weights)(ends, reached, values)

    down, up = closure.paths, closure.paths_back
    solve(growth.new, down, source, target)
    solve(growth.new, up, target, source)
    # Row by row every pair counts; a pass over the closure adds up what is stored, and solves all.
    some = len(growth.sources) + len(growth.targets)
    pairs = int(down.sizes[growth.sources].sum() + up.sizes[growth.targets].sum())
    whole = closure.n_stored + 2 * _SOLVE * len(source)
    if pairs + _SOLVE * some > whole:
        rows, columns = closure.sides
        fit = factorize(
            rows, columns, growth.levels, table, n_components=source.shape[1], max_iter=1,
            n_jobs=model.get_params()["n_jobs"], start=(source, target),
            zero_weight=model.zero_weight_, regularization=model.regularization_,
        )  # fmt: skip
        return fit.source, fit.target
    solve(growth.sources, down, source, target)
    solve(growth.targets, up, target, source)
    return source, target


def _pairs(
    model: Embedding,
    growth: Growth,
    closure: HeldClosure,
    table: Float64Array,
) -> tuple[FloatArray, FloatArray]:
    """A few rounds over the paths that changed, from the vectors that are there.

    New nodes come first, on their own, from both ends of their paths: as some among many they would
    learn little in so few rounds.
    """
    blank = np.zeros((len(growth.new), model.source_.shape[1]), dtype=model.source_.dtype)
    source, target = (np.concatenate([side, blank]) for side in (model.source_, model.target_))
    params = model.get_params()
    if isinstance(closure, SketchedClosure):
        for nodes in ((growth.new, growth.new), (growth.sources, growth.targets)):
            if any(map(len, nodes)):
                fit = fit_panels(
                    *closure.panel_sources(), growth.levels, table, start=(source, target),
                    rows=nodes, n_components=source.shape[1], max_iter=ROUNDS,
                    regularization=model.regularization_, n_jobs=params["n_jobs"],
                    random_state=params["random_state"],
                )  # fmt: skip
                source, target = fit.source, fit.target
        return source, target

    def learn(
        nodes: Int64Array,
        rounds: float,
        both: bool = False,
        known: FloatArray | float = 1.0,
        descent: Descent | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        paths, back = closure.pair_sources(both)
        fit = fit_pairs(
            paths,
            growth.levels,
            table,
            n_components=source.shape[1],
            regularization=model.regularization_,
            max_iter=max(round(rounds), 1),
            n_jobs=params["n_jobs"],
            random_state=params["random_state"],
            start=(source, target),
            rows=nodes,
            back=back if both else None,
            known=known,
            descent=descent,
        )
        return fit.source, fit.target

    def drawn(paths: Paths, count: int, nodes: Int64Array | slice = slice(None)) -> int:
        return int(np.minimum(paths.sizes[nodes], count).sum())

    draws = Descent.draws
    if len(growth.new):
        half = -(-draws // 2)
        most = max(drawn(side, half, growth.new) for side in (closure.paths, closure.paths_back))
        fewest = int(np.clip(PASSES * most, FEWEST, Descent.fewest))
        rounds = PASSES * most / max(most, fewest)
        source, target = learn(growth.new, rounds, both=True, descent=Descent(fewest=fewest))
    # A vector may go the further, the less of what its node reaches it was fitted to.
    before, now = model.n_descendants_, closure.paths.sizes
    known = np.ones(len(now))
    known[: len(before)] = np.minimum(before / np.maximum(now[: len(before)], 1), 1.0) ** 2
    some = max(drawn(closure.paths, draws, growth.sources), 1)
    rounds = min(drawn(closure.paths, draws) // some, ROUNDS)
    return learn(growth.sources, rounds, known=known)
