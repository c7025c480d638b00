"""A tile of a matrix product whose sums stay in vector registers.

Numba's loop vectorizer keeps such sums in memory, which makes the paper's method twice as slow. The
code is plain LLVM: vectors of eight elements, float32 or float64, which LLVM maps to whatever the
machine has. With ``ATPGRAPH_PLAIN_KERNELS=1``, and without compilation, :func:`plain_tile` runs
instead.
"""

from __future__ import annotations

import os
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from atpgraph.util.jit import fast_kernel

HEIGHT, TILE, LANES = 4, 16, 8
_CONTRACT = ("contract",)  # multiply and add in one instruction where there is one


@fast_kernel
def plain_tile(
    out: Any, o: Any, source: Any, s: Any, i: Any, j: Any, panel: Any, depth: Any
) -> None:
    """Compute what :func:`tile` computes, without handwritten instructions."""
    for r in range(HEIGHT):
        for c in range(j, j + TILE):
            out[o + i + r, c] = source[s + i + r, c]
    for p in range(depth):
        for r in range(HEIGHT):
            factor = panel[p, i + r]
            for c in range(j, j + TILE):
                out[o + i + r, c] += factor * panel[p, c]


@intrinsic
def _tile(
    typingctx: Any,
    out: Any,
    o: Any,
    source: Any,
    s: Any,
    i: Any,
    j: Any,
    panel: Any,
    depth: Any,
) -> Any:
    """``out[o + i + r, J] = source[s + i + r, J] + Σ_p panel[p, i + r] · panel[p, J]``.

    For r < 4, p < depth and J = j : j + 16. All arrays are C-contiguous and have a number of
    columns divisible by 16.
    """
    index = types.intp
    signature = types.void(out, index, source, index, index, index, panel, index)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        _, o, _, s, i, j, _, depth = arguments
        bits = kinds[0].dtype.bitwidth
        vector = ir.VectorType(ir.FloatType() if bits == 32 else ir.DoubleType(), LANES)
        word = depth.type

        def number(value: int) -> Any:
            return ir.Constant(word, value)

        def rows(at: int) -> tuple[Any, Any]:
            """Pointer to the first element of an array, and its number of columns."""
            array = context.make_array(kinds[at])(context, builder, arguments[at])
            return array.data, builder.extract_value(array.shape, 1)

        def place(base: tuple[Any, Any], row: Any, column: Any) -> Any:
            return builder.gep(base[0], [builder.add(builder.mul(row, base[1]), column)])

        def load(pointer: Any) -> Any:
            return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=bits // 8)

        def splat(scalar: Any) -> Any:
            undefined, lane = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return builder.shuffle_vector(
                builder.insert_element(undefined, scalar, lane), undefined, zeros
            )

        out, source, panel = rows(0), rows(2), rows(6)
        parts = [builder.add(j, number(LANES * h)) for h in range(TILE // LANES)]
        at = [builder.add(i, number(r)) for r in range(HEIGHT)]
        start = [load(place(source, builder.add(s, row), part)) for row in at for part in parts]
        before = builder.block
        head, body, after = (
            builder.append_basic_block(f"tile.{x}") for x in ("head", "body", "end")
        )
        builder.branch(head)

        builder.position_at_end(head)
        p = builder.phi(word)
        sums = [builder.phi(vector) for _ in start]
        p.add_incoming(number(0), before)
        for total, first in zip(sums, start, strict=True):
            total.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", p, depth), body, after)

        builder.position_at_end(body)
        right = [load(place(panel, p, part)) for part in parts]
        fresh = []
        for r, row in enumerate(at):
            factor = splat(builder.load(place(panel, p, row), align=bits // 8))
            for h, piece in enumerate(right):
                product = builder.fmul(factor, piece, flags=_CONTRACT)
                fresh.append(builder.fadd(sums[r * len(parts) + h], product, flags=_CONTRACT))
        p.add_incoming(builder.add(p, number(1)), body)
        for total, value in zip(sums, fresh, strict=True):
            total.add_incoming(value, body)
        builder.branch(head)

        builder.position_at_end(after)
        for r, row in enumerate(at):
            for h, part in enumerate(parts):
                pointer = place(out, builder.add(o, row), part)
                pointer = builder.bitcast(pointer, vector.as_pointer())
                builder.store(sums[r * len(parts) + h], pointer, align=bits // 8)
        return context.get_dummy_value()

    return signature, codegen


is_plain = bool(numba.config.DISABLE_JIT or os.environ.get("ATPGRAPH_PLAIN_KERNELS"))
tile: Any = plain_tile if is_plain else _tile
