"""Vectors for other programs: word2vec text, Parquet, NumPy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._files import atomic_path
from atpgraph.embedding.estimator import ATP
from atpgraph.errors import InputError, MissingDependencyError

FORMATS = ("word2vec", "parquet", "npy")


def export(model: ATP, format: str, output: str | os.PathLike[str]) -> list[Path]:
    """Write the vectors of a model; returns the files written.

    Parameters
    ----------
    model : ATP
        A fitted model.
    format : {"word2vec", "parquet", "npy"}
        ``word2vec``: two text files, ``OUTPUT.source.txt`` and ``OUTPUT.target.txt``, that gensim's
        ``KeyedVectors.load_word2vec_format`` reads. ``parquet``: one table with the columns node,
        level, source and target. ``npy``: ``OUTPUT.source.npy``, ``OUTPUT.target.npy`` and
        ``OUTPUT.labels.json``.
    output : path
        The file, or the beginning of the files' names.
    """
    if format not in FORMATS:
        raise InputError(f"There is no format {format!r}; choose one of {', '.join(FORMATS)}.")
    target = Path(output)
    if format == "parquet":
        _parquet(model, target)
        return [target]
    written = []
    for side, vectors in (("source", model.source_), ("target", model.target_)):
        ending = "txt" if format == "word2vec" else "npy"
        path = target.with_name(f"{target.name}.{side}.{ending}")
        if format == "word2vec":
            _word2vec(model.labels_, vectors, path)
        else:
            with atomic_path(path) as temporary, temporary.open("wb") as file:
                np.save(file, vectors, allow_pickle=False)
        written.append(path)
    if format == "npy":
        path = target.with_name(f"{target.name}.labels.json")
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(model.labels_.tolist()), encoding="utf-8")
        written.append(path)
    return written


def _word2vec(labels: npt.NDArray[Any], vectors: npt.NDArray[Any], path: Path) -> None:
    # The format separates by blanks, so a label must not hold any.
    words = ["_".join(str(label).split()) or "_" for label in labels.tolist()]
    if len(set(words)) < len(words):
        raise InputError(
            "Two labels differ only in white space, which word2vec text cannot tell apart; "
            "export to parquet or npy."
        )
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        pattern = " ".join(["%.7g"] * vectors.shape[1])
        for word, row in zip(words, vectors, strict=True):
            file.write(f"{word} {pattern % tuple(row.tolist())}\n")


def _parquet(model: ATP, path: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", "Writing Parquet") from None
    k = model.source_.shape[1]

    def column(vectors: npt.NDArray[Any]) -> Any:
        flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, k)

    labels = model.labels_
    nodes = labels if labels.dtype == np.int64 else [str(label) for label in labels.tolist()]
    table = pa.table(
        {
            "node": pa.array(nodes),
            "level": pa.array(model.levels_),
            "source": column(model.source_),
            "target": column(model.target_),
        }
    )
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)
