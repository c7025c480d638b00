"""Model files (plain arrays and a JSON description, no pickle), and vectors for other programs."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from atpgraph.embedding.fidelity import Calibration, Evaluation, Fidelity
from atpgraph.embedding.settings import REMOVED, Settings
from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray
from atpgraph.util.checks import Registry
from atpgraph.util.files import atomic_folder, atomic_path

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
# Attributes of a model, without the underscore.
_ARRAYS = ("source", "target", "levels", "removed", "objective", "kernel_table")
_NUMBERS = {"n_iter": int, "method": str, "margin": float, "zero": float}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the same model gives the same bytes."""
    params = model.get_params() | {"n_jobs": None}  # which says nothing of the vectors
    if callable(params["kernel"]):
        params["kernel"] = None  # a function cannot be written; its values are in kernel_table
    if not isinstance(params["random_state"], Integral):
        params["random_state"] = None
    description = {
        "format": FORMAT,
        "version": VERSION,
        "params": params,
        "settings": asdict(model.settings_),
        "fidelity": None if model.fidelity_ is None else model.fidelity_.to_dict(),
        "calibration": None if model.calibration_ is None else model.calibration_.to_dict(),
        "threshold": model.threshold_,
        "reachable_pairs": model.n_reachable_pairs_,
    }
    description |= {name: getattr(model, f"{name}_") for name in _NUMBERS}
    arrays = {name: getattr(model, f"{name}_") for name in _ARRAYS}
    write_archive(path, description, graph_arrays(model.graph_) | arrays)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a model file; raise an InputError for any other file."""

    def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
        return _restore(kind, description, arrays)

    return read_archive(path, FORMAT, tuple(range(1, VERSION + 1)), _HINT, _FIELDS, restore)


def _restore(kind: type[M], description: dict[str, Any], arrays: dict[str, AnyArray]) -> M:
    description = _as_current(description)
    params = description["params"]
    model: Any = kind().set_params(**params)  # type: ignore[attr-defined]
    model.graph_, model.timings_ = graph_from(arrays), {}
    for name in _ARRAYS:
        setattr(model, f"{name}_", arrays[name])
    if model.source_.shape[1] != params["n_components"]:
        raise ValueError("its vectors do not have the length in its parameters")
    model.levels_ = model.levels_.astype(np.int32)
    model.removed_ = model.removed_.astype(np.int64)
    for name, number in _NUMBERS.items():
        setattr(model, f"{name}_", number(description[name]))
    kinds = {"purpose": str, "zero_weight": float, "regularization": float, "max_iter": int}
    settings = {name: number(description["settings"][name]) for name, number in kinds.items()}
    model.settings_ = Settings(**settings)
    judged, curve = description["fidelity"], description["calibration"]
    model._evaluation = Evaluation(
        None if judged is None else Fidelity.from_dict(judged),
        float(description["threshold"]),
        None if curve is None else Calibration.from_dict(curve),
    )
    model.n_reachable_pairs_ = int(description["reachable_pairs"])
    restored: M = model
    return restored


def _as_current(description: dict[str, Any]) -> dict[str, Any]:
    """Convert the description in a file of an earlier version to the current one."""
    description = {"zero": 0.0} | description
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
        raise ValueError("its vectors come from solver='svd', which ATP no longer has")
    learned = params["purpose"] == "reachability" and current["margin"] > 0
    current["params"] = {name: value for name, value in params.items() if name not in REMOVED}
    if not learned:
        current["params"]["purpose"] = "paper"
    elif current["params"]["zero_weight"] == "auto":
        current["params"]["zero_weight"] = 0.0  # "auto" meant 0 for reachability
    current["settings"] = {
        "purpose": "reachability" if learned else "paper",
        "zero_weight": description["zero_weight"],
        "regularization": description["regularization"],
        "max_iter": description["n_iter"],
    }
    return current


def export(model: Any, format: str, output: str | os.PathLike[str]) -> list[Path]:
    """Write the vectors of a model and return the files written.

    Parameters
    ----------
    model : ATP
        A fitted model.
    format : {"word2vec", "csv", "parquet", "npy"}
        ``word2vec``: a folder of two text files, ``source.txt`` and ``target.txt``, that gensim's
        ``KeyedVectors.load_word2vec_format`` reads. ``csv``: one table with the columns node,
        level, source_0, source_1, …, target_0, target_1, …; a label that a spreadsheet would take
        for a formula (it begins with =, +, -, @, a tab or a carriage return) gets a ' in front, as
        OWASP advises. ``parquet``: one table with the columns node, level, source and target.
        ``npy``: a folder with ``source.npy``, ``target.npy`` and ``labels.json``.
    output : path
        The file or folder, which appears whole or not at all; ``"-"`` is standard output for a
        single file.
    """
    return FORMATS[format](model, Path(output))


def _word2vec(model: Any, target: Path) -> list[Path]:
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


def _npy(model: Any, target: Path) -> list[Path]:
    with _folder(target, "npy", ["source.npy", "target.npy", "labels.json"]) as files:
        np.save(files[0], model.source_, allow_pickle=False)
        np.save(files[1], model.target_, allow_pickle=False)
        files[2].write_text(json.dumps(model.labels_.tolist()), encoding="utf-8")
    return [target / path.name for path in files]


@contextlib.contextmanager
def _folder(target: Path, format: str, names: list[str]) -> Iterator[list[Path]]:
    if target == Path("-"):
        raise InputError(
            f"{format} writes several files, not standard output; choose csv or parquet."
        )
    with atomic_folder(target, known=names) as folder:
        yield [folder / name for name in names]


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def no_formula(label: Any) -> Any:
    """Return a label that no spreadsheet runs as a formula: with a ' in front, if necessary.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula(-1)
    ("'=1+1", -1)
    """
    if isinstance(label, (int, float)) or not str(label).startswith(_FORMULA):
        return label
    return f"'{label}"


def _csv(model: Any, path: Path) -> list[Path]:
    k = model.source_.shape[1]
    header = ["node", "level"]
    header += [f"{side}_{at}" for side in ("source", "target") for at in range(k)]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)  # RFC 4180; with "\n" for lines it would not quote a "\r"
        writer.writerow(header)
        nodes = model.labels_.tolist(), model.levels_.tolist(), model.source_, model.target_
        for label, level, source, target in zip(*nodes, strict=True):
            numbers = [f"{value:.7g}" for value in (*source.tolist(), *target.tolist())]
            writer.writerow([no_formula(label), level, *numbers])
    return [path]


def _parquet(model: Any, path: Path) -> list[Path]:
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


FORMATS: Registry[Callable[[Any, Path], list[Path]]] = Registry(
    "format", {"word2vec": _word2vec, "csv": _csv, "parquet": _parquet, "npy": _npy}
)
