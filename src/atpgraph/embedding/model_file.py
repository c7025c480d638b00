"""The model file: one ``.npz`` archive of plain arrays and a JSON description, no pickle."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from atpgraph.embedding.calibration import Calibration
from atpgraph.embedding.fidelity import Fidelity
from atpgraph.embedding.settings import Settings, current_params
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.util.archive import Field, archive_format, read_archive, write_archive
from atpgraph.util.arrays import AnyArray

M = TypeVar("M")

FORMAT = "atpgraph-model"
VERSION = 3
# n nodes, m edges, k components; the last two are in files of version 2 and are not used.
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


def save(model: Any, path: str | os.PathLike[str]) -> None:
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
        "settings": asdict(model.settings_),
        "margin": model.margin_,
        "zero": model.zero_,
        "threshold": model.threshold_,
        "fidelity": None if model.fidelity_ is None else model.fidelity_.to_dict(),
        "calibration": None if model.calibration_ is None else model.calibration_.to_dict(),
        "reachable_pairs": model.n_reachable_pairs_,
    }
    arrays: dict[str, AnyArray] = graph_arrays(model.graph_) | {
        "source": model.source_,
        "target": model.target_,
        "levels": model.levels_,
        "removed": model.removed_,
        "objective": model.objective_,
        "kernel_table": model.kernel_table_,
    }
    write_archive(path, description, arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a model file; anything else is refused with a sentence."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        return _restore(kind, description, arrays)

    return read_archive(path, FORMAT, tuple(range(1, VERSION + 1)), _HINT, _FIELDS, restore)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a model file; an edge list does not."""
    return archive_format(path) is not None


def _restore(kind: type[M], description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
    description = _as_current(description)
    params = description["params"]
    model: Any = kind().set_params(**params)  # type: ignore[attr-defined]
    model.graph_ = graph_from(arrays)
    model.source_, model.target_ = arrays["source"], arrays["target"]
    if model.source_.shape[1] != params["n_components"]:
        raise ValueError("its vectors have another length than its parameters say")
    model.levels_ = arrays["levels"].astype(np.int32)
    model.removed_, model.objective_ = arrays["removed"].astype(np.int64), arrays["objective"]
    model.kernel_table_ = arrays["kernel_table"]
    model.method_ = str(description["method"])
    model.n_iter_ = int(description["n_iter"])
    settings = description["settings"]
    model.settings_ = Settings(
        str(settings["purpose"]),
        float(settings["zero_weight"]),
        float(settings["regularization"]),
        int(settings["max_iter"]),
    )
    model.margin_ = float(description["margin"])
    model.zero_ = float(description.get("zero", 0.0))
    model.threshold_ = float(description["threshold"])
    judged, curve = description["fidelity"], description["calibration"]
    model.fidelity_ = None if judged is None else Fidelity.from_dict(judged)
    model.calibration_ = None if curve is None else Calibration.from_dict(curve)
    model.n_reachable_pairs_ = int(description["reachable_pairs"])
    model.timings_ = {}
    restored: M = model
    return restored


def _as_current(description: dict[str, Any]) -> dict[str, Any]:
    """Return what the file of an earlier version says in the terms of this one."""
    if description["version"] == VERSION:
        return description
    params = description["params"]
    if description["version"] == 1:  # before there were purposes
        params = {"purpose": "links"} | params
    current: dict[str, Any] = {
        "margin": 0.0, "threshold": 0.0, "method": params["method"],
    } | description  # fmt: skip
    current |= {"fidelity": None, "calibration": None}  # earlier versions measured other things
    if description.get("solver", params.get("solver")) == "svd":
        raise ValueError("its vectors come from solver='svd', which ATP does not have any more")
    learned = params["purpose"] == "reachability" and current["margin"] > 0
    current["params"] = current_params(params if learned else params | {"purpose": "links"})
    current["settings"] = {
        "purpose": "reachability" if learned else "paper",
        "zero_weight": description["zero_weight"],
        "regularization": description["regularization"],
        "max_iter": description["n_iter"],
    }
    return current
