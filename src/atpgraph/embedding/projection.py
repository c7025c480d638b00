"""The plane in which the vectors of a model spread the most."""

from __future__ import annotations

import numpy as np

from atpgraph.embedding.estimator import ATP
from atpgraph.util.arrays import Float64Array


def projection(model: ATP) -> tuple[Float64Array, Float64Array, list[float]]:
    """Return the principal components of source and target vectors together.

    One plane for both sides, so that a node's two points can be compared.

    Returns
    -------
    sources, targets : arrays of shape (n, 2)
        Coordinates of the nodes, in the order of ``labels_``.
    shares : list of two floats
        Share of the variance along each axis.

    Examples
    --------
    >>> sources, targets, shares = projection(ATP(n_components=3).fit([(0, 1), (1, 2), (0, 2)]))
    >>> sources.shape, targets.shape
    ((3, 2), (3, 2))
    """
    model._fitted()
    both = np.concatenate([model.source_, model.target_]).astype(np.float64)
    if model.margin_ > 0 and both.shape[1] > 2:
        both = both[:, :-2]  # biases and ones: far from everything else for nodes without paths
    both -= both.mean(axis=0)
    _, values, axes = np.linalg.svd(both.T @ both)
    # A singular vector and its negative are equally good: the largest entry is made positive.
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    flat = np.zeros((len(both), 2))
    shares = [0.0, 0.0]
    for at in range(min(2, len(values))):
        flat[:, at] = both @ axes[at]
        shares[at] = float(values[at] / values.sum()) if values.sum() > 0 else 0.0
    n = len(model.source_)
    return flat[:n], flat[n:], shares
