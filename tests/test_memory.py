"""Budgets and peaks."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.util.memory import available_bytes, budget_bytes, peak_megabytes, peak_memory


def test_budgets_in_words() -> None:
    assert budget_bytes("2GiB") == 2**31
    assert 0 < budget_bytes(None) <= available_bytes()
    assert budget_bytes(1e300) == budget_bytes("9" * 40 + "TB") == budget_bytes(2**62)
    for bad in ("4 apples", "", "-1GB", 0, float("nan"), float("inf"), [1]):
        with pytest.raises(InputError, match="budget"):
            budget_bytes(bad)  # type: ignore[arg-type]


def test_peak_is_that_of_the_block() -> None:
    with peak_memory() as peak:
        block = np.ones(40_000_000, dtype=np.uint8)
        del block
    with peak_memory() as quiet:
        pass
    if peak.bytes is not None:
        assert 38_000_000 <= peak.bytes < 400_000_000
        assert quiet.bytes < 38_000_000
    assert peak_megabytes() >= 0
