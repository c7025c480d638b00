"""The world of the attack, made once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if os.name == "nt":
    collect_ignore_glob = ["test_*"]


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    pytest.importorskip("py7zr")
    from .world import build

    root = tmp_path_factory.mktemp("world")
    build(root)
    return root
