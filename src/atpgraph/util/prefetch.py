"""Memory asked for before it is needed.

Who walks over a large graph waits for memory at every node, unless what a queue will need is on
its way long before its turn comes.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

FAR, NEAR = 32, 16  # places ahead in a queue: where a row begins is asked for first, then the row


def prefetch(array: Any, at: Any) -> None:
    """Have ``array[at]`` of one dimension brought near; in plain Python nothing."""


if not numba.config.DISABLE_JIT:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
            ask = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
            # To read, to stay in all caches, data.
            builder.call(ask, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen
