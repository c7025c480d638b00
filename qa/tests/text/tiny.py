"""A text model of one's own, small enough to be made in a test: a table of token vectors as ONNX.

The file is written byte by byte (protocol buffers: a tag, a length, the content), so that no test
needs the library that makes ONNX files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

WORDS = ["[UNK]", "train", "rome", "visa", "embassy", "ticket", "passport", "the", "a", "to"]


def _varint(number: int) -> bytes:
    made = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        made.append(low | (0x80 if number else 0))
        if not number:
            return bytes(made)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, *parts: bytes | str) -> bytes:
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _value(field: int, name: str, kind: int, dims: list[str]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, dim)) for dim in dims)
    tensor = _bytes(1, _number(1, kind), _bytes(2, shape))
    return _bytes(field, _bytes(1, name), _bytes(2, tensor))


def onnx_bytes(table: np.ndarray, asks: str = "input_ids") -> bytes:
    """A model that looks up a row of `table` for every token: Gather(table, ids)."""
    node = _bytes(1, _bytes(1, "table"), _bytes(1, asks), _bytes(2, "rows"), _bytes(4, "Gather"))
    weights = _bytes(
        5,
        *(_number(1, size) for size in table.shape),
        _number(2, 1),
        _bytes(8, "table"),
        _bytes(9, table.astype("<f4").tobytes()),
    )
    graph = _bytes(
        7,
        node,
        _bytes(2, "tiny"),
        weights,
        _value(11, asks, 7, ["batch", "sequence"]),
        _value(12, "rows", 1, ["batch", "sequence", "width"]),
    )
    return _number(1, 8) + graph + _bytes(8, _number(2, 13))


def write_model(folder: Path, size: int = 6, seed: int = 0) -> Path:
    """A folder with ``model.onnx`` and ``tokenizer.json``."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).normal(size=(len(WORDS), size))
    (folder / "model.onnx").write_bytes(onnx_bytes(table))
    codes = {word: code for code, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(codes, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
