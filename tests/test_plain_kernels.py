"""Compiled kernels do what the same lines do as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.plain_kernels import compute


def test_compiled_and_plain_agree(tmp_path) -> None:
    root = Path(__file__).resolve().parent.parent
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.plain_kernels", str(tmp_path / "plain.npz")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, cwd=root, check=True, timeout=600,
    )  # fmt: skip
    compiled = compute()
    with np.load(tmp_path / "plain.npz") as plain:
        assert set(plain.files) == set(compiled)
        for name, value in compiled.items():
            if value.dtype.kind == "f":
                # Sums are taken in another order, in float32 for the vectors.
                np.testing.assert_allclose(plain[name], value, rtol=2e-2, atol=2e-3, err_msg=name)
            else:
                np.testing.assert_array_equal(plain[name], value, err_msg=name)
