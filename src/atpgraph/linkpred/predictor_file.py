"""The file of a link predictor: one ``.npz`` archive of plain arrays and JSON, no pickle.

Local evidence is not stored, because it can be computed from the stored graph.
"""

from __future__ import annotations

import os
from dataclasses import fields
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.attributes import Clock
from atpgraph.linkpred.evidence.parts import PARTS, Settings
from atpgraph.linkpred.learning import QUESTIONS, Learned
from atpgraph.linkpred.ranking import FEATURES, Curve, Head, HitRates
from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray

M = TypeVar("M")

FORMAT = "atpgraph-links"
VERSION = 2
_HINT = "a link predictor; make one with 'atp links fit'"
_TIMES = [each.name for each in fields(Clock) if each.name != "graph"]
_HEAD = [each.name for each in fields(Head)]
# n nodes, m edges, t terms, a: length of attribute vectors.
_FIELDS = GRAPH_FIELDS | {
    **{f"{q}_{name}": Field("f", ("t",)) for q in QUESTIONS for name in ("weights", "usual")},
    **{f"{q}_intercept": Field("f", ()) for q in QUESTIONS},
    "ratio": Field("f", (2, None)),
    "hit_weights": Field("f", (len(FEATURES),)),
    "hit_curve": Field("f", (2, None)),
    "cold_rates": Field("f", (None,), low=0),
    "time_edge": Field("f", ("m",), low=0, optional=True),
    "time_start": Field("f", ("n",), low=0, optional=True),
    "time_now": Field("f", ("n",), low=0, optional=True),
    "attributes": Field("f", ("n", "a"), optional=True),
    **{f"{p.kind}_{name}": field for p in PARTS for name, field in p.fields.items()},
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted predictor; the same predictor gives the same bytes."""
    params = model.get_params() | {"n_jobs": None}  # which says nothing of the links
    if not isinstance(params["random_state"], Integral):
        params["random_state"] = None
    if not isinstance(params["evidence"], str):
        params["evidence"] = list(params["evidence"])
    learned: Learned = model.learned_
    evidence: Collection = model.evidence_
    settings, hits = evidence.settings, learned.hits
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "params": params,
        "validation": learned.validation,
        "kinds": [kind for kind in evidence.kinds if kind not in ("attributes", "recency")],
        "density": hits.density,
        "horizon": learned.horizon,
    }
    arrays: dict[str, Any] = graph_arrays(model.graph_)
    for question, head in learned.heads.items():
        arrays |= {f"{question}_{name}": np.asarray(getattr(head, name)) for name in _HEAD}
    arrays |= {"hit_weights": hits.weights, "cold_rates": hits.cold}
    for name, curve in (("ratio", learned.ratio), ("hit_curve", hits.curve)):
        arrays[name] = np.stack([curve.x, curve.y])
    if settings.clock is not None:
        arrays |= {f"time_{name}": getattr(settings.clock, name) for name in _TIMES}
    if settings.attributes is not None:
        arrays["attributes"] = settings.attributes
    for part in evidence.parts:
        arrays |= {f"{part.kind}_{name}": getattr(part, name) for name in part.fields}
    write_archive(path, description, arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a predictor; any other file raises an InputError."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        model: Any = kind()
        model.set_params(**description["params"])
        graph, heads, clock = graph_from(arrays), {}, None
        for question in QUESTIONS:
            weights, intercept, usual = (arrays[f"{question}_{name}"] for name in _HEAD)
            heads[question] = Head(weights, float(intercept), usual)
        curve, density = Curve(*arrays["hit_curve"]), float(description["density"])
        hits = HitRates(arrays["hit_weights"], curve, arrays["cold_rates"], density)
        rated = arrays["ratio"].shape[1] and hits.cold.size and hits.cold.max() <= 1
        if not 0 < density < 1 or not rated:
            raise ValueError("its hit rates mean nothing")
        ratio, horizon = Curve(*arrays["ratio"]), float(description["horizon"])
        if "time_edge" in arrays:
            clock = Clock(graph, *(arrays[f"time_{name}"] for name in _TIMES))
        known = arrays.get("attributes")
        settings = Settings(model.n_components, model.n_jobs, 0, known, clock)
        evidence = Collection([str(k) for k in description["kinds"]], settings)
        evidence.graph = evidence.local.fit(graph).graph
        for part in evidence.parts:
            for name in part.fields:
                setattr(part, name, arrays[f"{part.kind}_{name}"])
            if not part.fields:
                part.fit(graph)
        if len(heads["link"].weights) != len(evidence.term_names):
            raise ValueError("its weights do not fit its evidence")
        learned = Learned(heads, ratio, hits, horizon, dict(description["validation"]))
        model._use(graph, evidence, learned)
        restored: M = model
        return restored

    return read_archive(path, FORMAT, VERSION, _HINT, _FIELDS, restore)
