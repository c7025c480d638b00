"""Seconds per alternating iteration against `implicit` on the same matrix written out.

    python benchmarks/embed.py GRAPH [GRAPH …] [--components 64] [--threads 2]

GRAPH is a text file of "source target" lines (# comments, .gz is fine). Cycles are broken with
igraph's Eades heuristic. Everything in a row of the table is measured in one run; `--no-implicit`
leaves the slow comparison out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import igraph
import numpy as np
import scipy.sparse as sp

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.factorization import factorize
from atpgraph.factorization.nnls import gram_of
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels


def read_dag(path: Path) -> DiGraph:
    graph = DiGraph.from_edges(np.loadtxt(path, comments="#", dtype=np.int64))
    graph = graph.keep_edges(graph.sources != graph.targets)
    ends = np.stack([graph.sources, graph.targets], axis=1)
    cut = igraph.Graph(n=graph.n_nodes, edges=ends, directed=True).feedback_arc_set(method="eades")
    keep = np.ones(graph.n_edges, dtype=bool)
    keep[cut] = False
    return graph.keep_edges(keep)


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def gram_share(width: int = 64) -> tuple[float, float]:
    """GFLOP/s of the Gram kernel, gathering included, and of the machine's sgemm; one thread."""
    vectors = np.random.default_rng(0).random((50_000, width), dtype=np.float32)
    gram_of(vectors)
    blocks = width // 16
    computed = 16 * 16 * blocks * (blocks + 1) // 2  # blocks on and above the diagonal
    rate = len(vectors) * computed * 2 / seconds(lambda: gram_of(vectors), 10) / 1e9
    a = np.random.default_rng(0).random((1500, 1500), dtype=np.float32)
    return rate, 2 * 1500**3 / seconds(lambda: a @ a, 10) / 1e9


def implicit_seconds(matrix: sp.csr_matrix, components: int, threads: int) -> float:
    """The faster of two iterations of implicit's alternating least squares."""
    from implicit.cpu.als import AlternatingLeastSquares

    times: list[float] = []
    model = AlternatingLeastSquares(
        factors=components, iterations=2, num_threads=threads, random_state=0
    )
    model.fit(matrix, show_progress=False, callback=lambda _i, spent, *_: times.append(spent))
    return min(times)


def measure(path: Path, components: int, threads: int, with_implicit: bool) -> str:
    """One line of the table."""
    dag = read_dag(path)
    rank = levels(dag)
    table = kernel_table("log", int(rank.max()))
    start = time.perf_counter()
    rows, columns = closure_forests(dag, n_jobs=threads)
    closure = time.perf_counter() - start

    def fit(iterations: int) -> object:
        return factorize(
            rows, columns, rank, table, n_components=components, max_iter=iterations, tol=0,
            n_jobs=threads, random_state=0,
        )  # fmt: skip

    fit(1)
    iteration = (seconds(lambda: fit(4)) - seconds(lambda: fit(1))) / 3
    line = (
        f"{path.name} | {rows.n_pairs:,} | {rows.n_extras:,} / {columns.n_extras:,} | "
        f"{closure:.2f} | {iteration:.3f}"
    )
    if with_implicit:
        matrix = sp.csr_matrix(rows.to_sparse(rank, "log").astype(np.float32))
        theirs = implicit_seconds(matrix, components, threads)
        line += f" | {theirs:.2f} | {theirs / iteration:.1f}"
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", type=Path)
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-implicit", action="store_true")
    options = parser.parse_args()
    ours, blas = gram_share()
    print(f"Gram kernel {ours:.0f} GFLOP/s, sgemm {blas:.0f} GFLOP/s: {ours / blas:.0%}")
    print("graph | pairs | extras rows / columns | closure s | iteration s | implicit s | ratio")
    for path in options.graphs:
        print(
            measure(path, options.components, options.threads, not options.no_implicit), flush=True
        )


if __name__ == "__main__":
    main()
