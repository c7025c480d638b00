"""Exact reachability beside other libraries: build time, bytes and time per pair, in one run.

Run: python benchmarks/reach.py [--large] [--only WORDS] [--output benchmarks/results/reach.md]

Each library answers the same pairs: uniform ones, and ones that a path connects. The indexes of
PyReachability (PLL, BFL, O'Reach, PReaCH) and ours take all pairs in one call; NetworkX, rustworkx
and igraph have no index and answer a sample one by one. Times are CPU seconds of the process. All
answers are compared. The real graphs are read from the folder that ATP_DATA names; where there is
none, generated ones stand in.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from _common import Report, arguments, data_dir, markdown

from atpgraph import DiGraph, Reachability, read_edgelist, to_networkx
from atpgraph.graph import generators
from atpgraph.graph.traversal import reachable

NAMES = ("wiki-Vote", "p2p-Gnutella31", "cit-HepPh", "wordnet-noun-hypernym")
PAIRS = 1_000_000
SINGLE = 200
RIVALS = ("PLL", "BFL", "OReach", "PReaCH")
PLL_NODES = 100_000  # PLL takes minutes on larger random graphs
BACKEND = ("has_path", "descendants", "strongly_connected_components", "condensation",
           "topological_generations", "transitive_closure")  # fmt: skip


def graphs(large: bool) -> Iterator[tuple[str, Callable[[], DiGraph]]]:
    """Yield the names of the graphs, and functions that make them."""
    folder = data_dir()
    for name in NAMES if folder is not None else ():
        yield name, partial(read_edgelist, folder / "graphs" / f"{name}.txt.gz")
    if folder is None:
        yield "gnm 30K / 60K", partial(generators.gnm, 30_000, 60_000, 0)
    if folder is not None or large:
        yield "random DAG 200K / 1M", partial(generators.random_dag, 200_000, 1_000_000, 1)
    if large:
        yield "gnm 1M / 5M", partial(generators.gnm, 1_000_000, 5_000_000, 0)
        yield "random DAG 1M / 5M", partial(generators.random_dag, 1_000_000, 5_000_000, 1)


def _command(options: Any) -> str:
    only = f" --only {options.only}" if options.only else ""
    return "python benchmarks/reach.py" + " --large" * options.large + only


def cpu(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the least CPU seconds of some repetitions, fewer if slow, and the last result."""
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time()
        result = work()
        best = min(best, time.process_time() - started)
        if best > 0.5:
            break
    return best, result


def n_pairs(graph: DiGraph) -> int:
    """Return how many pairs are asked: fewer on large graphs, where some take 50 µs a pair."""
    return PAIRS if graph.n_nodes < 100_000 else PAIRS // 5


