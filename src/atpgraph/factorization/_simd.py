"""Two vector operations that the compiler does not find by itself.

Numba's loop vectoriser keeps the sums of a matrix product in memory; here they are held in
registers, as in a BLAS micro-kernel. The code is plain LLVM vectors of eight elements, float32 or
float64, which LLVM maps to whatever the machine has. All arrays are C-contiguous, two-dimensional
and have a number of columns divisible by :data:`TILE` (the coefficients excepted).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8
TILE = 16

_CONTRACT = ("contract",)  # multiply and add in one instruction where there is one


def _data(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, Any]:
    """Pointer to the first element and number of columns."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, builder.extract_value(array.shape, 1)


def _at(builder: Any, base: tuple[Any, Any], row: Any, column: Any) -> Any:
    return builder.gep(base[0], [builder.add(builder.mul(row, base[1]), column)])


def _load(builder: Any, pointer: Any, vector: Any, bytes_each: int) -> Any:
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=bytes_each)


def _store(builder: Any, value: Any, pointer: Any, vector: Any, bytes_each: int) -> None:
    builder.store(value, builder.bitcast(pointer, vector.as_pointer()), align=bytes_each)


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    single = builder.insert_element(
        ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
    )
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), mask)


def _element(kind: Any) -> tuple[Any, int]:
    element = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(element, LANES), kind.dtype.bitwidth // 8


def _tile(rows: int, columns: int) -> Any:
    """Make ``out[o + r, J] = source[s + r, J] + Σ_p A[a + p, i + r] · B[b + p, J]``.

    For r < `rows` and p < depth; J is ``j : j + columns``.
    """
    parts = columns // LANES

    @intrinsic
    def tile(
        typingctx: Any,
        out: Any,
        o: Any,
        source: Any,
        s: Any,
        j: Any,
        A: Any,
        a: Any,
        i: Any,
        B: Any,
        b: Any,
        depth: Any,
    ) -> Any:
        index = types.intp
        signature = types.void(out, index, source, index, index, A, index, index, B, index, index)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = signature.args
            vector, width = _element(kinds[0])
            o, s, j, a, i, b, depth = (arguments[k] for k in (1, 3, 4, 6, 7, 9, 10))
            out = _data(context, builder, kinds[0], arguments[0])
            source = _data(context, builder, kinds[2], arguments[2])
            A = _data(context, builder, kinds[5], arguments[5])
            B = _data(context, builder, kinds[8], arguments[8])
            word = depth.type
            column = [builder.add(j, ir.Constant(word, LANES * h)) for h in range(parts)]
            start = [
                _load(
                    builder,
                    _at(builder, source, builder.add(s, ir.Constant(word, r)), column[h]),
                    vector,
                    width,
                )
                for r in range(rows)
                for h in range(parts)
            ]
            before = builder.block
            head = builder.append_basic_block("tile.head")
            body = builder.append_basic_block("tile.body")
            after = builder.append_basic_block("tile.after")
            left = _at(builder, A, a, i)
            right = _at(builder, B, b, j)
            builder.branch(head)

            builder.position_at_end(head)
            p = builder.phi(word)
            left_at, right_at = builder.phi(left.type), builder.phi(right.type)
            sums = [builder.phi(vector) for _ in start]
            p.add_incoming(ir.Constant(word, 0), before)
            left_at.add_incoming(left, before)
            right_at.add_incoming(right, before)
            for total, first in zip(sums, start, strict=True):
                total.add_incoming(first, before)
            builder.cbranch(builder.icmp_signed("<", p, depth), body, after)

            builder.position_at_end(body)
            right_parts = [
                _load(
                    builder,
                    builder.gep(right_at, [ir.Constant(word, LANES * h)]),
                    vector,
                    width,
                )
                for h in range(parts)
            ]
            fresh = []
            for r in range(rows):
                scalar = builder.load(builder.gep(left_at, [ir.Constant(word, r)]), align=width)
                factor = _splat(builder, scalar, vector)
                for h in range(parts):
                    product = builder.fmul(factor, right_parts[h], flags=_CONTRACT)
                    total = sums[r * parts + h]
                    fresh.append(builder.fadd(total, product, flags=_CONTRACT))
            p.add_incoming(builder.add(p, ir.Constant(word, 1)), body)
            left_at.add_incoming(builder.gep(left_at, [A[1]]), body)
            right_at.add_incoming(builder.gep(right_at, [B[1]]), body)
            for total, value in zip(sums, fresh, strict=True):
                total.add_incoming(value, body)
            builder.branch(head)

            builder.position_at_end(after)
            for r in range(rows):
                for h in range(parts):
                    place = _at(builder, out, builder.add(o, ir.Constant(word, r)), column[h])
                    _store(builder, sums[r * parts + h], place, vector, width)
            return context.get_dummy_value()

        return signature, codegen

    return tile


