"""Static vectors: the mean of the vectors of a text's tokens, for machines with little time.

The weights are those that the package ``wordllama`` carries. Only its two files are read; its code
is not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import parse_json
from atpgraph.util.arrays import Float32Array
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.text.tokens import load_tokenizer


class StaticText(TextModel):
    """A table of token vectors.

    Parameters
    ----------
    weights : path
        A ``.safetensors`` file with one matrix of half-precision numbers.
    tokenizer : path
        ``tokenizer.json``.
    name : str
    """

    recipe = "mean of token vectors, 1"

    def __init__(self, weights: Path, tokenizer: Path, name: str = "static") -> None:
        self.name = name
        self.files = weights, tokenizer

    @cached_property
    def _table(self) -> Float32Array:
        return read_matrix(self.files[0]).astype(np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self.files[1], None)

    @property
    def size(self) -> int:
        """See :attr:`TextModel.size`."""
        return int(self._table.shape[1])

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`TextModel.tokens`; no marks of beginning and end, which say nothing."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        last = len(self._table) - 1
        return [[min(number, last) for number in each.ids] for each in encoded]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        """See :meth:`TextModel.pooled`."""
        rows = self._table[np.array(tokens, dtype=np.int64)]
        return np.asarray(rows.mean(axis=1), dtype=np.float32)


def read_matrix(file: Path) -> np.ndarray[Any, np.dtype[np.float16]]:
    """The one matrix of a ``.safetensors`` file: a length, JSON, and the numbers."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
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
