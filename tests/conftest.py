"""Where the tests find third-party data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of test data: ``ATP_DATA``, or ``../shared/data`` beside the repository."""
    named = os.environ.get("ATP_DATA")
    folder = Path(named) if named else _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set ATP_DATA to a folder that has them")
    return folder
