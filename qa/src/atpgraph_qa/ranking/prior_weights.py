"""Weights that the router starts from, learned from one large site.

A site with a few hundred resolved questions cannot tell by itself how much a recent answer is worth
against an old one; and sites do not differ much in it. ``prior_weights.json`` is made by
``benchmarks/teach_router.py``, which says from which questions.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.ranking.names import NAMES, names_of
from atpgraph_qa.text.choice import BM25, DENSE, STATIC
from atpgraph_qa.timeline.query import Pool


@cache
def _stored() -> dict[str, dict[str, float]]:
    file = files("atpgraph_qa.ranking").joinpath("prior_weights.json")
    stored: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8"))
    return stored


def prior_weights(
    pool: Pool, without: tuple[str, ...] = (), text: str | None = None
) -> Float64Array:
    """Return the weight of every feature, not standardized, in the order of ``NAMES``.

    Those of the groups in `without` are 0. Without the name of a text model the weights were
    learned from words alone; for a model of one's own they are those of ``dense``.

    Examples
    --------
    >>> float(prior_weights("all")[NAMES.index("days_since")]) > 0
    True
    """
    kind = BM25 if text is None else text if text == STATIC else DENSE
    stored = _stored()[f"{pool}-{kind}"]
    hidden = names_of(without)
    return np.array([0.0 if name in hidden else stored.get(name, 0.0) for name in NAMES])
