"""Prefetch memory in compiled kernels.

A search of a large graph waits for memory at every node unless the rows of nodes further back in
its queue are requested in time.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

FAR, NEAR = 32, 16  # places ahead in a queue: prefetch the pointer of a row, then the row


def prefetch(array: Any, at: Any) -> None:
    """Prefetch ``array[at]`` of a one-dimensional array; does nothing in plain Python."""


if not numba.config.DISABLE_JIT:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
            ask = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
            # 0: to read; 3: keep it in all caches; 1: data, not instructions.
            builder.call(ask, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen
