"""Fit ATP in a process of its own, with the version that is installed, and save its vectors.

Run: python _fit.py JOB, a JSON file with "graph" (npz of sources, targets, n), "params" and
"output" (npz of the vectors and the cost of the fit).
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from atpgraph import ATP, DiGraph, random_dag


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with np.load(job["graph"]) as held:
        graph = DiGraph.from_codes(held["sources"], held["targets"], int(held["n"]))
    ATP(**job["params"]).fit(random_dag(1500, 4000, random_state=0))  # compiles the kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    model = ATP(**job["params"]).fit(graph)
    cpu = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    order = graph.codes(model.labels_)
    source, target = np.empty_like(model.source_), np.empty_like(model.target_)
    source[order], target[order] = model.source_, model.target_
    np.savez(job["output"], source=source, target=target, cpu=cpu, peak=(before, peak))


if __name__ == "__main__":
    main()
