"""The score that tells paths from other pairs."""

from __future__ import annotations

import numpy as np

from atpgraph import ATP
from atpgraph.closure import closure_forests


def test_the_threshold_tells_paths_from_other_pairs(links: ATP) -> None:
    fitted = links
    rows, _ = closure_forests(fitted.dag_)
    reach = rows.to_sparse(fitted.levels_).toarray() > 0
    other = ~reach & ~np.eye(len(reach), dtype=bool)
    u, v = np.indices(reach.shape)
    found = fitted.predict(fitted.labels_[u.ravel()], fitted.labels_[v.ravel()]).reshape(u.shape)
    paper = fitted.source_ @ fitted.target_.T > 0
    right = (found[reach].mean() + 1 - found[other].mean()) / 2
    assert right > (paper[reach].mean() + 1 - paper[other].mean()) / 2 + 0.1
    best = max(
        (scores > cut)[reach].mean() - (scores > cut)[other].mean()
        for scores in [fitted.source_ @ fitted.target_.T]
        for cut in np.quantile(scores, np.linspace(0, 1, 200))
    )
    assert right > (1 + best) / 2 - 0.02
