"""The model file: one ``.npz`` archive of plain arrays and a JSON description, no pickle."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from atpgraph.closure import ClosureChoice
from atpgraph.embedding.base import Embedding
from atpgraph.embedding.calibration import Calibration
from atpgraph.embedding.fidelity import Fidelity
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.util.archive import Field, archive_format, read_archive, write_archive
from atpgraph.util.arrays import AnyArray

M = TypeVar("M", bound=Embedding)

FORMAT = "atpgraph-model"
VERSION = 3
# n nodes, m edges, k components; the last two are there for models made of pairs.
_FIELDS = GRAPH_FIELDS | {
    "source": Field("f", ("n", "k")),
    "target": Field("f", ("n", "k")),
    "levels": Field("i", ("n",), low=1, high="n+1"),
    "removed": Field("i", (None,), low=0, high="m", unique=True),
    "objective": Field("f", (None,)),
    "kernel_table": Field("f", (None,), low=0),
    "n_descendants": Field("i", ("n",), low=0, high="n", optional=True),
    "popularity": Field("f", ("n",), low=0, optional=True),
}
_HINT = "an atpgraph model; make one with 'atp embed'"


def save(model: Embedding, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the same model gives the same bytes."""
    params = model.get_params() | {"n_jobs": None}  # which says nothing of the vectors
    if callable(params["kernel"]):
        params["kernel"] = None  # a function cannot be written; its values are in kernel_table
    if not isinstance(params["random_state"], int):
        params["random_state"] = None
    description = {
        "format": FORMAT,
        "version": VERSION,
        "params": params,
        "n_iter": model.n_iter_,
        "method": model.method_,
        "solver": model.solver_,
        "zero_weight": model.zero_weight_,
        "regularization": model.regularization_,
        "margin": model.margin_,
        "threshold": model.threshold_,
        "fidelity": None if model.fidelity_ is None else model.fidelity_.to_dict(),
        "calibration": None if model.calibration_ is None else model.calibration_.to_dict(),
        "reachable_pairs": model.n_reachable_pairs_,
        "extras": model.n_extras_,
        "closure": asdict(model.closure_),
    }
    arrays: dict[str, AnyArray] = graph_arrays(model.graph_) | {
        "source": model.source_,
        "target": model.target_,
        "levels": model.levels_,
        "removed": model.removed_,
        "objective": model.objective_,
        "kernel_table": model.kernel_table_,
    }
    if model.solver_ == "pairs":
        arrays |= {"n_descendants": model.n_descendants_, "popularity": model.popularity_}
    write_archive(path, description, arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a model file; anything else is refused with a sentence."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        return _restore(kind, description, arrays)

    return read_archive(path, FORMAT, tuple(range(1, VERSION + 1)), _HINT, _FIELDS, restore)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does; an edge list does not."""
    return archive_format(path) is not None


def _restore(kind: type[M], description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
    params = description["params"]
    if description["version"] == 1:  # before there were purposes
        params = {"purpose": "links"} | params
        description = {"solver": params["solver"], "margin": 0.0, "fidelity": None} | description
    model = kind().set_params(**params)
    model.graph_ = graph_from(arrays)
    model.source_, model.target_ = arrays["source"], arrays["target"]
    if model.source_.shape[1] != params["n_components"]:
        raise ValueError("its vectors have another length than its parameters say")
    model.levels_ = arrays["levels"].astype(np.int32)
    model.removed_, model.objective_ = arrays["removed"].astype(np.int64), arrays["objective"]
    model.kernel_table_ = arrays["kernel_table"]
    model.solver_ = str(description["solver"])
    # Files of earlier versions were made before there was a choice to make.
    model.method_ = str(description.get("method", params["method"]))
    if model.solver_ == "pairs":
        model.n_descendants_ = arrays["n_descendants"].astype(np.int64)
        model.popularity_ = arrays["popularity"].astype(np.float32)
    model.n_iter_ = int(description["n_iter"])
    model.zero_weight_ = float(description["zero_weight"])
    model.regularization_ = float(description["regularization"])
    model.margin_ = float(description["margin"])
    model.threshold_ = float(description.get("threshold", 0.0))  # the first files have none
    # Earlier versions measured other things.
    current = description["version"] == VERSION
    judged, curve = (description[x] if current else None for x in ("fidelity", "calibration"))
    model.fidelity_ = None if judged is None else Fidelity.from_dict(judged)
    model.calibration_ = None if curve is None else Calibration.from_dict(curve)
    model.n_reachable_pairs_ = int(description["reachable_pairs"])
    model.n_extras_ = int(description["extras"])
    held = description.get("closure", {"kind": "exact", "reason": "made by an older version"})
    model.closure_ = ClosureChoice(
        str(held["kind"]), str(held["reason"]), int(held.get("sketch_size", 0))
    )
    model.timings_ = {}
    return model
