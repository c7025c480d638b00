"""The world of the attack, made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

if os.name == "nt":
    collect_ignore_glob = ["test_*"]


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Iterator[Path]:
    for module in ("py7zr", "pyarrow", "matplotlib"):
        pytest.importorskip(module)
    from .forked import freeze
    from .world import build

    root = tmp_path_factory.mktemp("world")
    build(root)
    yield root
    freeze()  # without what the children needed
