"""What counts otherwise for people with few answers.

Somebody with two answers and somebody with a thousand are not told apart by the same signs: for the
first it matters more that the last answer was yesterday, or that they asked about this very thing.
So the features that say such things are there once more, for people with at most ten answers, and
for those with at most three.
"""

from __future__ import annotations

import numpy as np

from atpgraph._typing import Float64Array
from atpgraph.cqa.routing.features.names import FEW_MOST, FEW_OF
from atpgraph.cqa.routing.timeline.query import Query


def few_features(query: Query, columns: dict[str, Float64Array]) -> dict[str, Float64Array]:
    """Features of all users; `columns` has those they repeat, as far as there are any."""
    made = {}
    for most in FEW_MOST:
        few = (query.history.n_given <= most).astype(np.float64)
        made[f"few{most}"] = few
        made |= {f"few{most}_{name}": few * columns[name] for name in FEW_OF if name in columns}
    return made
