"""The file of a link predictor: one ``.npz`` archive of plain arrays and JSON, no pickle.

Local evidence is not stored: the graph is, and it is all that it needs.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.linkpred.evidence import (
    Attributes,
    Collection,
    Levels,
    Recency,
    Settings,
    VectorEvidence,
)
from atpgraph.linkpred.evidence.times import Clock
from atpgraph.linkpred.learning import QUESTIONS, Learned
from atpgraph.linkpred.ranking import FEATURES, Curve, Head, HitRates
from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray

M = TypeVar("M")

FORMAT = "atpgraph-links"
VERSION = 2
_HINT = "a link predictor; make one with 'atp links fit'"
# n nodes, m edges, t terms; k, s and a: lengths of ATP's, singular and attribute vectors.
_FIELDS = GRAPH_FIELDS | {
    **{f"{question}_weights": Field("f", ("t",)) for question in QUESTIONS},
    **{f"{question}_usual": Field("f", ("t",)) for question in QUESTIONS},
    "intercepts": Field("f", (len(QUESTIONS),)),
    "ratio": Field("f", (2, None)),
    "hit_weights": Field("f", (len(FEATURES),)),
    "hit_curve": Field("f", (2, None)),
    "cold_rates": Field("f", (None,), low=0, high=1),
    "edge_times": Field("f", ("m",), low=0, optional=True),
    "start_times": Field("f", ("n",), low=0, optional=True),
    "source_times": Field("f", ("n",), low=0, optional=True),
    "levels": Field("f", ("n",), low=0, optional=True),
    "attributes": Field("f", ("n", "a"), optional=True),
    "spectral_source": Field("f", ("n", "s"), optional=True),
    "spectral_target": Field("f", ("n", "s"), optional=True),
    "atp_source": Field("f", ("n", "k"), optional=True),
    "atp_target": Field("f", ("n", "k"), optional=True),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted predictor; the same predictor gives the same bytes."""
    params = model.get_params() | {"n_jobs": None}  # which says nothing of the links
    if not isinstance(params["random_state"], int):
        params["random_state"] = None
    if not isinstance(params["evidence"], str):
        params["evidence"] = list(params["evidence"])
    learned: Learned = model.learned_
    evidence: Collection = model.evidence_
    arrays: dict[str, AnyArray] = graph_arrays(model.graph_)
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "params": params,
        "validation": learned.validation,
        "kinds": [kind for kind in evidence.kinds if kind not in ("attributes", "recency")],
        "density": learned.hits.density,
        "horizon": learned.horizon,
    }
    for question, head in learned.heads.items():
        arrays[f"{question}_weights"], arrays[f"{question}_usual"] = head.weights, head.usual
    arrays["intercepts"] = np.array([learned.heads[name].intercept for name in QUESTIONS])
    arrays["ratio"] = np.stack([learned.ratio.x, learned.ratio.y])
    arrays["hit_weights"], arrays["cold_rates"] = learned.hits.weights, learned.hits.cold
    arrays["hit_curve"] = np.stack([learned.hits.curve.x, learned.hits.curve.y])
    for part in evidence.others:
        if isinstance(part, Levels):
            arrays["levels"] = part.level_
        elif isinstance(part, Attributes):
            arrays["attributes"] = part.vectors_
        elif isinstance(part, Recency):
            arrays |= part.arrays(model.graph_)
        elif isinstance(part, VectorEvidence):
            name = part.kinds[0]
            arrays[f"{name}_source"], arrays[f"{name}_target"] = part.source_, part.target_
    write_archive(path, description, arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a predictor; anything else is refused with a sentence."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        model: Any = kind()
        model.set_params(**description["params"])
        graph = graph_from(arrays)
        heads = {
            question: Head(
                arrays[f"{question}_weights"].astype(np.float64),
                float(arrays["intercepts"][at]),
                arrays[f"{question}_usual"].astype(np.float64),
            )
            for at, question in enumerate(QUESTIONS)
        }
        hits = HitRates(
            arrays["hit_weights"],
            Curve(*arrays["hit_curve"]),
            arrays["cold_rates"],
            float(description["density"]),
        )
        if not 0 < hits.density < 1 or not len(hits.cold) or not arrays["ratio"].shape[1]:
            raise ValueError("its hit rates mean nothing")
        learned = Learned(
            heads, Curve(*arrays["ratio"]), hits, float(description["horizon"]),
            dict(description["validation"]),
        )  # fmt: skip
        evidence = _collection(model, graph, description, arrays)
        if len(heads["link"].weights) != len(evidence.term_names):
            raise ValueError("its weights do not fit its evidence")
        model._use(graph, evidence, learned)
        restored: M = model
        return restored

    return read_archive(path, FORMAT, VERSION, _HINT, _FIELDS, restore)


def _collection(
    model: Any, graph: Any, description: dict[str, Any], arrays: dict[str, AnyArray]
) -> Collection:
    known = Attributes(arrays["attributes"]) if "attributes" in arrays else None
    clock = None
    if "edge_times" in arrays:
        names = ("edge_times", "start_times", "source_times")
        clock = Clock.of(*(arrays[name].astype(np.float64) for name in names))
    settings = Settings(model.n_components, model.n_jobs, 0, known, clock, graph)
    found = Collection([str(kind) for kind in description["kinds"]], settings)
    found.graph = graph
    found.local.fit(graph)
    for part in found.others:
        if isinstance(part, Levels):
            part.use(arrays["levels"])
        elif isinstance(part, VectorEvidence):
            part.use(*(arrays[f"{part.kinds[0]}_{side}"] for side in ("source", "target")))
        else:
            part.fit(graph)
    return found
