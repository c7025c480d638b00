"""A model that several tests read."""

from __future__ import annotations

import pytest

from atpgraph import ATP
from atpgraph.graph import generators

GRAPH = generators.noisy_hierarchy(120, 500, 30, random_state=1).graph


@pytest.fixture(scope="module")
def fitted() -> ATP:
    return ATP(n_components=8, random_state=0).fit(GRAPH)


@pytest.fixture(scope="module")
def links() -> ATP:
    return ATP(n_components=8, purpose="paper", zero_weight="auto", random_state=0).fit(GRAPH)
