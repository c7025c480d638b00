"""Where the tests find real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs and sites, or a skip that says why."""
    root = Path(__file__).resolve().parent.parent
    candidate = Path(os.environ.get("ATP_DATA", root.parent / "shared" / "data"))
    if not (candidate / "graphs").is_dir():
        pytest.skip(f"real data not found at {candidate}; set ATP_DATA to run this test")
    return candidate
