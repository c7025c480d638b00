"""Names for the array types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.integer[Any]]
UInt32Array = npt.NDArray[np.uint32]
UInt64Array = npt.NDArray[np.uint64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
FloatArray = npt.NDArray[np.floating[Any]]
