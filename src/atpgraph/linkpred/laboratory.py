"""The old name of :mod:`atpgraph.linkpred.benchmark`, for one release."""

import warnings

from atpgraph.linkpred.benchmark import *  # noqa: F403
from atpgraph.linkpred.benchmark import BenchmarkResult as LabResult  # noqa: F401

warnings.warn(
    "atpgraph.linkpred.laboratory is now atpgraph.linkpred.benchmark; the old name goes in 0.4.",
    DeprecationWarning,
    stacklevel=2,
)
