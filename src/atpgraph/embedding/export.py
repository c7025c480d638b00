"""Vectors for other programs: word2vec text, CSV, Parquet, NumPy."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.embedding.estimator import ATP
from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.arrays import AnyArray
from atpgraph.util.files import atomic_folder, atomic_path
from atpgraph.util.registry import Registry
from atpgraph.util.visible import no_formula


def export(model: ATP, format: str, output: str | os.PathLike[str]) -> list[Path]:
    """Write the vectors of a model; returns the files written.

    Parameters
    ----------
    model : ATP
        A fitted model.
    format : {"word2vec", "csv", "parquet", "npy"}
        ``word2vec``: a folder of two text files, ``source.txt`` and ``target.txt``, that gensim's
        ``KeyedVectors.load_word2vec_format`` reads. ``csv``: one table with the columns node,
        level, source_0, source_1, …, target_0, target_1, …; a label that a spreadsheet would take
        for a formula (it begins with =, +, -, @, a tab or a return) gets a ' in front, as OWASP
        advises. ``parquet``: one table with the columns node, level, source and target. ``npy``: a
        folder with ``source.npy``, ``target.npy`` and ``labels.json``.
    output : path
        The file or folder, which appears whole or not at all; ``"-"`` is standard output for a
        single file.
    """
    return FORMATS[format](model, Path(output))


def _word2vec(model: ATP, target: Path) -> list[Path]:
    # The format separates by blanks, so a label must not hold any.
    words = ["_".join(str(label).split()) or "_" for label in model.labels_.tolist()]
    if len(set(words)) < len(words):
        raise InputError(
            "Two labels differ only in white space, which word2vec text cannot tell apart; "
            "export to parquet or npy."
        )
    with _folder(target, "word2vec", ["source.txt", "target.txt"]) as files:
        for path, vectors in zip(files, (model.source_, model.target_), strict=True):
            with path.open("w", encoding="utf-8") as file:
                file.write(f"{len(words)} {vectors.shape[1]}\n")
                pattern = " ".join(["%.7g"] * vectors.shape[1])
                for word, row in zip(words, vectors, strict=True):
                    file.write(f"{word} {pattern % tuple(row.tolist())}\n")
    return [target / path.name for path in files]


def _npy(model: ATP, target: Path) -> list[Path]:
    with _folder(target, "npy", ["source.npy", "target.npy", "labels.json"]) as files:
        np.save(files[0], model.source_, allow_pickle=False)
        np.save(files[1], model.target_, allow_pickle=False)
        files[2].write_text(json.dumps(model.labels_.tolist()), encoding="utf-8")
    return [target / path.name for path in files]


@contextlib.contextmanager
def _folder(target: Path, format: str, names: list[str]) -> Iterator[list[Path]]:
    if target == Path("-"):
        raise InputError(
            f"{format} takes several files, and standard output is one; choose csv or parquet."
        )
    with atomic_folder(target, known=names) as folder:
        yield [folder / name for name in names]


def _csv(model: ATP, path: Path) -> list[Path]:
    k = model.source_.shape[1]
    header = ["node", "level"]
    header += [f"{side}_{at}" for side in ("source", "target") for at in range(k)]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # RFC 4180; with "\n" for lines it would not quote a "\r"
        writer.writerow(header)
        for label, level, source, target in zip(
            model.labels_.tolist(),
            model.levels_.tolist(),
            model.source_,
            model.target_,
            strict=True,
        ):
            numbers = [f"{value:.7g}" for value in (*source.tolist(), *target.tolist())]
            writer.writerow([no_formula(label), level, *numbers])
    return [path]


def _parquet(model: ATP, path: Path) -> list[Path]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", "Writing Parquet") from None
    k = model.source_.shape[1]

    def column(vectors: AnyArray) -> Any:
        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
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
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        pq.write_table(table, file)  # not its name: Arrow takes only names that are UTF-8
    return [path]


FORMATS: Registry[Callable[[ATP, Path], list[Path]]] = Registry(
    "format", {"word2vec": _word2vec, "csv": _csv, "parquet": _parquet, "npy": _npy}
)
