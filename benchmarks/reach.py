"""Exact reachability: questions per second, as ratios measured in one run.

Run: python benchmarks/reach.py [--output benchmarks/results/reach.md]

For every graph: seconds to condense and to build the index, its size, and pairs per second of
uniformly drawn pairs of nodes and of pairs of which half are joined by a path, looked up in the
index in one call, one by one, and searched for without an index, against networkx.has_path on a
sample of the same pairs. The real graphs are read from the folder that ATP_DATA names; where there
is none, a generated one stands in.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
from _common import Report, arguments, best_of, data_dir, markdown

from atpgraph import DiGraph, Reachability, read_edgelist, to_networkx
from atpgraph.graph import generators
from atpgraph.util.memory import human_bytes

NAMES = ("wiki-Vote", "p2p-Gnutella31", "cit-HepPh", "wordnet-noun-hypernym")
PAIRS = 1_000_000
SINGLE = 2_000
NETWORKX = 200


def graphs() -> Iterator[tuple[str, DiGraph]]:
    """The graphs of the table."""
    folder = data_dir()
    if folder is None:
        yield "generated", generators.gnm(30_000, 60_000, 0)
        return
    for name in NAMES:
        yield name, read_edgelist(folder / "graphs" / f"{name}.txt.gz")


def pairs(reach: Reachability, rng: np.random.Generator, joined: bool) -> tuple[np.ndarray, ...]:
    """Pairs of labels: uniform, or every second one a node and one of its descendants."""
    labels = reach.graph.labels
    u, v = rng.integers(0, len(labels), (2, PAIRS))
    if joined:
        sources = rng.choice(np.flatnonzero(reach.n_descendants() > 0), 1000)
        for at, source in enumerate(sources.tolist()):
            part = slice(at, PAIRS // 2, len(sources))
            below = reach.graph.codes(reach.descendants(labels[source]))
            u[part] = source
            v[part] = rng.choice(below, len(u[part]))
    return labels[u], labels[v]


def rate(work: Callable[[], object], count: int, repeats: int = 1) -> float:
    """Questions per second."""
    return count / best_of(repeats, work)[0]


def rates(reach: Reachability, other: nx.DiGraph, joined: bool) -> list[float]:
    """Share of joined pairs among the first, and pairs per second of every way to ask."""
    searching = Reachability(reach.graph, index=False)
    rng = np.random.default_rng(0)
    u, v = pairs(reach, rng, joined)
    order = rng.permutation(PAIRS)
    u, v = u[order], v[order]
    few = list(zip(u[:SINGLE].tolist(), v[:SINGLE].tolist(), strict=True))
    some = few[:NETWORKX]
    for way in (reach, searching):  # what is made once, at the first question
        way.reaches(*few[0])
        way.reaches(u[:10], v[:10])
    seconds = time.perf_counter()
    theirs = [nx.has_path(other, a, b) for a, b in some]
    networkx_rate = NETWORKX / (time.perf_counter() - seconds)
    for way in (reach, searching):
        assert theirs == way.reaches(u[:NETWORKX], v[:NETWORKX]).tolist()
        assert theirs == [way.reaches(a, b) for a, b in some]
    return [
        float(np.mean(theirs)),
        rate(lambda: reach.reaches(u, v), PAIRS, 3),
        rate(lambda: [reach.reaches(a, b) for a, b in few], SINGLE, 3),
        rate(lambda: [searching.reaches(a, b) for a, b in some], NETWORKX),
        rate(lambda: searching.reaches(u[:10_000], v[:10_000]), 10_000),
        networkx_rate,
    ]


def sizes(graph: DiGraph, reach: Reachability, condense: float, build: float) -> list[object]:
    """What the index holds, and how long it takes to make and to load."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "index.npz"
        reach.save(file)
        load = best_of(3, lambda: Reachability.load(file))[0]
        on_disk = human_bytes(file.stat().st_size)
    return [
        graph.n_nodes, graph.n_edges, reach.condensation.n_nodes, int(reach.n_descendants().sum()),
        condense, build, load, on_disk,
    ]  # fmt: skip


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.partition("\n")[0]).parse_args()
    report = Report("Exact reachability", "python benchmarks/reach.py", options.output)
    warm = Reachability(generators.gnm(2000, 3000, 0), index=True)  # compiles what is timed
    warm.reaches([0, 1], [2, 3])
    made, asked = [], []
    for name, graph in graphs():
        condense = best_of(3, functools.partial(Reachability, graph, index=False))[0]
        started = time.perf_counter()
        reach = Reachability(graph, index=True)
        build = time.perf_counter() - started - condense
        made.append([name, *sizes(graph, reach, condense, build)])
        other = to_networkx(graph)
        for joined in (False, True):
            found = rates(reach, other, joined)
            ratios = [number / found[-1] for number in found[1:4]]
            asked.append([name, "half joined" if joined else "uniform", *found, *ratios])
    columns = ["graph", "nodes", "edges", "components", "reachable pairs"]
    report.add(markdown([*columns, "condense, s", "build, s", "load, s", "file"], made))
    columns = ["graph", "pairs", "joined", "index, 1 M a call", "index, one a call"]
    columns += ["search, one a call", "search, 10,000 a call", "networkx.has_path"]
    ratios = [f"{name} / networkx" for name in ("1 M", "one", "search")]
    report.add("Pairs per second:")
    report.add(markdown([*columns, *ratios], asked))
    report.add(f"The first {NETWORKX} pairs of each kind were asked of NetworkX too; all agree.")
    report.save()


if __name__ == "__main__":
    main()
