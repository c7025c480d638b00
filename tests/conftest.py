"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# A first call compiles; a deadline would blame the example for it.
hypothesis.settings.register_profile("atpgraph", deadline=None)
hypothesis.settings.load_profile("atpgraph")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with the public data sets, or a skip."""
    given = os.environ.get("ATP_DATA")
    root = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no data at {root}; set ATP_DATA")
    return root
