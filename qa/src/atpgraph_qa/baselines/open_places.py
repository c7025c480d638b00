"""The router with places kept open for people with few answers.

Sorted by probability, people with few answers come last: there are thousands of them, and each is
unlikely. Whoever wants them to be found has to give them places. Here every fifth place goes to the
best of them who is not listed yet, which is what a :class:`~atpgraph_qa.Policy` with a share of
0.2 does with five suggestions.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.query import Query

EVERY = 5
MOST_ANSWERS = 10


class RouterWithNewcomers(Router):
    """The router, every fifth place being for somebody with at most ten answers."""

    name: ClassVar[str] = "router-newcomers"

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """Return minus the place of every candidate."""
        scores = super().score(query, candidates)
        if self.pool != "all":
            return scores
        given = np.append(query.history.n_given, 0.0)[query.history.codes(candidates)]
        return -open_places(scores, given <= MOST_ANSWERS, EVERY).astype(np.float64)


def open_places(scores: Float64Array, few: BoolArray, every: int) -> Int64Array:
    """Return the places, from 1, when each `every`-th is for the best of `few` not yet listed.

    Equal scores keep their order.

    Examples
    --------
    >>> scores, few = np.array([9.0, 8.0, 7.0, 6.0, 5.0]), np.array([False] * 3 + [True] * 2)
    >>> open_places(scores, few, 2)
    array([1, 3, 5, 2, 4])
    """
    order = np.argsort(-scores, kind="stable")
    others, open_to = order[~few[order]], order[few[order]]
    natural = np.flatnonzero(few[order]) + 1
    number = np.arange(1, len(open_to) + 1)
    # The j-th of the few has a place at every · j at the latest, unless the others run out.
    wanted = np.minimum(natural, every * number)
    places = np.empty(len(scores), dtype=np.int64)
    places[open_to] = number + np.minimum(wanted - number, len(others))
    places[others] = np.setdiff1d(np.arange(1, len(scores) + 1), places[open_to])
    return places
