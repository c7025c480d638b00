"""Compute the vectors of texts once, and store them beside the site.

::

    SITE/vectors-0f3a09c2/
      keys.npy         SHA-256 of every text, its first 16 bytes, ascending
      vectors.npy      the vectors in the same order

One folder per text model, named by the digest of its files. A text is looked up by its content, so
that vectors survive a new dump of the site. It is a cache: damaged entries are computed again, and
if it cannot be written, the vectors are used anyway.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import load_array
from atpgraph.util.arrays import AnyArray
from atpgraph.util.files import atomic_folder
from atpgraph.util.progress import stage
from atpgraph_qa.data.store import VECTORS
from atpgraph_qa.text.model import TextModel

_KEYS, _VECTORS = "keys.npy", "vectors.npy"
_SLICE = 64  # texts between two looks at the clock: well below a second
_KEY = np.dtype("S16")
_BODY_START = 300  # letters of a body that stand for a missing title


def question_text(title: str, body: str) -> str:
    """Return the text that becomes the vector of a question: its title, or the start of its body.

    The title says what is asked, and reading whole bodies takes ten times as long. BM25 reads all.

    Examples
    --------
    >>> question_text("", "<p>Trains in &amp; around Rome</p>")
    'Trains in & around Rome'
    """
    if title.strip():
        return title.strip()
    return " ".join(plain_text(body).split())[:_BODY_START]


def plain_text(body: str) -> str:
    """Return the text of HTML."""
    end = body.rfind(">") + 1  # what follows is no markup: many "<" there would take quadratic time
    return html.unescape(re.sub(r"<[^>]*>", " ", body[:end]) + body[end:])


def text_vectors(
    model: TextModel,
    texts: Sequence[str],
    site: Path | None = None,
    encode: Callable[[list[str]], AnyArray] | None = None,
    recipe: str = "",
) -> AnyArray:
    """Return vectors of texts, one row each; vectors stored beside the site are reused.

    `encode` computes some rows, by default in half precision, and `recipe` names the settings
    besides the model on which the vectors depend.
    """
    encode = encode or (lambda some: model.encode(some).astype(np.float16))
    wanted = np.array([_key(recipe + text) for text in texts], dtype=_KEY)
    keys, first = np.unique(wanted, return_index=True)
    nothing = encode([])
    folder = None if site is None else site / f"{VECTORS}{model.digest[:8]}"
    old_keys, old = _read(folder, nothing)
    known = np.isin(keys, old_keys)
    rows = np.empty((len(keys), nothing.shape[1]), dtype=nothing.dtype)
    rows[known] = old[np.searchsorted(old_keys, keys[known])]
    missing = np.flatnonzero(~known)
    with stage(f"{model.name} vectors of texts", len(missing)) as step:
        for start in range(0, len(missing), _SLICE):
            some = missing[start : start + _SLICE]
            rows[some] = encode([texts[at] for at in first[some].tolist()])
            step.advance(len(some))
    if folder is not None and len(missing):
        # A site that cannot be written to is no reason not to train.
        with suppress(InputError), atomic_folder(folder, known=(_KEYS, _VECTORS)) as new:
            np.save(new / _KEYS, keys, allow_pickle=False)
            np.save(new / _VECTORS, rows, allow_pickle=False)
    return rows[np.searchsorted(keys, wanted)]


def _key(text: str) -> bytes:
    # NumPy drops zero bytes at the end of fixed-length strings: the last byte is never one.
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:15] + b"."


def _read(folder: Path | None, nothing: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the stored keys and vectors; empty if they are damaged or of another kind."""
    none = np.zeros(0, dtype=_KEY), nothing
    if folder is None:
        return none
    try:
        keys, vectors = load_array(folder / _KEYS), load_array(folder / _VECTORS)
    except (OSError, ValueError):
        return none
    fits = keys.dtype == _KEY and keys.ndim == 1 and vectors.dtype == nothing.dtype
    fits = fits and vectors.shape == (len(keys), nothing.shape[1])
    if not fits or np.any(keys[1:] <= keys[:-1]) or not np.isfinite(vectors).all():
        return none
    return keys, vectors
