"""Vectors of questions from a text model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self

import numpy as np

from atpgraph.util.arrays import Float32Array, Int8Array
from atpgraph.util.jit import kernel
from atpgraph_qa.text.choice import shared_axes
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.text.store import question_text, text_vectors
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.tables import extended

UNIT = 127  # what 1 is rounded to


@dataclass(frozen=True, eq=False)
class Meaning:
    """Vectors of the questions of a site.

    They have length 127 and lie on the axes that all sites share, if the model has such axes; a
    question without text has zeros. Each depends on its own text alone. A byte per number is enough
    for a cosine to two digits, and a tenth of a gigabyte holds the vectors of a million questions,
    all of which are read for every new one.
    """

    model: TextModel
    vectors: Int8Array  # questions × axes
    recent: Memo = field(default_factory=Memo, repr=False)

    @classmethod
    def of(
        cls, model: TextModel, titles: Sequence[str], bodies: Sequence[str], site: Path | None
    ) -> Self:
        """Compute the vectors, or read those stored beside the site."""
        texts = [question_text(*parts) for parts in zip(titles, bodies, strict=True)]
        axes = shared_axes(model)
        recipe = "" if axes is None else hashlib.sha256(axes.basis.tobytes()).hexdigest()
        return cls(model, text_vectors(model, texts, site, partial(_encoded, model), recipe))

    @cached_property
    def is_shared(self) -> bool:
        """Whether the axes are the ones shared by all sites."""
        return shared_axes(self.model) is not None

    def grown(self, questions: Sequence[tuple[str, str, Sequence[str]]]) -> Self:
        """Return the vectors with those of more questions added, given as title, body and tags."""
        if len(questions) == 1:
            new = self.vector(*questions[0][:2])[np.newaxis]
        else:
            texts = [question_text(title, body) for title, body, _ in questions]
            new = _encoded(self.model, texts)
        return replace(self, vectors=extended(self.vectors, new))

    def vector(self, title: str, body: str) -> Int8Array:
        """Return the vector of a new question, cached because it is asked about, then observed."""
        text = question_text(title, body)

        def make() -> Int8Array:
            return np.asarray(_encoded(self.model, [text])[0])

        # By a hash: the text of somebody who is forgotten is not kept here.
        key = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        return self.recent.get("recent vectors", key, make, keep=64)

    def closeness(self, vector: Int8Array, n_questions: int) -> Float32Array:
        """Return the cosine of a vector and those of the first questions."""
        products = self.vectors[:n_questions] @ vector.astype(np.float32)  # whole numbers: exact
        return np.asarray(products * np.float32(1.0 / UNIT**2))


def _encoded(model: TextModel, texts: Sequence[str]) -> Int8Array:
    axes, vectors = shared_axes(model), model.encode(texts).astype(np.float16)
    turned = vectors.astype(np.float32) if axes is None else axes(vectors)
    return np.rint(turned * UNIT).astype(np.int8)


@kernel
def dot(vectors: Int8Array, row: int, vector: Int8Array) -> np.int32:
    """Return the product of a row and a vector, in whole numbers: the same on every machine.

    Numba makes sums and products 64 bits wide; with explicit casts this takes half the time.
    """
    total = np.int32(0)
    for axis in range(len(vector)):
        product = np.int32(np.int32(vectors[row, axis]) * np.int32(vector[axis]))
        total = np.int32(total + product)
    return total
