"""One node more in a collection of evidence, without fitting anything again."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import (
    AtpScore,
    Attributes,
    Collection,
    Evidence,
    Levels,
    SpectralScore,
)
from atpgraph.util.arrays import FloatArray, Int64Array


def grown(
    evidence: Collection, node: Hashable, out: Int64Array, into: Int64Array, attributes: Any
) -> tuple[DiGraph, Collection]:
    """The graph and the evidence with a node that has edges to `out` and from `into`."""
    old = evidence.graph
    n = old.n_nodes
    labels = np.empty(n + 1, dtype=old.labels.dtype)
    if old.labels.dtype != object and not isinstance(node, (int, np.integer)):
        labels = np.empty(n + 1, dtype=object)
    labels[:n], labels[n] = old.labels, node
    graph = DiGraph.from_codes(
        np.concatenate([old.sources, np.full(len(out), n), into]),
        np.concatenate([old.targets, out, np.full(len(into), n)]),
        labels,
    )
    other = copy.copy(evidence)
    other.graph = graph
    other.parts = {
        kind: [_grown(part, old, graph, out, into, attributes) for part in parts]
        for kind, parts in evidence.parts.items()
    }
    return graph, other


def _grown(
    part: Evidence, old: DiGraph, graph: DiGraph, out: Int64Array, into: Int64Array, attributes: Any
) -> Evidence:
    if isinstance(part, Attributes):
        width = part.vectors_.shape[1]
        row = np.zeros(width, dtype=np.float32)
        if attributes is not None:
            row = np.asarray(attributes, dtype=np.float32).reshape(-1)
        if len(row) != width:
            raise InputError(f"The attributes of the new node are {len(row)} numbers, not {width}.")
        return part.with_row(row)
    other = copy.copy(part)
    if isinstance(other, Levels):
        # One above its highest source, as peeling would give it; old nodes stay where they are.
        here = 1 + other.level_[into].max(initial=0)
        return other.use(np.append(other.level_, here))
    if isinstance(other, AtpScore):
        names = [old.labels[side].tolist() for side in (out, into)]
        source, target = other.model_.fold_in(*names)
        return other.use(*_appended(other.source_, other.target_, source, target))
    if isinstance(other, SpectralScore):
        return other.use(
            *_appended(
                other.source_,
                other.target_,
                _projected(other.target_, out),
                _projected(other.source_, into),
            )
        )
    return other.fit(graph)


def _projected(vectors: FloatArray, nodes: Int64Array) -> FloatArray:
    """a V Σ^−½ for the row a of a new node: V √Σ is what is known, its columns have norm √σ."""
    scale = (vectors.astype(np.float64) ** 2).sum(axis=0)
    return np.asarray(vectors[nodes].sum(axis=0) / np.where(scale > 0, scale, 1.0))


def _appended(
    source: FloatArray, target: FloatArray, new_source: FloatArray, new_target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return np.concatenate([source, new_source[None]]), np.concatenate([target, new_target[None]])
