"""Speed and memory of the embedding, as ratios measured in one run.

Run: python benchmarks/embed.py [--sections iteration,nmf,file,growth,deep,million]
     [--output benchmarks/results/embed.md]

iteration: seconds of one alternating iteration (k = 64) against one of implicit's ALS on the same
matrix written out. nmf: the whole factorisation of wiki-Vote against scikit-learn's NMF. file:
`atp embed` from file to saved model against writing M out with networkx.descendants, timed on a
random sample of nodes and scaled up. growth: random graphs of 10 K, 30 K and 100 K nodes.
deep: one path and one cycle of 100 K and 1 M nodes, for both solvers, and how the time grows.
million: a citation-like graph of 1 M nodes and 2 M edges (denser ones: scale.py). The real graphs
are read from the folder that ATP_DATA names; without it, a generated one stands in.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import datetime
import functools
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _common import data_dir

from atpgraph import ATP, DiGraph, __version__, break_cycles, levels
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.factorization import Options, factorize
from atpgraph.graph import generators, read_edgelist, write_edgelist
from atpgraph.util.memory import peak_memory

COMPONENTS = 64
THREADS = 2
NAMES = ("wiki-Vote", "cit-HepPh", "p2p-Gnutella31")


def graphs() -> Iterator[tuple[str, DiGraph]]:
    """The graphs of the comparison."""
    folder = data_dir()
    if folder is None:
        yield "generated", generators.noisy_hierarchy(7_000, 60_000, 6_000, random_state=0).graph
        return
    for name in NAMES:
        yield name, read_edgelist(folder / "graphs" / f"{name}.txt.gz")


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """Least of a few runs."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def implicit_seconds(matrix: sp.csr_matrix) -> float:
    """The faster of two iterations of implicit's alternating least squares."""
    from implicit.cpu.als import AlternatingLeastSquares

    times: list[float] = []
    model = AlternatingLeastSquares(
        factors=COMPONENTS, iterations=2, num_threads=THREADS, random_state=0
    )
    model.fit(matrix, show_progress=False, callback=lambda _i, spent, *_: times.append(spent))
    return min(times)


def iteration() -> Iterator[str]:
    """One alternating iteration against implicit's."""
    yield (
        "| graph | pairs | extras | closure s | iteration s | implicit's s | ratio | peak MB | "
        "quarter of M in CSR, MB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, graph in graphs():
        dag = break_cycles(graph).dag
        rank = levels(dag)
        table = kernel_table("log", int(rank.max()))
        factorize(closure_forests(dag), rank, table, Options(n_components=COMPONENTS, max_iter=1))
        with peak_memory() as peak:
            start = time.perf_counter()
            forests = closure_forests(dag, n_jobs=THREADS)
            closure = time.perf_counter() - start

            def fit(iterations: int, forests: Any = forests, how: Any = (rank, table)) -> Any:
                options = Options(
                    n_components=COMPONENTS, max_iter=iterations, n_jobs=THREADS, random_state=0
                )
                return factorize(forests, *how, options)

            fit(1)
        four, first = (seconds(functools.partial(fit, n)) for n in (4, 1))
        one = (four - first) / 3
        matrix = sp.csr_matrix(forests[0].to_sparse(rank, "log").astype(np.float32))
        theirs = implicit_seconds(matrix)
        del matrix
        extras = forests[0].n_extras + forests[1].n_extras
        yield (
            f"| {name} | {forests[0].n_pairs:,} | {extras:,} | {closure:.2f} | {one:.3f} "
            f"| {theirs:.2f} | {theirs / one:.0f} | {(peak.bytes or 0) / 1e6:.0f} "
            f"| {forests[0].n_pairs * 12 / 4e6:.0f} |"
        )


def nmf() -> Iterator[str]:
    """The whole factorisation against scikit-learn's NMF."""
    from sklearn.decomposition import NMF

    name, graph = next(graphs())
    model = ATP(COMPONENTS, purpose="paper", zero_weight="auto", n_jobs=THREADS).fit(graph)
    model = ATP(COMPONENTS, purpose="paper", zero_weight="auto", n_jobs=THREADS).fit(graph)
    rows, _ = closure_forests(model.dag_)
    matrix = sp.csr_matrix(rows.to_sparse(model.levels_, "log").astype(np.float32))
    other = NMF(COMPONENTS, init="random", max_iter=100, tol=0.0, random_state=0)
    start = time.perf_counter()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(matrix)
    theirs = time.perf_counter() - start
    ours = model.timings_["paths"] + model.timings_["factorization"]
    yield (
        f"{name}, k = {COMPONENTS}: closure and factorization {ours:.2f} s, scikit-learn's NMF "
        f"(coordinate descent, 100 iterations, M given) {theirs:.0f} s, ratio {theirs / ours:.0f}."
    )


def file(sample: int = 2_000) -> Iterator[str]:
    """`atp embed` from file to model against networkx.descendants."""
    import networkx as nx

    real = data_dir()
    with tempfile.TemporaryDirectory() as folder:
        if real is not None:
            path = real / "graphs" / "p2p-Gnutella31.txt.gz"
        else:
            path = Path(folder) / "generated.txt"
            write_edgelist(generators.noisy_hierarchy(20_000, 60_000, 5_000).graph, path)
        command = [
            sys.executable, "-m", "atpgraph", "embed", str(path), "-o", f"{folder}/m.npz", "--json",
            "--quiet",
        ]  # fmt: skip
        source = read_edgelist(path)
        subprocess.run(command, check=True, capture_output=True)  # compiles, if it must
        start = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        ours = time.perf_counter() - start
        told = json.loads(done.stdout)
    dag = break_cycles(source).dag
    other = nx.DiGraph()
    other.add_nodes_from(range(dag.n_nodes))
    other.add_edges_from(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True))
    chosen = np.random.default_rng(0).choice(dag.n_nodes, min(sample, dag.n_nodes), replace=False)
    rank = levels(dag)
    start = time.perf_counter()
    for u in chosen.tolist():
        reached = np.fromiter(nx.descendants(other, u), dtype=np.int64)
        np.log(np.e + rank[reached] - rank[u])
    theirs = (time.perf_counter() - start) * dag.n_nodes / len(chosen)
    yield (
        f"{path.name}: `atp embed` {ours:.1f} s from the shell, peak "
        f"{told['peak_memory_mb']:.0f} MB; networkx.descendants for M alone {theirs:.0f} s "
        f"(scaled from {len(chosen):,} nodes), ratio {theirs / ours:.0f}."
    )


