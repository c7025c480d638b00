"""Sentence vectors from an ONNX model, as sentence-transformers exports them; no torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.arrays import Float32Array
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.text.tokens import PURPOSE, load_tokenizer

MOST_TOKENS = 128
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxText(TextModel):
    """A transformer that gives a vector per token, or one per text.

    Parameters
    ----------
    weights : path
        An ONNX model with the input ``input_ids`` and, if it likes, ``attention_mask`` and
        ``token_type_ids``. Vectors of tokens are averaged; a model whose output has two dimensions
        is taken to have done so itself.
    tokenizer : path
        ``tokenizer.json``.
    name : str

    Notes
    -----
    Everything runs on one thread: a title takes a few milliseconds, and the sums come out the same
    everywhere.
    """

    recipe = f"mean over at most {MOST_TOKENS} tokens, 1"

    def __init__(self, weights: Path, tokenizer: Path, name: str = "dense") -> None:
        self.name = name
        self.files = weights, tokenizer

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
        try:
            session = onnxruntime.InferenceSession(
                str(self.files[0]), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # a dozen kinds of its own
            why = " ".join(str(error).split())[:200]
            raise InputError(f"{self.files[0]} is not a model for onnxruntime ({why}).") from error
        wanted = {entry.name for entry in session.get_inputs()}
        if "input_ids" not in wanted or not wanted <= set(_INPUTS):
            raise InputError(
                f"{self.files[0]} asks for {', '.join(sorted(wanted))}; a text model asks for "
                f"{', '.join(_INPUTS)}."
            )
        return session

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self.files[1], MOST_TOKENS)

    @cached_property
    def size(self) -> int:
        """See :attr:`TextModel.size`; found by a trial."""
        return int(self.pooled([[0]]).shape[1])

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`TextModel.tokens`."""
        encoded = self._tokenizer.encode_batch(list(texts))
        # Marks of beginning and end alone are no text.
        return [each.ids if text.strip() else [] for text, each in zip(texts, encoded, strict=True)]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        """See :meth:`TextModel.pooled`."""
        session, ids = self._session, np.array(tokens, dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        given["token_type_ids"] = np.zeros_like(ids)
        asked = {entry.name: given[entry.name] for entry in session.get_inputs()}
        try:
            result = np.asarray(session.run(None, asked)[0])
        except Exception as error:
            why = " ".join(str(error).split())[:200]
            raise InputError(f"{self.files[0]} cannot read a text ({why}).") from error
        if result.ndim == 3:
            result = result.mean(axis=1)
        if result.ndim != 2 or len(result) != len(ids):
            raise InputError(f"{self.files[0]} does not give one vector for every text or token.")
        return np.asarray(result, dtype=np.float32)
