"""The approximate index against the exact search: recall, time to build, time to ask.

    python benchmarks/index.py --output benchmarks/results/index.md

Beside the shipped index (Faiss, HNSW, vectors lifted to one length) what else was tried: Faiss by
inner product, Faiss with inverted lists, usearch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import Report, arguments, markdown

from atpgraph import ATP, noisy_hierarchy
from atpgraph.embedding.index import BUILD, LINKS, SEARCH
from atpgraph.embedding.ranking import top_by_product

K = 10


def candidates(vectors: np.ndarray, queries: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Functions that build an index and return one that searches it."""
    import faiss
    from usearch.index import Index

    n, dim = vectors.shape
    length = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    lift = np.sqrt(length.max() - length)
    lifted = np.column_stack([vectors, lift]).astype(np.float32)
    asked = np.column_stack([queries, np.zeros(len(queries))]).astype(np.float32)

    def hnsw(data: np.ndarray, ask: np.ndarray, metric: int) -> Any:
        index = faiss.IndexHNSWFlat(data.shape[1], LINKS, metric)
        index.hnsw.efConstruction = BUILD
        index.add(data)
        index.hnsw.efSearch = SEARCH
        return lambda: index.search(ask, K)[1]

    def lists() -> Any:
        centres = faiss.IndexFlatIP(dim)
        index = faiss.IndexIVFFlat(centres, dim, int(n**0.5), faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.add(vectors)
        index.nprobe = 32
        return lambda centres=centres: index.search(queries, K)[1]

    def usearch(data: np.ndarray, ask: np.ndarray, metric: str) -> Any:
        index = Index(
            ndim=data.shape[1], metric=metric, dtype="f32", connectivity=LINKS,
            expansion_add=BUILD, expansion_search=SEARCH,
        )  # fmt: skip
        index.add(np.arange(n), data, threads=1)
        return lambda: index.search(ask, K, threads=1).keys

    return {
        "Faiss HNSW, lifted (shipped)": lambda: hnsw(lifted, asked, faiss.METRIC_L2),
        "Faiss HNSW, inner product": lambda: hnsw(vectors, queries, faiss.METRIC_INNER_PRODUCT),
        "Faiss inverted lists": lists,
        "usearch HNSW, lifted": lambda: usearch(lifted, asked, "l2sq"),
        "usearch HNSW, inner product": lambda: usearch(vectors, queries, "ip"),
    }


def main() -> None:
    """Fit a model for each purpose, measure every index."""
    parser = arguments((__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=50_000)
    options = parser.parse_args()
    import faiss

    faiss.omp_set_num_threads(1)
    command = f"python benchmarks/index.py --nodes {options.nodes}"
    report = Report("An approximate index", command, options.output)
    n = options.nodes
    graph = noisy_hierarchy(n, 4 * n, n // 10, random_state=3).graph
    rows: list[list[object]] = []
    for purpose in ("reachability", "links"):
        model = ATP(64, purpose=purpose, random_state=0).fit(graph)
        some = np.random.default_rng(0).choice(n, 500, replace=False)
        vectors = np.ascontiguousarray(model.target_, dtype=np.float32)
        queries = np.ascontiguousarray(model.source_[some], dtype=np.float32)
        started = time.perf_counter()
        _, exact = top_by_product(queries, vectors, K)
        each = (time.perf_counter() - started) / len(some) * 1e3
        rows.append([purpose, "exact, in blocks", 1.0, 0.0, each])
        for name, build in candidates(vectors, queries).items():
            used = time.process_time()
            search = build()
            built = time.process_time() - used
            started = time.perf_counter()
            found = np.asarray(search()).astype(np.int64)
            each = (time.perf_counter() - started) / len(some) * 1e3
            scores = np.einsum("ijk,ik->ij", vectors[found], queries)
            floor = exact[:, -1:] - 1e-5 * np.abs(exact[:, -1:])
            recall = float(np.mean(scores >= floor))
            rows.append([purpose, name, recall, built, each])
    report.add(
        f"Target vectors of {n:,} nodes of a noisy hierarchy, k = 64; the ten best of 500 nodes; "
        "one thread. An answer as good as the tenth exact one counts as found."
    )
    report.add(markdown(["purpose", "index", "recall", "build, CPU s", "ms a question"], rows))
    report.save()


if __name__ == "__main__":
    main()
