"""Models that turn a text into a vector: token vectors (static), or a transformer in ONNX."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.archive import parse_json
from atpgraph.util.arrays import Float32Array

BATCH = 32  # texts of one length that go through a model together
MOST_TOKENS = 128
PURPOSE = "Text by meaning"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class TextModel(ABC):
    """Turns texts into vectors of length 1; the vector of a text depends on nothing else.

    Parameters
    ----------
    weights, tokenizer : path
        The files; the second is a ``tokenizer.json``.
    name : str, optional
        By default ``static`` or ``dense``; for your own model, the name of its folder.
    """

    kind: ClassVar[str]
    recipe: ClassVar[str]  # what besides the files decides the vectors, in a few words
    most_tokens: ClassVar[int | None] = None

    def __init__(self, weights: Path, tokenizer: Path, name: str = "") -> None:
        self.name, self.files = name or self.kind, (weights, tokenizer)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files and of how they are used, the key of stored vectors."""
        whole = hashlib.sha256(self.recipe.encode())
        for file in self.files:
            whole.update(bytes.fromhex(file_digest(file)))
        return whole.hexdigest()

    @cached_property
    def size(self) -> int:
        """Length of the vectors."""
        return int(self.pooled([[0]]).shape[1])

    @abstractmethod
    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the tokens of every text."""

    @abstractmethod
    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        """Return one vector for each of several texts with equally many tokens, at least one."""

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Return one row per text; zeros for a text without a token.

        Only texts of equal length share a batch: without padding, the vector of a text does not
        depend on the other texts.
        """
        # A lone surrogate, from a broken argument or JSON, cannot be encoded: replace it.
        tokens = self.tokens([text.encode("utf-8", "replace").decode() for text in texts])
        lengths = np.array([len(each) for each in tokens], dtype=np.int64)
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        for length in np.unique(lengths[lengths > 0]).tolist():
            places = np.flatnonzero(lengths == length)
            for start in range(0, len(places), BATCH):
                some = places[start : start + BATCH]
                found = self.pooled([tokens[place] for place in some.tolist()])
                if not np.isfinite(found).all():
                    raise InputError("The text model gives vectors that are not numbers.")
                norm = np.linalg.norm(found, axis=1, keepdims=True)
                vectors[some] = found / np.maximum(norm, 1e-12)
        return vectors

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, which truncates long texts and pads none."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingDependencyError("tokenizers", "dense", PURPOSE, "atpgraph-qa") from None
        file = self.files[1]
        try:
            tokenizer = Tokenizer.from_buffer(_content(file))
        except InputError:
            raise
        except Exception as error:  # the library raises plain Exception
            raise InputError(f"{file} is not a tokenizer.json ({error}).") from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if self.most_tokens is not None:
            tokenizer.enable_truncation(self.most_tokens)
        return tokenizer


class StaticText(TextModel):
    """The mean of the vectors of a text's tokens, which takes little time.

    `weights` is a ``.safetensors`` file with one matrix of half-precision numbers, as in the
    package ``wordllama``, whose code is not imported.
    """

    kind = "static"
    recipe = "mean of token vectors, 1"

    @cached_property
    def _table(self) -> Float32Array:
        return read_matrix(self.files[0]).astype(np.float32)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # Without tokens for beginning and end, which say nothing.
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        last = len(self._table) - 1
        return [[min(number, last) for number in each.ids] for each in encoded]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        rows = self._table[np.array(tokens, dtype=np.int64)]
        return np.asarray(rows.mean(axis=1), dtype=np.float32)


class OnnxText(TextModel):
    """A transformer as sentence-transformers exports it, for onnxruntime; no torch.

    `weights` is an ONNX model with the input ``input_ids`` and optionally ``attention_mask`` and
    ``token_type_ids``. Vectors of tokens are averaged; a model whose output has two dimensions is
    assumed to average them itself. Everything runs on one thread: a title takes a few milliseconds,
    and the sums come out the same everywhere.
    """

    kind = "dense"
    recipe = f"mean over at most {MOST_TOKENS} tokens, 1"
    most_tokens = MOST_TOKENS

    @cached_property
    def _session(self) -> Any:
        # Since 1.29 it reports every session to its makers unless this is set before it is loaded.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        try:
            import onnxruntime
        except ImportError:
            raise MissingDependencyError("onnxruntime", "dense", PURPOSE, "atpgraph-qa") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        file = self.files[0]
        try:
            session = onnxruntime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # a dozen kinds of its own
            raise InputError(f"{file} is not a model for onnxruntime ({_brief(error)}).") from error
        wanted = {entry.name for entry in session.get_inputs()}
        if "input_ids" not in wanted or not wanted <= set(_INPUTS):
            raise InputError(
                f"{file} asks for {', '.join(sorted(wanted))}; a text model asks for "
                f"{', '.join(_INPUTS)}."
            )
        return session

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch(list(texts))
        # A blank text has only the tokens for beginning and end.
        return [each.ids if text.strip() else [] for text, each in zip(texts, encoded, strict=True)]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        session, ids = self._session, np.array(tokens, dtype=np.int64)
        given = dict(zip(_INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))
        asked = {entry.name: given[entry.name] for entry in session.get_inputs()}
        try:
            result = np.asarray(session.run(None, asked)[0])
        except Exception as error:
            raise InputError(f"{self.files[0]} cannot read a text ({_brief(error)}).") from error
        if result.ndim == 3:
            result = result.mean(axis=1)
        if result.ndim != 2 or len(result) != len(ids):
            raise InputError(f"{self.files[0]} does not give one vector for every text or token.")
        return np.asarray(result, dtype=np.float32)


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(_content(file)).hexdigest()


def read_matrix(file: Path) -> np.ndarray[Any, np.dtype[np.float16]]:
    """Return the one matrix of a ``.safetensors`` file: a length, JSON, and the numbers."""
    raw = _content(file)
    try:
        start = 8 + int.from_bytes(raw[:8], "little")
        header = parse_json(raw[8:start].decode())
        (entry,) = (entry for name, entry in header.items() if name != "__metadata__")
        rows, columns = entry["shape"]
        first, last = entry["data_offsets"]
        if entry["dtype"] != "F16" or rows < 1 or columns < 1:
            raise ValueError("no matrix of half-precision numbers")
        numbers = np.frombuffer(raw[start + first : start + last], dtype="<f2")
        return numbers.reshape(rows, columns).astype(np.float16, copy=False)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} is not a file of token vectors ({error}).") from error
