"""One run of a cycle breaker in a process of its own, with any version of the package.

Run: python benchmarks/_breaking.py METHOD EDGES [SRC]

SRC is the source folder of another version, such as that of 0.1.0. Prints a JSON object: seconds,
CPU seconds, megabytes above what the process held with the graph in memory (by Linux' high-water
mark, else None) and the number of edges removed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def megabytes(field: str) -> float | None:
    """A field of what Linux knows about this process."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith(field)), None)


def main() -> None:
    """Break the cycles of a uniform random graph, once."""
    method, edges = sys.argv[1], int(sys.argv[2])
    sys.path[:0] = sys.argv[3:4]
    from atpgraph import break_cycles, gnm

    break_cycles(gnm(100, 400, 0), method)  # compile
    graph = gnm(edges // 5, edges, 1)
    mark = Path("/proc/self/clear_refs")
    if mark.exists():
        mark.write_text("5", encoding="ascii")  # the mark starts from what is held now
    held, wall, cpu = megabytes("VmRSS"), time.perf_counter(), time.process_time()
    result = break_cycles(graph, method)
    assert result.dag.n_edges == edges - len(result.removed)
    wall, cpu, peak = time.perf_counter() - wall, time.process_time() - cpu, megabytes("VmHWM")
    above = None if held is None or peak is None else max(peak - held, 0.0)
    print(json.dumps({"wall": wall, "cpu": cpu, "mb": above, "removed": len(result.removed)}))


if __name__ == "__main__":
    main()
