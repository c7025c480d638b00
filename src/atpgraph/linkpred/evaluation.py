"""Score the tests of a split with a fitted method."""

from __future__ import annotations

from dataclasses import dataclass, field

from atpgraph.linkpred.measures import Curves, Measures
from atpgraph.linkpred.method import Method, under
from atpgraph.linkpred.splits import Split


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was measured, by protocol.

    Attributes
    ----------
    metrics : mapping from protocol to mapping from metric to value
        ``ranking`` is against all nodes, ``ranking-100`` against a sample.
    headlines : mapping from protocol to the metric to read first
    curves : mapping from protocol to Curves
    """

    metrics: dict[str, dict[str, float]]
    headlines: dict[str, str] = field(default_factory=dict)
    curves: dict[str, Curves] = field(default_factory=dict)


def evaluate(method: Method, split: Split) -> Evaluation:
    """Evaluate a method, fitted on ``split.train``, under all protocols of the split."""
    measured: dict[str, Measures] = {}
    for name, test in split.tests.items():
        measured |= test.judge(under(method, name), name)
    return Evaluation(
        {name: part.metrics for name, part in measured.items()},
        {name: part.headline for name, part in measured.items()},
        {name: part.curves for name, part in measured.items() if part.curves is not None},
    )