tile4 = _tile(4, TILE)
tile1 = _tile(1, TILE)
tile1_wide = _tile(1, 4 * TILE)


@intrinsic
def add_row(typingctx: Any, out: Any, o: Any, source: Any, s: Any, factor: Any) -> Any:
    """``out[o] += factor · source[s]``, row by row."""
    signature = types.void(out, types.intp, source, types.intp, out.dtype)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        vector, width = _element(kinds[0])
        out = _data(context, builder, kinds[0], arguments[0])
        source = _data(context, builder, kinds[2], arguments[2])
        scale = _splat(builder, arguments[4], vector)
        zero = ir.Constant(arguments[1].type, 0)
        into = _at(builder, out, arguments[1], zero)
        of = _at(builder, source, arguments[3], zero)
        step = ir.Constant(zero.type, LANES)
        with cgutils.for_range_slice(builder, zero, out[1], step, zero.type) as (j, _):
            place = builder.gep(into, [j])
            product = builder.fmul(
                scale, _load(builder, builder.gep(of, [j]), vector, width), flags=_CONTRACT
            )
            total = builder.fadd(_load(builder, place, vector, width), product, flags=_CONTRACT)
            _store(builder, total, place, vector, width)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def dot_rows(typingctx: Any, out: Any, x: Any, u: Any, vectors: Any, v: Any) -> Any:
    """``out[r] = ⟨x[u], vectors[v + r]⟩`` for r < :data:`LANES`; `out` has one dimension."""
    signature = types.void(out, x, types.intp, vectors, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        vector, width = _element(kinds[0])
        place = context.make_array(kinds[0])(context, builder, arguments[0]).data
        x = _data(context, builder, kinds[1], arguments[1])
        vectors = _data(context, builder, kinds[3], arguments[3])
        word = arguments[2].type
        zero = ir.Constant(word, 0)
        mine = _at(builder, x, arguments[2], zero)
        others = [
            _at(builder, vectors, builder.add(arguments[4], ir.Constant(word, r)), zero)
            for r in range(LANES)
        ]
        before = builder.block
        head = builder.append_basic_block("dot.head")
        body = builder.append_basic_block("dot.body")
        after = builder.append_basic_block("dot.after")
        builder.branch(head)

        builder.position_at_end(head)
        j = builder.phi(word)
        sums = [builder.phi(vector) for _ in others]
        j.add_incoming(zero, before)
        for total in sums:
            total.add_incoming(ir.Constant(vector, [0.0] * LANES), before)
        builder.cbranch(builder.icmp_signed("<", j, x[1]), body, after)

        builder.position_at_end(body)
        part = _load(builder, builder.gep(mine, [j]), vector, width)
        for total, other in zip(sums, others, strict=True):
            factor = _load(builder, builder.gep(other, [j]), vector, width)
            product = builder.fmul(part, factor, flags=_CONTRACT)
            total.add_incoming(builder.fadd(total, product, flags=_CONTRACT), body)
        j.add_incoming(builder.add(j, ir.Constant(word, LANES)), body)
        builder.branch(head)

        builder.position_at_end(after)
        # Of two vectors, one with the sums of neighbours: of both after each other, `half` at a
        # time. In the end lane r has all of row r.
        half = 1
        while len(sums) > 1:
            masks = [
                [
                    (i // half % 2) * LANES + (i - half * (i // half % 2)) + shift
                    for i in range(LANES)
                ]
                for shift in (0, half)
            ]
            sums = [
                builder.fadd(
                    *(
                        builder.shuffle_vector(
                            a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask)
                        )
                        for mask in masks
                    )
                )
                for a, b in zip(sums[::2], sums[1::2], strict=True)
            ]
            half *= 2
        _store(builder, sums[0], place, vector, width)
        return context.get_dummy_value()

    return signature, codegen
