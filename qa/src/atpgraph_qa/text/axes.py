"""The axes that vectors of a text model are turned to: fewer, and the same on every site.

Most of what tells questions apart lies along a few directions. The axes of ``static`` and
``dense`` are principal components of the titles of one large site, before the split of its
evaluation (``benchmarks/teach_router.py`` makes the files). On shared axes a weight learnt on one
site means the same on another; and a fraction of the numbers is read for every question.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np

from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray, Float32Array
from atpgraph_qa.text.model import TextModel

N_AXES = 128
FORMAT, VERSION = "atpgraph-text-axes", 1
FILE = "axes-{}.npz"
_FIELDS = {"mean": Field("f", ("d",)), "basis": Field("f", ("d", "k"))}


@dataclass(frozen=True, eq=False)
class Axes:
    """A centre and directions.

    Attributes
    ----------
    mean : float32 array of shape (size,)
    basis : float32 array of shape (size, axes)
        Orthonormal columns, the one with the largest variance first.
    """

    mean: Float32Array
    basis: Float32Array

    @classmethod
    def principal(cls, vectors: AnyArray, n_axes: int = N_AXES) -> Axes:
        """The principal components of vectors, one per row."""
        mean = vectors.astype(np.float64).mean(axis=0)
        away = vectors.astype(np.float64) - mean
        _, directions = np.linalg.eigh(away.T @ away)
        basis = directions[:, ::-1][:, :n_axes]
        # Signs are arbitrary: the largest entry is positive, so that they are the same anywhere.
        largest = np.abs(basis).argmax(axis=0)
        basis = basis * np.sign(basis[largest, np.arange(basis.shape[1])])
        return cls(mean.astype(np.float32), basis.astype(np.float32))

    def __call__(self, vectors: AnyArray) -> Float32Array:
        """Vectors along the axes, of length 1 again; zeros stay zeros."""
        given = np.asarray(vectors, dtype=np.float32)
        turned = (given - self.mean) @ self.basis
        turned[~given.any(axis=1)] = 0.0
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        return np.asarray(turned / np.maximum(length, 1e-12), dtype=np.float32)


@cache
def _shipped(name: str) -> tuple[str, Axes] | None:
    """The axes in the package for a model, with the digest of the model they were learnt with."""
    resource = files("atpgraph_qa.text").joinpath(FILE.format(name))
    if not resource.is_file():
        return None
    with as_file(resource) as file:
        return read_archive(file, FORMAT, VERSION, "axes of a text model", _FIELDS, _restore)


def _restore(description: dict[str, object], arrays: dict[str, AnyArray]) -> tuple[str, Axes]:
    mean, basis = (arrays[name].astype(np.float32) for name in ("mean", "basis"))
    return str(description["model"]), Axes(mean, basis)


def shared_axes(model: TextModel) -> Axes | None:
    """The axes of a model that comes in a wheel; None for a model of one's own."""
    found = _shipped(model.name)
    return found[1] if found is not None and found[0] == model.digest else None


def write_axes(path: str, model: TextModel, axes: Axes) -> None:
    """Write the file that :func:`shared_axes` reads; half precision is plenty."""
    description = {"format": FORMAT, "version": VERSION, "model": model.digest}
    arrays = {"mean": axes.mean.astype(np.float16), "basis": axes.basis.astype(np.float16)}
    write_archive(path, description, arrays)
