"""The model file: one ``.npz`` archive of plain arrays and a JSON description, no pickle."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atpgraph import __version__
from atpgraph._files import atomic_path
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph

if TYPE_CHECKING:
    from atpgraph.embedding.estimator import ATP

FORMAT = "atpgraph-model"
VERSION = 1
_ARRAYS = (
    "source",
    "target",
    "levels",
    "indptr",
    "targets",
    "removed",
    "objective",
    "kernel_table",
)


def save(model: ATP, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the same model gives the same bytes."""
    graph = model.graph_
    params = model.get_params()
    if callable(model.kernel):
        params["kernel"] = None  # a function cannot be written; its values are in kernel_table
    if not isinstance(model.random_state, int):
        params["random_state"] = None
    description = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"atpgraph {__version__}",
        "params": params,
        "n_iter": model.n_iter_,
        "zero_weight": model.zero_weight_,
        "regularization": model.regularization_,
        "threshold": model.threshold_,
        "reachable_pairs": model.n_reachable_pairs_,
        "extras": model.n_extras_,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "source": model.source_,
        "target": model.target_,
        "levels": model.levels_,
        "indptr": graph.indptr,
        "targets": graph.targets,
        "removed": model.removed_,
        "objective": model.objective_,
        "kernel_table": model.kernel_table_,
        "description": _as_bytes(json.dumps(description, sort_keys=True)),
    }
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    if graph.labels.dtype == np.int64:
        arrays["labels"] = graph.labels
    else:
        arrays["labels_json"] = _as_bytes(
            json.dumps([_plain(label) for label in graph.labels.tolist()], ensure_ascii=False)
        )
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load(kind: type[ATP], path: str | os.PathLike[str]) -> ATP:
    """Read a model file; anything else is refused with a sentence."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a directory; name a model file.")
    if not file.exists():
        raise InputError(f"{file} does not exist; make a model with 'atp embed'.")
    try:
        # Opened here, since np.load leaves a damaged archive open.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile) or "description" not in archive:
                raise InputError(f"{file} is not an atpgraph model; make one with 'atp embed'.")
            content = {name: archive[name] for name in archive.files}
        description = json.loads(_as_text(content["description"]))
        if description["format"] != FORMAT:
            raise InputError(f"{file} is not an atpgraph model; make one with 'atp embed'.")
        if description["version"] != VERSION:
            raise InputError(
                f"{file} has the model version {description['version']}, and this atpgraph "
                f"({__version__}) knows version {VERSION}; install a newer atpgraph."
            )
        return _restore(kind, description, content)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{file} is damaged or not an atpgraph model ({text}).") from error


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does; an edge list does not."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(4) == b"PK\x03\x04"


def _restore(kind: type[ATP], description: dict[str, Any], content: dict[str, Any]) -> ATP:
    source, target, levels, indptr, targets, removed, objective, table = (
        content[name] for name in _ARRAYS
    )
    if "labels" in content:
        labels = content["labels"]
    else:
        decoded = [_unplain(label) for label in json.loads(_as_text(content["labels_json"]))]
        labels = np.empty(len(decoded), dtype=object)
        for position, label in enumerate(decoded):
            labels[position] = label
    n, m = len(labels), len(targets)
    k = int(description["params"]["n_components"])
    sound = (
        source.shape == target.shape == (n, k)
        and source.dtype.kind == target.dtype.kind == "f"
        and levels.shape == (n,)
        and indptr.shape == (n + 1,)
        and (indptr[0], indptr[-1]) == (0, m)
        and bool(np.all(np.diff(indptr) >= 0))
        and (m == 0 or 0 <= targets.min() <= targets.max() < n)
        and (len(removed) == 0 or 0 <= removed.min() <= removed.max() < m)
        and all(content[name].dtype.kind == "i" for name in ("levels", "indptr", "targets"))
    )
    if not sound:
        raise ValueError("its arrays do not fit together")
    model = kind().set_params(**description["params"])
    model.graph_ = DiGraph(
        indptr.astype(np.int64), targets.astype(np.int32), labels, content.get("weights")
    )
    model.source_, model.target_, model.levels_ = source, target, levels
    model.removed_, model.objective_, model.kernel_table_ = removed, objective, table
    model.n_iter_ = int(description["n_iter"])
    model.zero_weight_ = float(description["zero_weight"])
    model.regularization_ = float(description["regularization"])
    model.threshold_ = float(description.get("threshold", 0.0))  # older files have none
    model.n_reachable_pairs_ = int(description["reachable_pairs"])
    model.n_extras_ = int(description["extras"])
    model.timings_ = {}
    return model


def _as_bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _as_text(raw: npt.NDArray[np.uint8]) -> str:
    return raw.tobytes().decode("utf-8", "surrogatepass")


def _plain(label: Any) -> Any:
    """A label as JSON; a tuple as an object, so that it comes back as a tuple."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, (str, int, float, bool)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [_plain(part) for part in label]}
    raise InputError(
        f"The label {label!r} is a {type(label).__name__}, which a model file cannot hold; "
        "use text, numbers or tuples of them as labels."
    )


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_unplain(part) for part in value["tuple"])
    return value
