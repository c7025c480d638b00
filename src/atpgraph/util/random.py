"""Make NumPy generators from the `random_state` that a user gives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from atpgraph.errors import InputError

RandomState = int | np.random.Generator | np.random.SeedSequence | None


def generator(random_state: RandomState = None) -> np.random.Generator:
    """Return a generator from a seed, a seed sequence, or a generator (returned as it is).

    Examples
    --------
    >>> bool(generator(0).integers(10) == generator(0).integers(10))
    True
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state is {random_state!r}; it takes a whole number from 0, a NumPy generator "
            "or a seed sequence."
        ) from None


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator, to assign to ``rng.bit_generator.state``."""
    return dict(rng.bit_generator.state)


def kernel_seed(rng: np.random.Generator) -> np.uint64:
    """Return a seed for a compiled kernel with its own generator."""
    return np.uint64(rng.integers(1, 2**63, dtype=np.int64))


def seed_of_svds(rng: np.random.Generator) -> dict[str, Any]:
    """Return the argument that passes `rng` to :func:`scipy.sparse.linalg.svds`.

    If the rank is too low, the solvers draw vectors of their own, which a start vector does not
    seed.
    """
    from scipy.sparse.linalg import svds

    return {"rng" if "rng" in inspect.signature(svds).parameters else "random_state": rng}
