"""Plain twins of the vector instructions, for runs with ``NUMBA_DISABLE_JIT=1``.

Intrinsics exist only inside compiled code. Where kernels run as Python, these NumPy lines stand in
for them; they are also what the instructions are documented to compute.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest

from atpgraph.factorization import _gram, _update, rows


def _tile(height: int, width: int):
    def tile(out, o, source, s, j, A, a, i, B, b, depth):
        left = A[a : a + depth, i : i + height]
        right = B[b : b + depth, j : j + width]
        out[o : o + height, j : j + width] = source[s : s + height, j : j + width] + left.T @ right

    return tile


def _add_row(out, o, source, s, factor):
    out[o] += factor * source[s]


@pytest.fixture(autouse=True, scope="package")
def plain_vector_instructions():
    if not numba.config.DISABLE_JIT:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, height, width in (("tile4", 4, 16), ("tile1", 1, 16), ("tile1_wide", 1, 64)):
            patch.setattr(_gram, name, _tile(height, width))
        for module in (_gram, _update, rows):
            patch.setattr(module, "add_row", _add_row)
        with np.errstate(over="ignore"):  # integers wrap in compiled code without a word
            yield
