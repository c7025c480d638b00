"""Graphs that several tests share."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.graph import DiGraph
from atpgraph.graph.generators import noisy_hierarchy


@pytest.fixture(scope="module")
def small() -> DiGraph:
    rng = np.random.default_rng(11)
    return DiGraph.from_codes(rng.integers(25, size=110), rng.integers(25, size=110), 25)


@pytest.fixture(scope="module")
def large() -> DiGraph:
    """Large enough for the iterative solver."""
    rng = np.random.default_rng(12)
    return DiGraph.from_codes(rng.integers(200, size=900), rng.integers(200, size=900), 200)


@pytest.fixture(scope="module")
def graph() -> DiGraph:
    return noisy_hierarchy(150, 900, 40, random_state=3).graph
