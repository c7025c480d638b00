"""The plane of the vectors, against a singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.embedding.projection import projection


@pytest.mark.parametrize("purpose", ["fitted", "links"])
def test_the_plane_is_the_best_fit(purpose: str, request) -> None:
    model = request.getfixturevalue(purpose)
    sources, targets, shares = projection(model)
    both = np.concatenate([model.source_, model.target_]).astype(float)
    if model.margin_ > 0:
        both = both[:, :-2]  # the biases are left out
    both -= both.mean(axis=0)
    values = np.linalg.svd(both, compute_uv=False) ** 2
    flat = np.concatenate([sources, targets])
    assert (flat**2).sum(axis=0) == pytest.approx(values[:2], rel=1e-6)
    assert shares == pytest.approx(values[:2] / values.sum())
    thin = ATP(n_components=1).fit([(0, 1), (1, 2)])
    assert projection(thin)[0][:, 1].tolist() == [0, 0, 0]
