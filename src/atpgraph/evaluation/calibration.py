"""Compare stated probabilities with outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.util.arrays import Float64Array

ABSTAIN_BELOW = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)


def reliability(stated: Float64Array, right: Float64Array, groups: int = 8) -> dict[str, Any]:
    """Compare stated confidence with outcomes, and measure the effect of abstaining.

    Parameters
    ----------
    stated, right : float64 arrays
        Confidence in the answer to every case, and whether it was right (0 or 1).
    groups : int
        Limit on the groups of equal size, by confidence; each has five cases or more.

    Returns
    -------
    dict
        ``bins``; ``error``, the mean distance between stated and observed over them; ``brier``, and
        ``brier_constant`` for always stating the share that is right; ``abstention``, the share of
        cases answered, and the share of these that are right, if cases below a confidence get no
        answer.

    Examples
    --------
    >>> reliability(np.full(8, 0.5), np.tile([0.0, 1.0], 4))["error"]
    0.0
    """
    if not len(stated):
        return {"bins": [], "error": None, "brier": None, "brier_constant": None, "abstention": []}
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(groups, max(1, len(order) // 5)))
    bins = [
        {
            "questions": len(part),
            "stated": float(stated[part].mean()),
            "right": float(right[part].mean()),
        }
        for part in parts
    ]
    away = sum(b["questions"] * abs(b["stated"] - b["right"]) for b in bins)
    abstention = []
    for least in ABSTAIN_BELOW:
        kept = stated >= least
        if kept.any():
            share, good = float(kept.mean()), float(right[kept].mean())
            abstention.append({"least": least, "answered": share, "right": good})
    return {
        "bins": bins,
        "error": away / len(stated),
        "brier": float(np.mean((stated - right) ** 2)),
        "brier_constant": float(np.mean((right.mean() - right) ** 2)),
        "abstention": abstention,
    }
