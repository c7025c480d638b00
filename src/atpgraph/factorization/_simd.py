"""Vector operations that the compiler does not find by itself.

Numba's loop vectoriser keeps the sums of a matrix product in memory; here they are held in
registers, as in a BLAS micro-kernel. The code is plain LLVM vectors of eight elements, float32 or
float64, which LLVM maps to whatever the machine has. All arrays are C-contiguous, two-dimensional
and have a number of columns divisible by :data:`TILE` (the coefficients excepted).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8
TILE = 16

_BLOCKS = "head", "body", "after"
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
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), _lanes([0] * LANES))


def _lanes(which: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), LANES), which)


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
def adagrad_step(
    typingctx: Any,
    near: Any, u: Any, mass: Any, far: Any, v: Any, wanted: Any,
    rivals: Any, at: Any, squares: Any, free: Any,
    constant: Any, margin: Any, clip: Any, rate: Any, decay: Any,
) -> Any:  # fmt: skip
    """One step of Adagrad for the vector ``x = near[u]`` with a path and the rivals met with it.

    The path leads to ``far[v]``, and x · far[v] is to be `wanted`. The rivals are the rows from
    `at` on of `rivals`, :data:`LANES` of them, and `squares` has their mean squares; x · rivals[r]
    is to be −margin or less if bit r of `free` is set. There is one learning rate for the whole
    vector: `mass` is the sum of the mean squares of the gradients of every pair so far, and `clip`
    the largest derivative by a score. Component `constant` becomes 1, if it is not −1. Returns the
    sum of the squared errors, and `mass` with what was added.
    """
    real, index = types.float32, types.intp
    signature = types.containers.UniTuple(real, 2)(
        near, index, real, far, index, real, rivals, index, squares, types.uint64, index, real,
        real, real, real,
    )  # fmt: skip

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        (_, u, mass, _, v, wanted, _, at, _, free, constant, margin, clip, rate, decay) = arguments
        near, far, rivals = (_data(context, builder, kinds[i], arguments[i]) for i in (0, 3, 6))
        squares = context.make_array(kinds[8])(context, builder, arguments[8]).data
        vector, number, word = _element(kinds[0])[0], ir.FloatType(), u.type
        zero = ir.Constant(word, 0)
        mine, path = _at(builder, near, u, zero), _at(builder, far, v, zero)
        others = [
            _at(builder, rivals, builder.add(at, ir.Constant(word, r)), zero) for r in range(LANES)
        ]

        def load(pointer: Any, j: Any) -> Any:
            return _load(builder, builder.gep(pointer, [j]), vector, 4)

        def times(a: Any, b: Any) -> Any:
            return builder.fmul(a, b, flags=_CONTRACT)

        def plus(a: Any, b: Any) -> Any:
            return builder.fadd(a, b, flags=_CONTRACT)

        def least(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered("<", a, b), a, b)

        def most(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        def lane(of: Any, i: int) -> Any:
            return builder.extract_element(of, ir.Constant(ir.IntType(32), i))

        # The products of x with the rivals, with the path, and of the path with itself.
        nothing = ir.Constant(vector, [0.0] * LANES)
        with _along(builder, near[1], [nothing] * (LANES + 2)) as (j, sums):
            x, there = load(mine, j), load(path, j)
            pairs = [(x, load(other, j)) for other in others] + [(x, there), (there, there)]
            for i, (total, (a, b)) in enumerate(zip(sums, pairs, strict=True)):
                sums[i] = plus(total, times(a, b))
        scores = _sums_by_lane(builder, sums[:LANES])
        of_path = _sums_by_lane(builder, sums[LANES:])

        # How wrong they are.
        slope = builder.fsub(lane(of_path, 0), wanted)
        loss = times(slope, slope)
        slope = most(least(slope, clip), builder.fneg(clip))
        width = builder.sitofp(near[1], number)
        gradient = times(times(slope, slope), builder.fdiv(lane(of_path, 1), width))
        masked = builder.bitcast(
            builder.trunc(free, ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES)
        )
        excess = most(builder.fadd(scores, _splat(builder, margin, vector)), nothing)
        excess = builder.select(masked, excess, nothing)
        errors = times(excess, excess)
        excess = least(excess, _splat(builder, clip, vector))
        gradients = times(times(excess, excess), load(squares, at))
        both = _sums_by_lane(builder, [errors, gradients])
        loss = plus(loss, lane(both, 0))
        mass = plus(mass, plus(gradient, lane(both, 1)))

        # The step.
        root = builder.module.declare_intrinsic("llvm.sqrt", [number])
        tiny = ir.Constant(number, 1e-8)
        length = builder.fdiv(rate, builder.call(root, [builder.fadd(mass, tiny)]))
        one = ir.Constant(number, 1.0)
        keep = _splat(builder, builder.fsub(one, times(length, decay)), vector)
        length = builder.fneg(length)
        toward = _splat(builder, times(length, slope), vector)
        excess = times(excess, _splat(builder, length, vector))
        factors = [_splat(builder, lane(excess, r), vector) for r in range(LANES)]
        lanes = ir.Constant(ir.VectorType(word, LANES), list(range(LANES)))
        ones = ir.Constant(vector, [1.0] * LANES)
        with _along(builder, near[1], []) as (j, _):
            total = plus(times(keep, load(mine, j)), times(toward, load(path, j)))
            more = nothing
            for r in range(0, LANES, 2):
                total = plus(total, times(factors[r], load(others[r], j)))
                more = plus(more, times(factors[r + 1], load(others[r + 1], j)))
            columns = builder.add(lanes, _splat(builder, j, lanes.type))
            is_constant = builder.icmp_signed("==", columns, _splat(builder, constant, lanes.type))
            total = builder.select(is_constant, ones, plus(total, more))
            _store(builder, total, builder.gep(mine, [j]), vector, 4)
        return context.make_tuple(builder, signature.return_type, [loss, mass])

    return signature, codegen


@contextmanager
def _along(builder: Any, width: Any, sums: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """A loop over a row, :data:`LANES` columns at a time, in which the body renews the `sums`.

    The list has what they are at the beginning; in the body what they have become so far, which it
    replaces; and afterwards what they are in the end.
    """
    zero = ir.Constant(width.type, 0)
    before = builder.block
    head, body, after = (builder.append_basic_block(f"row.{name}") for name in _BLOCKS)
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(width.type)
    j.add_incoming(zero, before)
    totals = [builder.phi(each.type) for each in sums]
    for total, each in zip(totals, sums, strict=True):
        total.add_incoming(each, before)
    builder.cbranch(builder.icmp_signed("<", j, width), body, after)
    builder.position_at_end(body)
    fresh = list(totals)
    yield j, fresh
    j.add_incoming(builder.add(j, ir.Constant(width.type, LANES)), builder.block)
    for total, each in zip(totals, fresh, strict=True):
        total.add_incoming(each, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    fresh[:] = totals


def _sums_by_lane(builder: Any, vectors: list[Any]) -> Any:
    """Of one, two, four or eight vectors, one whose lane r has the sum of the r-th.

    Of two vectors, one with the sums of neighbours: of both after each other, `half` at a time.
    """
    half = 1
    while half < LANES:
        masks = [
            [(i // half % 2) * LANES + (i - half * (i // half % 2)) + shift for i in range(LANES)]
            for shift in (0, half)
        ]
        pairs = zip(vectors[::2], vectors[1::2], strict=True) if len(vectors) > 1 else [vectors * 2]
        vectors = [
            builder.fadd(*(builder.shuffle_vector(a, b, _lanes(mask)) for mask in masks))
            for a, b in pairs
        ]
        half *= 2
    return vectors[0]
