"""Compute the vectors of texts once, and store them beside the site.

::

    SITE/vectors-0f3a09c2/
      keys.npy         SHA-256 of every text, its first 16 bytes, ascending
      vectors.npy      the vectors in the same order, half precision

One folder per text model, named by the digest of its files. A text is looked up by what it says, so
that vectors survive a new dump of the site. It is a cache: damaged entries are computed again, and
if it cannot be written, the vectors are used anyway.
"""

from __future__ import annotations

import hashlib
import html
import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import load_array
from atpgraph.util.arrays import AnyArray
from atpgraph.util.files import atomic_folder
from atpgraph.util.progress import stage
from atpgraph_qa.data.store import VECTORS
from atpgraph_qa.text.model import TextModel

_KEYS, _VECTORS = "keys.npy", "vectors.npy"
_PART = 1 << 14
_SLICE = 64  # texts between two looks at the clock: well below a second
_KEY = np.dtype("S16")
_MARKUP = re.compile(r"<[^>]*>")
_BODY_START = 300  # letters of a body that stand for a missing title

Vectors = np.ndarray[Any, np.dtype[np.float16]]


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
    return " ".join(html.unescape(_MARKUP.sub(" ", body)).split())[:_BODY_START]


def text_vectors(
    model: TextModel,
    texts: Sequence[str],
    site: Path | None = None,
    turn: Callable[[Vectors], AnyArray] = np.asarray,
) -> AnyArray:
    """Return vectors of texts, one row each; vectors stored beside the site are reused.

    `turn` says what to make of them, some rows at a time: those of a large site take gigabytes.
    """
    wanted = np.array([_key(text) for text in texts], dtype=_KEY)
    keys, first = np.unique(wanted, return_index=True)
    folder = None if site is None else site / f"{VECTORS}{model.digest[:8]}"
    old_keys, old = _read(folder, model.size)
    place = np.minimum(np.searchsorted(old_keys, keys), max(len(old_keys) - 1, 0))
    known = old_keys[place] == keys if len(old_keys) else np.zeros(len(keys), dtype=np.bool_)
    missing = np.flatnonzero(~known)
    fresh: Vectors = np.zeros((len(missing), model.size), dtype=np.float16)
    with stage(f"{model.name} vectors of texts", len(missing)) as step:
        for start in range(0, len(missing), _SLICE):
            some = missing[start : start + _SLICE]
            texts_here = [texts[at] for at in first[some].tolist()]
            fresh[start : start + len(some)] = model.encode(texts_here)
            step.advance(len(some))

    def parts() -> Iterator[Vectors]:
        """Return all vectors in the order of their keys."""
        for start in range(0, max(len(keys), 1), _PART):
            part = slice(start, start + _PART)
            rows: Vectors = np.empty((len(keys[part]), model.size), dtype=np.float16)
            rows[~known[part]] = fresh[np.searchsorted(missing, start) :][: np.sum(~known[part])]
            rows[known[part]] = old[place[part][known[part]]]
            _forget(old)
            yield rows

    turned = np.concatenate([turn(rows) for rows in parts()])
    if folder is not None and len(missing):
        _write(folder, keys, parts())
    return np.asarray(turned[np.searchsorted(keys, wanted)])


def _key(text: str) -> bytes:
    # NumPy drops zero bytes at the end of fixed-length strings: the last byte is never one.
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:15] + b"."


def _read(folder: Path | None, size: int) -> tuple[AnyArray, AnyArray]:
    """Return the stored keys and vectors; nothing if they are damaged."""
    nothing = np.zeros(0, dtype=_KEY), np.zeros((0, size), dtype=np.float16)
    if folder is None:
        return nothing
    try:
        keys = load_array(folder / _KEYS)
        vectors = load_array(folder / _VECTORS, "r")
    except (OSError, ValueError):
        return nothing
    fits = keys.dtype == _KEY and keys.ndim == 1 and vectors.dtype == np.float16
    if not fits or vectors.shape != (len(keys), size) or np.any(keys[1:] <= keys[:-1]):
        return nothing
    for start in range(0, len(keys), _PART):
        if not np.isfinite(vectors[start : start + _PART]).all():
            return nothing
        _forget(vectors)
    return keys, vectors


def _forget(vectors: AnyArray) -> None:
    """Give back what was read of a mapped file, which counts as memory for as long as it is not."""
    mapped: Any = getattr(vectors, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _write(folder: Path, keys: AnyArray, parts: Iterable[Vectors]) -> None:
    try:
        with atomic_folder(folder, known=(_KEYS, _VECTORS)) as new:
            np.save(new / _KEYS, keys, allow_pickle=False)
            with (new / _VECTORS).open("wb") as file:
                for number, rows in enumerate(parts):
                    if number == 0:
                        shape = len(keys), rows.shape[1]
                        header = {"descr": "<f2", "fortran_order": False, "shape": shape}
                        np.lib.format.write_array_header_1_0(file, header)
                    file.write(rows.astype("<f2", copy=False).tobytes())
    except InputError:
        pass  # a site that cannot be written to is no reason not to train
