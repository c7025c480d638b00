"""Weight of a reachable pair as a function of the difference Δ of levels, kept as a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float64Array
from atpgraph.util.registry import Registry

# Largest weight of a pair: vectors are single precision, and solvers square the weights.
LARGEST_WEIGHT = 1e12

Kernel = str | Callable[[Float64Array], npt.ArrayLike]

KERNELS: Registry[Callable[[Float64Array], Float64Array]] = Registry(
    "kernel",
    {
        "log": lambda delta: np.log(np.e + delta),
        "harmonic": lambda delta: np.cumsum(1.0 / delta),
        "linear": np.array,
        "constant": np.ones_like,
    },
)


def kernel_table(kernel: Kernel, n_levels: int) -> Float64Array:
    """Values f(Δ) of a weight function for Δ = 0 … n_levels − 1; f(0) = 0 is never used.

    Parameters
    ----------
    kernel : {"constant", "linear", "harmonic", "log"} or callable
        1, Δ, Σ_{k ≤ Δ} 1/k, ln(e + Δ), or a function that gets the array 1 … n_levels − 1
        and returns as many numbers from 0 to 10¹².
    n_levels : int
        The largest difference is one less.

    Examples
    --------
    >>> kernel_table("harmonic", 4).tolist()
    [0.0, 1.0, 1.5, 1.8333333333333333]
    >>> kernel_table(lambda delta: delta**2, 4).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    delta = np.arange(1, max(n_levels, 1), dtype=np.float64)
    if callable(kernel):
        values = np.asarray(kernel(delta), dtype=np.float64)
        if values.shape != delta.shape:
            raise InputError(
                f"The kernel returned an array of shape {values.shape}, not {delta.shape}."
            )
    else:
        values = KERNELS[kernel](delta)
    bad = np.flatnonzero(~((values >= 0) & (values <= LARGEST_WEIGHT)))
    if len(bad):
        raise InputError(
            f"The kernel is {values[bad[0]]} at a difference of {bad[0] + 1} levels; "
            f"weights must be from 0 to {LARGEST_WEIGHT:g}."
        )
    return np.concatenate([[0.0], values])
