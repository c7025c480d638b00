"""The file of a link predictor: one ``.npz`` archive of plain arrays and JSON, no pickle.

Local evidence is not stored: the graph is, and it is all that it needs.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.embedding.settings import Settings as AtpSettings
from atpgraph.embedding.settings import current_params
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.linkpred.evidence import (
    AtpScore,
    Attributes,
    Collection,
    Levels,
    SpectralScore,
)
from atpgraph.linkpred.evidence.collection import Settings
from atpgraph.linkpred.learning import QUESTIONS
from atpgraph.linkpred.logit import Head
from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray

M = TypeVar("M")

FORMAT = "atpgraph-links"
VERSION = 1
_HINT = "a link predictor; make one with 'atp links fit'"
# n nodes, m edges, t terms; k, s and a: lengths of ATP's, singular and attribute vectors.
_FIELDS = GRAPH_FIELDS | {
    **{f"{question}_weights": Field("f", ("t",)) for question in QUESTIONS},
    **{f"{question}_usual": Field("f", ("t",)) for question in QUESTIONS},
    "intercepts": Field("f", (len(QUESTIONS),)),
    "levels": Field("f", ("n",), low=0, optional=True),
    "attributes": Field("f", ("n", "a"), optional=True),
    "spectral_source": Field("f", ("n", "s"), optional=True),
    "spectral_target": Field("f", ("n", "s"), optional=True),
    "atp_source": Field("f", ("n", "k"), optional=True),
    "atp_target": Field("f", ("n", "k"), optional=True),
    "atp_levels": Field("i", ("n",), low=1, optional=True),
    "atp_removed": Field("i", (None,), low=0, high="m", unique=True, optional=True),
    "atp_kernel": Field("f", (None,), low=0, optional=True),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted predictor; the same predictor gives the same bytes."""
    params = model.get_params() | {"n_jobs": None}  # which says nothing of the links
    if not isinstance(params["random_state"], int):
        params["random_state"] = None
    if not isinstance(params["evidence"], str):
        params["evidence"] = list(params["evidence"])
    arrays: dict[str, AnyArray] = graph_arrays(model.graph_)
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "params": params,
        "validation": model.validation_,
        "kinds": [kind for kind in model.evidence_.parts if kind != "attributes"],
    }
    for question, head in model.heads_.items():
        arrays[f"{question}_weights"], arrays[f"{question}_usual"] = head.weights, head.usual
    arrays["intercepts"] = np.array([model.heads_[name].intercept for name in QUESTIONS])
    for part in model.evidence_:
        if isinstance(part, Levels):
            arrays["levels"] = part.level_
        elif isinstance(part, Attributes):
            arrays["attributes"] = part.vectors_
        elif isinstance(part, SpectralScore):
            arrays["spectral_source"], arrays["spectral_target"] = part.source_, part.target_
        elif isinstance(part, AtpScore):
            atp = part.model_
            arrays["atp_source"], arrays["atp_target"] = part.source_, part.target_
            arrays["atp_levels"], arrays["atp_removed"] = atp.levels_, atp.removed_
            arrays["atp_kernel"] = atp.kernel_table_
            description["atp"] = {
                "params": atp.get_params() | {"n_jobs": None},  # says nothing of the vectors
                "zero_weight": atp.settings_.zero_weight,
                "regularization": atp.settings_.regularization,
            }
    write_archive(path, description, arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a predictor; anything else is refused with a sentence."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        model: Any = kind()
        model.set_params(**description["params"])
        model.graph_ = graph_from(arrays)
        model.validation_ = dict(description["validation"])
        model.heads_ = {
            question: Head(
                arrays[f"{question}_weights"].astype(np.float64),
                float(arrays["intercepts"][at]),
                arrays[f"{question}_usual"].astype(np.float64),
            )
            for at, question in enumerate(QUESTIONS)
        }
        model.evidence_ = _collection(model, description, arrays)
        terms = len(model.evidence_.term_names)
        if len(model.heads_["link"].weights) != terms:
            raise ValueError("its weights do not fit its evidence")
        restored: M = model
        return restored

    return read_archive(path, FORMAT, VERSION, _HINT, _FIELDS, restore)


def _collection(model: Any, description: dict[str, Any], arrays: dict[str, AnyArray]) -> Collection:
    settings = Settings(model.n_components, model.n_jobs, 0)
    known = Attributes(arrays["attributes"]) if "attributes" in arrays else None
    found = Collection([str(kind) for kind in description["kinds"]], settings, known)
    found.graph = model.graph_
    for part in found:
        if isinstance(part, Levels):
            part.use(arrays["levels"])
        elif isinstance(part, SpectralScore):
            part.use(arrays["spectral_source"], arrays["spectral_target"])
        elif isinstance(part, AtpScore):
            part.use(arrays["atp_source"], arrays["atp_target"])
            part.model_ = _atp(model.graph_, description["atp"], arrays)
        else:
            part.fit(model.graph_)
    return found


def _atp(graph: Any, about: dict[str, Any], arrays: dict[str, AnyArray]) -> ATP:
    """As much of ATP's model as folding in a node needs."""
    atp = ATP().set_params(**current_params(about["params"]))
    atp.graph_ = graph
    atp.source_, atp.target_ = arrays["atp_source"], arrays["atp_target"]
    atp.levels_ = arrays["atp_levels"].astype(np.int32)
    atp.removed_ = arrays["atp_removed"].astype(np.int64)
    atp.kernel_table_ = arrays["atp_kernel"]
    atp.margin_ = 0.0
    atp.settings_ = AtpSettings(
        "paper", float(about["zero_weight"]), float(about["regularization"]), max_iter=0
    )
    return atp
