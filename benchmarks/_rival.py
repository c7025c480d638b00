"""Vectors by another method, from a file of edges to a file: ``_rival.py KIND GRAPH OUTPUT``.

A process that imports nothing else; it prints the wall seconds of its stages as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def main() -> None:
    """Read, embed with 64 components, save."""
    kind, path, output = sys.argv[1:]
    clock = [time.perf_counter()]
    vectors: list[Any]
    if kind == "nrp":
        from atpgraph import read_edgelist
        from atpgraph.linkpred.baselines import nrp

        graph = read_edgelist(path)
        clock.append(time.perf_counter())
        vectors = list(nrp(graph, 64))
    else:
        import pycleora

        matrix = pycleora.SparseMatrix.from_files([path], "complex::reflexive::node")
        clock.append(time.perf_counter())
        whiten = kind == "pycleora-whitened"
        vectors = [pycleora.embed(matrix, feature_dim=64, num_iterations=4, whiten=whiten)]
    clock.append(time.perf_counter())
    np.savez(output, *vectors)
    clock.append(time.perf_counter())
    stages = ("read", "factorization", "save")
    print(json.dumps({"seconds": dict(zip(stages, np.diff(clock).tolist(), strict=True))}))


if __name__ == "__main__":
    main()