def growth() -> Iterator[str]:
    """Random graphs with five edges a node."""
    yield "| nodes | edges | pairs | cycles s | paths s | factorization s |"
    yield "|---|---|---|---|---|---|"
    for n in (10_000, 30_000, 100_000):
        model = ATP(COMPONENTS, purpose="paper", zero_weight="auto", n_jobs=THREADS).fit(
            generators.gnm(n, 5 * n, 0)
        )
        t = model.timings_
        yield (
            f"| {n:,} | {5 * n:,} | {model.n_reachable_pairs_:,} "
            f"| {t['cycles']:.1f} | {t['paths']:.1f} | {t['factorization']:.1f} |"
        )


def deep() -> Iterator[str]:
    """A path and a cycle: as many levels as nodes."""
    yield "| purpose | graph | nodes | levels | seconds | CPU s | growth of CPU s | true yes |"
    yield "|---|---|---|---|---|---|---|---|"
    for purpose, closed in ((p, c) for p in ("reachability", "links") for c in (False, True)):
        before = 0.0
        for n in (10**5, 10**6):
            nodes = np.random.default_rng(0).permutation(n)
            graph = DiGraph.from_codes(nodes if closed else nodes[:-1], np.roll(nodes, -1)[
                : n if closed else n - 1], n)  # fmt: skip
            start, busy = time.perf_counter(), time.process_time()
            model = ATP(COMPONENTS, purpose=purpose, n_jobs=THREADS).fit(graph)
            spent, busy = time.perf_counter() - start, time.process_time() - busy
            yield (
                f"| {purpose} | {'cycle' if closed else 'path'} | {n:,} | {model.levels_.max():,} "
                f"| {spent:.1f} | {busy:.1f} | {f'{busy / before:.1f} times' if before else ''} "
                f"| {model.fidelity_.closure:.1%} |"
            )
            before = busy


def million() -> Iterator[str]:
    """A million nodes with few paths, by the exact closure."""
    with peak_memory() as peak:
        start = time.perf_counter()
        model = ATP(COMPONENTS, purpose="paper", zero_weight="auto", n_jobs=THREADS).fit(
            generators.citation_dag(10**6, 2 * 10**6, 0)
        )
        spent = time.perf_counter() - start
    yield (
        f"Citation-like graph, 1,000,000 nodes and 2,000,000 edges: {spent:.0f} s, "
        f"{model.n_reachable_pairs_:,} pairs, "
        f"peak {(peak.bytes or 0) / 1e9:.1f} GB above the start."
    )


SECTIONS = {
    "iteration": iteration,
    "nmf": nmf,
    "file": file,
    "growth": growth,
    "deep": deep,
    "million": million,
}


def main() -> None:
    """Print the sections, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        f"Command: `python benchmarks/embed.py --sections {options.sections}`; atpgraph "
        f"{__version__}, {datetime.date.today()}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores."
    ]
    print(lines[0], flush=True)
    for name in options.sections.split(","):
        lines += ["", f"## {name}", ""]
        print("\n".join(lines[-3:]), flush=True)
        for line in SECTIONS[name]():
            lines.append(line)
            print(line, flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