def connected(graph: DiGraph, rng: np.random.Generator) -> np.ndarray:
    """Return pairs of node indices that a path connects."""
    pairs: list[np.ndarray] = []
    count = n_pairs(graph)
    while sum(map(len, pairs)) < count:
        source = int(rng.integers(graph.n_nodes))
        found = reachable(graph, np.array([source]))
        found = found[found != source]
        if len(found):
            targets = rng.choice(found, count // 500)
            pairs.append(np.stack([np.full(len(targets), source), targets], axis=1))
    return rng.permutation(np.concatenate(pairs)[:count])


def ours(graph: DiGraph, kinds: tuple[Any, ...], sets: list[np.ndarray]) -> list[list[object]]:
    """Return a row for each index of ours, by code and by label."""
    rows: list[list[object]] = []
    for kind in kinds:
        build, reach = cpu(lambda kind=kind: Reachability(graph, index=kind))
        name = f"atpgraph, {reach.index}" + (" (chosen)" if kind is True else "")
        cells: list[object] = []
        for pairs in sets:
            u, v = np.ascontiguousarray(pairs.T)
            seconds, _ = cpu(lambda u=u, v=v, reach=reach: reach.reaches_codes(u, v), 3)
            cells.append(1e9 * seconds / len(u))
            a, b = graph.labels[u], graph.labels[v]
            seconds, answers = cpu(lambda a=a, b=b, reach=reach: reach.reaches(a, b), 3)
            cells.append(1e9 * seconds / len(u))
        assert answers.all()
        rows.append([name, build, reach.nbytes / 1e6, *cells])  # with what queries look up
    return rows


def rivals(graph: DiGraph, sets: list[np.ndarray], expected: list[np.ndarray]) -> list[list[Any]]:
    """Return a row for each index of PyReachability, if it is installed."""
    try:
        package, static = map(importlib.import_module, ("pyreachability", "pyreachability.static"))
    except ImportError:
        return []
    edges = np.stack([graph.sources, graph.targets], axis=1)
    prepared = package.Graph.from_edges(edges, num_nodes=graph.n_nodes)
    rows = []
    for name in RIVALS:
        if name == "PLL" and graph.n_nodes > PLL_NODES:
            continue
        index = getattr(static, name)()
        build, _ = cpu(lambda index=index: index.build(prepared))
        cells: list[Any] = [f"PyReachability {name}", build, index.index_size_bytes / 1e6]
        for pairs, right in zip(sets, expected, strict=True):
            seconds, answers = cpu(lambda index=index, pairs=pairs: index.query_batch(pairs), 3)
            assert np.array_equal(np.asarray(answers, dtype=bool), right)
            cells += [1e9 * seconds / len(pairs), None]
        rows.append(cells)
    return rows


def searchers(
    graph: DiGraph, sets: list[np.ndarray], expected: list[np.ndarray]
) -> list[list[Any]]:
    """Return a row for each library without an index, and for ours without one."""
    ways: dict[str, Callable[[int, int], bool]] = {}
    other = to_networkx(graph)
    names = graph.labels.tolist()
    ways["NetworkX"] = lambda u, v: nx.has_path(other, names[u], names[v])
    searching = Reachability(graph, index=False)
    ways["atpgraph, no index"] = lambda u, v: bool(searching.reaches(names[u], names[v]))
    edges = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    try:
        import rustworkx

        rusty = rustworkx.PyDiGraph()
        rusty.add_nodes_from(range(graph.n_nodes))
        rusty.add_edges_from_no_data(edges)
        ways["rustworkx"] = lambda u, v: u == v or rustworkx.has_path(rusty, u, v)
    except ImportError:
        pass
    try:
        import igraph

        drawn = igraph.Graph(n=graph.n_nodes, edges=edges, directed=True)
        ways["igraph"] = lambda u, v: drawn.distances(u, v)[0][0] < float("inf")
    except ImportError:
        pass
    rows = []
    for name, ask in ways.items():
        cells: list[Any] = [name, None, None]
        for pairs, right in zip(sets, expected, strict=True):
            asked = SINGLE if graph.n_nodes < 100_000 else SINGLE // 10
            few = pairs[:asked].tolist()
            seconds, answers = cpu(lambda few=few, ask=ask: [ask(u, v) for u, v in few])
            assert answers == right[:asked].tolist()
            cells += [None, 1e9 * seconds / len(few)]
        rows.append(cells)
    return rows


def backend(graph: DiGraph) -> list[list[object]]:
    """Return CPU seconds of NetworkX functions, by NetworkX and by our backend."""
    G = to_networkx(graph)
    dag = to_networkx(Reachability(graph, index=False).condensation)
    small = to_networkx(generators.random_dag(1000, 3000, 0))
    rows: list[list[object]] = []
    nx.config.warnings_to_ignore.add("cache")
    rng = np.random.default_rng(0)
    nodes = [graph.labels.tolist()[at] for at in rng.integers(0, graph.n_nodes, 40)]
    for name in BACKEND:
        function = getattr(nx, name)
        calls: list[tuple[Any, ...]] = [(G,)]
        if name == "has_path":
            calls = [(G, u, v) for u, v in zip(nodes[::2], nodes[1::2], strict=True)]
        elif name == "descendants":
            calls = [(G, u) for u in nodes[:10]]
        elif name == "topological_generations":
            calls = [(dag,)]
        elif name == "transitive_closure":
            calls = [(small,)]

        def run(way: str, calls: list[Any] = calls, function: Any = function) -> list[Any]:
            results = (function(*call, backend=way) for call in calls)
            return [list(x) if hasattr(x, "__next__") else x for x in results]

        run("atpgraph")  # converts and compiles
        theirs, _ = cpu(lambda run=run: run("networkx"))
        mine, _ = cpu(lambda run=run: run("atpgraph"))
        rows.append([name, len(calls), theirs, mine, theirs / max(mine, 1e-9)])
    return rows


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--large", action="store_true", help="a million nodes too")
    parser.add_argument("--only", default="", help="words in the names of graphs, or backend")
    options = parser.parse_args()
    report = Report("Exact reachability", _command(options), options.output)
    for kind in ("forest", "labels"):  # compiles what is timed
        warm = Reachability(generators.gnm(2000, 3000, 0), index=kind)
        warm.reaches(np.arange(9), np.arange(9)[::-1])
    columns = ["graph", "index", "build, CPU s", "MB"]
    columns += ["uniform by code, ns", "by label, ns", "connected by code, ns", "by label, ns"]
    rows: list[list[object]] = []
    words = options.only.split(",")
    for name, read in graphs(options.large):
        if not any(word in name for word in words):
            continue
        graph = read()
        rng = np.random.default_rng(0)
        sets = [rng.integers(0, graph.n_nodes, (n_pairs(graph), 2)), connected(graph, rng)]
        reach = Reachability(graph, index="labels")
        expected = [reach.reaches_codes(*np.ascontiguousarray(pairs.T)) for pairs in sets]
        kinds = (True,) if graph.n_nodes > 100_000 else (True, "labels")
        found = ours(graph, kinds, sets) + rivals(graph, sets, expected)
        if graph.n_nodes < 1_000_000:
            found += searchers(graph, sets, expected)
        rows += [[name, *cells] for cells in found]
    if rows:
        report.add(markdown(columns, rows))
        report.add("All answers agree. Bytes are those of the index, without the graph.")
    folder = data_dir()
    if folder is not None and any(word in "backend" for word in words):
        graph = read_edgelist(folder / "graphs" / "cit-HepPh.txt.gz")
        columns = ["function", "calls", "NetworkX, CPU s", "backend, CPU s", "ratio"]
        report.add("NetworkX functions on cit-HepPh, after the graph was converted once (the "
                   "closure on a random DAG of 1,000 nodes):")  # fmt: skip
        report.add(markdown(columns, backend(graph)))
    report.save()


if __name__ == "__main__":
    main()
