"""What turns a text into a vector."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float32Array

BATCH = 32  # texts of one length that go through a model together


class TextModel(ABC):
    """Turns texts into vectors of length 1; the vector of a text depends on nothing else.

    Attributes
    ----------
    name : str
        ``static``, ``dense``, or the name of a folder.
    files : tuple of Path
        Weights and tokeniser.
    """

    name: str
    files: tuple[Path, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.files, self.name)  # another process reads the files again

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files and of how they are used: what vectors are kept under."""
        whole = hashlib.sha256(self.recipe.encode())
        for file in self.files:
            whole.update(bytes.fromhex(file_digest(file)))
        return whole.hexdigest()

    @property
    @abstractmethod
    def recipe(self) -> str:
        """What besides the files decides the vectors, in a few words."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the vectors."""

    @abstractmethod
    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Numbers of the tokens of every text."""

    @abstractmethod
    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        """One vector for each of several texts with equally many tokens, at least one."""

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """One row per text; zeros for a text without a token.

        Only texts of equal length share a batch: without padding, a vector is the same whatever
        else is asked for.
        """
        # Half a surrogate pair, which a broken argument or JSON may hold, is no character.
        tokens = self.tokens([text.encode("utf-8", "replace").decode() for text in texts])
        lengths = np.array([len(each) for each in tokens], dtype=np.int64)
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        for length in np.unique(lengths[lengths > 0]).tolist():
            places = np.flatnonzero(lengths == length)
            for start in range(0, len(places), BATCH):
                some = places[start : start + BATCH]
                vectors[some] = _normed(self.pooled([tokens[place] for place in some.tolist()]))
        return vectors


def _normed(vectors: Float32Array) -> Float32Array:
    if not np.isfinite(vectors).all():
        raise InputError("The text model gives vectors that are not numbers.")
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def file_digest(file: Path) -> str:
    """SHA-256 of a file."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
