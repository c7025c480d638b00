"""Weights that the router starts from, learnt from one large site.

A site with a few hundred resolved questions cannot tell by itself how much a recent answer is worth
against an old one; and sites do not differ much in it. ``taught.json`` is made by
``benchmarks/teach_router.py``, which says from which questions.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np

from atpgraph.cqa.routing.features import GROUPS, NAMES
from atpgraph.cqa.routing.method import Floats
from atpgraph.cqa.routing.protocols import Pool


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = files("atpgraph.cqa.routing").joinpath("taught.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found


def taught_weights(pool: Pool, without: tuple[str, ...] = ()) -> Floats:
    """Weight of every feature as it comes, in the order of :data:`~.features.NAMES`.

    Parameters
    ----------
    pool : {"own", "all"}
    without : names of feature groups
        Their weights are 0. Without ``atp`` the others were learnt without it, too.

    Examples
    --------
    >>> float(taught_weights("all")[NAMES.index("days_since")]) > 0
    True
    """
    found = _weights()[f"{pool}-without-atp" if "atp" in without else pool]
    hidden = {name for group in without for name in GROUPS[group]}
    return np.array([0.0 if name in hidden else found.get(name, 0.0) for name in NAMES])
