"""Sets of bits in compiled kernels."""

from __future__ import annotations

import numpy as np

from atpgraph.util.jit import kernel


@kernel
def popcount(x: np.uint64) -> np.uint64:
    """Number of ones; LLVM knows this idiom and emits one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
