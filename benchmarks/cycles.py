"""Breaking cycles: against the naive twin, growth, real graphs, quality. One run, all ratios in it.

    ATP_DATA=FOLDER python benchmarks/cycles.py --output benchmarks/results/cycles.md

The naive twin is the tests' (``tests/cycles/naive.py``): it removes one edge at a time and looks
for the strongly connected components again, in NetworkX. That takes the better part of an hour, so
each of its loops runs for ``--cap`` seconds from four points on its way, and the rest is
extrapolated from the seconds per pass; ``--cap inf`` runs it to the end.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from _common import (
    ROOT,
    Report,
    arguments,
    banded,
    best_of,
    data_dir,
    in_subprocess,
    markdown,
    peak_mb,
)
from _families import relative

from atpgraph import DiGraph, break_cycles, gnm, noisy_hierarchy, read_edgelist
from atpgraph.cycles import METHODS
from atpgraph.cycles.agony import largest_circulation
from atpgraph.cycles.methods import Workspace

AUTHORS_GRAPH = "peer_breaking_cycles/gnm_5000_25000_graph_w_extra_3000_path_len_0.edges"
AUTHORS_TRUTH = "peer_breaking_cycles/gnm_5000_25000_extra_3000_path_len_0.edges"
REAL_GRAPHS = ("wiki-Vote", "p2p-Gnutella31", "cit-HepPh")
GROWTH_EDGES = (100_000, 300_000, 1_000_000)
LARGE_EDGES = (100_000, 1_000_000, 5_000_000)


def planted_graph() -> tuple[str, DiGraph, np.ndarray]:
    """The authors' graph with 3,000 planted edges where it is there, else one of its kind."""
    folder = data_dir()
    if folder is None:
        graph, planted = noisy_hierarchy(5000, 25_000, 3000, random_state=0)
        return "generated, 5,000 nodes, 25,000 edges + 3,000 planted", graph, planted
    graph, truth = read_edgelist(folder / AUTHORS_GRAPH), read_edgelist(folder / AUTHORS_TRUTH)
    sources, targets = truth.edge_labels()
    planted = graph.find_edges(graph.codes(sources), graph.codes(targets))
    return "the authors' gnm_5000 with 3,000 planted edges", graph, planted


def passes_made(graph: nx.DiGraph, key: dict[tuple[int, int], float], limit: float) -> int:
    """Run the naive loop for `limit` seconds; the number of edges it removed."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tests.cycles.naive import one_by_one

    stop = time.process_time() + limit
    passes = 0
    for _ in one_by_one(graph, key):
        passes += 1
        if time.process_time() >= stop:
            break
    return passes


def against_the_twin(report: Report, cap: float) -> None:
    """Full h-voting against six naive strategies and a naive vote; no cap lets them end."""
    full = cap == float("inf")
    name, graph, _ = planted_graph()
    break_cycles(graph, "h-voting")  # compile
    wall, cpu, result = best_of(5, lambda: break_cycles(graph, "h-voting"))
    space = Workspace(graph, 0)
    core = space.core
    edges = list(zip(core.sources.tolist(), core.targets.tolist(), strict=True))
    # What each loop goes by: how far an edge goes down, its source from the top, its target from
    # the bottom, its votes.
    keys = {"h-voting": space.solve("h-voting")[1]}
    for kind in ("sa", "ts"):
        score = space.node_score(kind)
        keys[f"{kind}-g"] = space.drop(score)
        keys[f"{kind}-f"] = score[core.sources]
        keys[f"{kind}-b"] = -score[core.targets]
    rows = []
    naive_total = 0.0
    for loop, values in keys.items():
        key = dict(zip(edges, values.tolist(), strict=True))
        removed = np.flatnonzero(space.solve(loop)[0])
        doomed = [edges[e] for e in removed[np.argsort(-values[removed], kind="stable")]]
        total, passes = 0.0, 0
        # Passes get cheaper as the components shrink: look at each quarter of the way.
        parts = 1 if full else 4
        for part in range(parts):
            left = nx.DiGraph(edges)
            left.remove_edges_from(doomed[: len(doomed) * part // parts])
            started = time.process_time()
            made = passes_made(left, key, cap / parts)
            seconds = time.process_time() - started
            total += seconds if full else seconds / made * len(doomed) / parts
            passes += made
        naive_total += total
        rows.append([loop, passes, len(doomed), total])
    how = (
        "Every loop ran to its end."
        if full
        else f"Each loop ran {cap / 4:g} s from the start, from a quarter, half and three quarters "
        "of its removals; its total is seconds per pass × edges to remove, quarter by quarter."
    )
    report.add(
        f"## Against one SCC pass per removed edge\n\n{name}. `h-voting`, scores included: "
        f"**{wall:.3f} s** ({cpu:.3f} s CPU, best of 5), {len(result.removed):,} edges removed. "
        f"Naive twin in NetworkX, scores *not* counted: {naive_total:,.0f} s CPU. {how}\n\n"
        f"**Ratio of CPU seconds: {naive_total / cpu:,.0f} ×**"
    )
    report.add(markdown(["loop", "passes measured", "edges to remove", "CPU seconds in all"], rows))


def flow_solvers(report: Report) -> None:
    """The circulation behind agony: our primal-dual method beside OR-Tools' cost scaling."""
    graphs = {
        "gnm": gnm(40_000, 200_000, 1),
        "noisy hierarchy": noisy_hierarchy(40_000, 180_000, 20_000, random_state=1).graph,
        "band 50": banded(40_000, 5, 50, 3000, 3, 1).graph,
        "band 10": banded(40_000, 5, 10, 6000, 3, 1).graph,
        "band 10, long edges back": long_band(40_000, 10, 4000),
        "band 10, ten times the nodes": banded(400_000, 5, 10, 60_000, 3, 1).graph,
    }
    rows = []
    for name, graph in graphs.items():
        core = Workspace(graph, 0).core
        _, theirs, size = best_of(2, lambda core=core: cost_scaling(core))
        _, ours, (on, _) = best_of(2, lambda core=core: largest_circulation(core))
        if size != on.sum():
            raise RuntimeError(f"the solvers disagree on {name}")
        rows.append([name, core.n_edges, theirs, ours, theirs / ours])
    report.add("## The flow behind agony\n\nCPU seconds, best of 2, for the same optimum.")
    report.add(markdown(["graph", "core edges", "OR-Tools", "ours", "ratio"], rows))


def long_band(n: int, width: int, k: int) -> DiGraph:
    """Nodes in a line, edges of at most `width` positions forward, k edges of any length back."""
    rng = np.random.default_rng(1)
    low = rng.integers(0, n - width, 3 * n)
    ends = rng.integers(0, n, (2, k))
    sources = np.concatenate([low, ends.max(axis=0)])
    return DiGraph.from_codes(
        sources, np.concatenate([low + rng.integers(1, width + 1, 3 * n), ends.min(axis=0)]), n
    )


def cost_scaling(graph: DiGraph) -> int:
    """The number of edges of a largest circulation, by OR-Tools."""
    from ortools.graph.python import min_cost_flow

    solver = min_cost_flow.SimpleMinCostFlow()
    one = np.ones(graph.n_edges, dtype=np.int64)
    arcs = solver.add_arcs_with_capacity_and_unit_cost(graph.sources, graph.targets, one, one)
    solver.set_nodes_supplies(np.arange(graph.n_nodes), graph.out_degree - graph.in_degree)
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("OR-Tools found no optimum")
    return graph.n_edges - int(solver.flows(arcs).sum())


def growth(report: Report) -> None:
    """Time and memory of h-voting from 10⁵ to 10⁶ edges."""
    rows: list[list[object]] = []
    for family in ("gnm", "noisy hierarchy"):
        first: dict[str, float] = {}
        for m in GROWTH_EDGES:
            found = in_subprocess(__file__, {"task": "growth", "family": family, "edges": m})
            first = first or found
            decades = np.log10(m / GROWTH_EDGES[0])
            ratios: list[object] = [
                float((found[clock] / first[clock]) ** (1 / decades)) if decades else ""
                for clock in ("wall", "cpu")
            ]
            rows.append([family, m, found["wall"], found["cpu"], *ratios, found["mb"]])
    report.add(
        "## Growth of `h-voting`\n\nn = m / 5; noisy hierarchies have 10 % planted edges. Best of "
        "3 in a process of its own. Ratios against the smallest graph, per 10 × edges."
    )
    columns = ["graph", "edges", "seconds", "CPU seconds", "× seconds", "× CPU", "peak MB"]
    report.add(markdown(columns, rows))


def real_graphs(report: Report, methods: list[str]) -> None:
    """Edges removed from the SNAP graphs."""
    if data_dir() is None:
        report.add("## Real graphs\n\nNot measured: no data folder (set ATP_DATA).")
        return
    rows = []
    for name in REAL_GRAPHS:
        for method in methods:
            f = in_subprocess(__file__, {"task": "real", "graph": name, "method": method})
            rows.append([name, f["edges"], method, f["removed"], f["wall"], f["cpu"], f["mb"]])
    report.add("## Real graphs\n\nBest of 3, a process each; reading the file is not counted.")
    columns = ["graph", "edges", "method", "removed", "seconds", "CPU seconds", "peak MB"]
    report.add(markdown(columns, rows))


def quality(report: Report, methods: list[str]) -> None:
    """F1 against the planted edges."""
    name, graph, planted = planted_graph()
    fresh = [noisy_hierarchy(1500, 15_000, 500, random_state=1000 + s) for s in range(5)]
    rows = []

    def f1(graph: DiGraph, method: str, seed: int, planted: np.ndarray) -> float:
        found = break_cycles(graph, method, time_limit=2.0, random_state=seed)
        return found.agreement(planted).f1

    for method in methods:
        started = time.perf_counter()
        first = [f1(graph, method, 0, planted)]
        seconds = time.perf_counter() - started
        first += [f1(graph, method, seed, planted) for seed in range(1, 5)]
        second = [f1(g, method, seed, p) for seed, (g, p) in enumerate(fresh)]
        rows.append([f"`{method}`", spread(first), spread(second), seconds])
    report.add(
        f"## Quality: F1 against the planted edges\n\nMean ± standard deviation over 5 seeds on "
        f"{name}, and over 5 generated graphs (1,500 nodes, 15,000 edges + 500 planted, seeds "
        "1000–1004). Seconds: one run of that method alone on the first graph; `minimum` has 2 s "
        "for its proof."
    )
    report.add(markdown(["method", "first graph", "5 generated graphs", "seconds"], rows))


def auto(report: Report, before: str | None, largest: int) -> None:
    """What "auto" chooses on large graphs: its cost beside that of h-voting, and its quality."""
    rows: list[list[object]] = []
    found: dict[str, Any]
    for m in (m for m in LARGE_EDGES if m <= largest):
        first = None
        runs: list[tuple[str, ...]] = [("h-voting",), ("springs",)]
        if before:
            runs.insert(0, ("h-voting", before))
        for method, *source in runs:
            script = str(ROOT / "benchmarks" / "_breaking.py")
            command = [sys.executable, script, method, str(m), *source]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout)
            first = first or found["cpu"]
            name = f"`{method}`" + (", before" if source else "")
            above = found["mb"]
            memory = ["–", "–"] if above is None else [above, above * 1e6 / m]
            rows.append(
                [m, name, found["wall"], found["cpu"], found["cpu"] / first, *memory,
                 found["removed"]]
            )  # fmt: skip
    report.add(
        "## `auto`: cost\n\nUniform random graphs, n = m / 5, one run each in a process of its "
        "own; MB above what it held with the graph in memory. `before`: the source given by "
        "`--before`. Ratios of CPU seconds to the first row of each size."
    )
    columns = ["edges", "method", "seconds", "CPU seconds", "ratio", "MB", "bytes an edge"]
    report.add(markdown([*columns, "removed"], rows))
    kinds = {
        "20,000 nodes, 80,000 edges + 4,000": (20_000, 80_000, 4_000),
        "20,000 nodes, 80,000 edges + 8,000": (20_000, 80_000, 8_000),
        "5,000 nodes, 50,000 edges + 2,000": (5_000, 50_000, 2_000),
        "2,000 nodes, 40,000 edges + 1,500": (2_000, 40_000, 1_500),
    }
    rows = []
    for kind, sizes in kinds.items():
        found = {name: [] for name in ("h-voting", "sa-g", "springs")}
        for seed in range(5):
            graph, planted = noisy_hierarchy(*sizes, random_state=2000 + seed)
            for name, values in found.items():
                broken = break_cycles(graph, name, random_state=seed)
                values.append(broken.agreement(planted).f1)
        rows.append([kind, *map(spread, found.values())])
    report.add(
        "## `auto`: F1 against the planted edges\n\nNoisy hierarchies, seeds 2000–2004, which no "
        "constant was chosen on."
    )
    report.add(markdown(["graph", "`h-voting`", "`sa-g`", "`springs`"], rows))
    if data_dir() is not None:
        report.add('## `auto`: AUC\n\nPaper\'s protocol, k = 64, `zero_weight="auto"`, 3 splits.')
        rows = [[name, *map(spread, _auc(name))] for name in REAL_GRAPHS]
        report.add(markdown(["graph", "`h-voting`", "`springs`"], rows))


def _auc(name: str) -> list[list[float]]:
    """AUC under the paper's protocol with cycles broken by h-voting and by springs."""
    from atpgraph import ATP
    from atpgraph.evaluation.metrics import auc
    from atpgraph.linkpred import PairTest, make_split

    graph = read_edgelist((data_dir() or Path()) / "graphs" / f"{name}.txt.gz")
    found: list[list[float]] = [[], []]
    for seed in range(3):
        split = make_split(graph, protocols=["paper"], random_state=seed)
        test, labels = split.tests["paper"], split.train.labels
        assert isinstance(test, PairTest)
        for values, method in zip(found, ("h-voting", "springs"), strict=True):
            model = ATP(
                64, purpose="paper", zero_weight="auto", method=method, random_state=seed
            ).fit(split.train)
            good, bad = (
                model.score_pairs(labels[pairs.sources], labels[pairs.targets])
                for pairs in (test.positives, test.negatives)
            )
            values.append(auc(good, bad))
    return found


def minima(
    report: Report, methods: list[str], limit: float, ip_limit: int, fresh: int | None
) -> None:
    """Removed edges over the proven minimum on the FASP benchmarks, igraph beside ours.

    With a seed, graphs drawn like them take their place, and the bounds that `minimum` proves in
    five times the time that of the minima.
    """
    folder = (data_dir() or Path()) / "fasp"
    if not folder.is_dir():
        report.add("## Proven minima\n\nNot measured: no folder 'fasp' (set ATP_DATA).")
        return
    with (folder / "minima.csv").open(encoding="utf-8") as file:
        listed = list(csv.DictReader(file))
    graphs = [read_edgelist(folder / f"{row['graph']}.txt") for row in listed]
    least = [float(row["minimum"]) for row in listed]
    if fresh is not None:
        seeds = np.random.default_rng(fresh).spawn(len(listed))
        graphs = [relative(row["graph"], seed) for row, seed in zip(listed, seeds, strict=True)]
        slow = [break_cycles(graph, "minimum", time_limit=5 * limit) for graph in graphs]
        least = [max(found.lower_bound or 0.0, 1.0) for found in slow]
    families = list(dict.fromkeys(row["family"] for row in listed))
    runs: dict[str, Callable[[DiGraph], tuple[int | None, bool]]] = {}
    if "igraph" in methods:
        runs["igraph eades"] = lambda graph: (igraph_cut(graph, "eades", 60), False)
        runs["igraph ip"] = lambda graph: (igraph_cut(graph, "ip", ip_limit), True)
    for method in (name for name in methods if name != "igraph"):

        def run(graph: DiGraph, method: str = method) -> tuple[int, bool]:
            found = break_cycles(graph, method, time_limit=limit)
            return len(found.removed), found.proved

        run(graphs[0])  # compile
        runs[f"`{method}`"] = run
    rows = []
    for name, run in runs.items():
        ratios: dict[str, list[float]] = {family: [] for family in families}
        seconds, proved, small = [], 0, 0
        for row, graph, bound in zip(listed, graphs, least, strict=True):
            started = cpu_seconds()
            size, sure = run(graph)
            seconds.append(cpu_seconds() - started)
            if graph.n_edges <= 2000:
                small += 1
                proved += size is not None and sure
            if size is not None:
                ratios[row["family"]].append(size / bound)
        cells = [
            f"{np.mean(values):.3f}" + ("" if len(values) == 12 else f" ({len(values)})")
            if values
            else "–"
            for values in ratios.values()
        ]
        share = f"{proved} of {small}" if proved else ""
        rows.append([name, *cells, share, sum(seconds), max(seconds)])
    kind = "" if fresh is None else f" (drawn anew with the seed {fresh}, bounds by `minimum`)"
    report.add(
        "## Proven minima\n\nMean ratio of removed edges to the proven minimum, 12 graphs of each "
        f"family of the FASP benchmarks{kind} (in brackets: how many were answered). CPU seconds, "
        f"those of igraph with its start. `minimum` has {limit:g} s on the clock for each graph, "
        f"`ip` of igraph {ip_limit} s of CPU time. Proved: of the graphs with up to 2,000 edges."
    )
    columns = ["method", *families, "proved", "CPU seconds in all", "most for a graph"]
    report.add(markdown(columns, rows))


def igraph_cut(graph: DiGraph, method: str, seconds: int) -> int | None:
    """Edges that igraph removes; None if it needs more CPU seconds."""
    program = (
        "import json, resource, sys, igraph\n"
        f"resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n"
        "n, edges = json.load(sys.stdin)\n"
        "graph = igraph.Graph(n, edges, directed=True)\n"
        f"print(len(graph.feedback_arc_set(method='{method}')))\n"
    )
    edges = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([graph.n_nodes, edges]), stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 else None


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"


def job(task: dict[str, object]) -> dict[str, object]:
    """One measurement in a process of its own."""
    method = str(task.get("method", "h-voting"))
    if task["task"] == "growth":
        m = int(str(task["edges"]))
        if task["family"] == "gnm":
            graph = gnm(m // 5, m, 1)
        else:
            graph = noisy_hierarchy(m // 5, m - m // 10, m // 10, random_state=1).graph
    else:
        folder = data_dir() or Path()
        graph = read_edgelist(folder / "graphs" / f"{task['graph']}.txt.gz")
    break_cycles(gnm(100, 400, 0), method)  # compile
    wall, cpu, result = best_of(3, lambda: break_cycles(graph, method))
    return {
        "edges": graph.n_edges,
        "removed": len(result.removed),
        "wall": wall,
        "cpu": cpu,
        "mb": peak_mb(),
    }


def main() -> None:
    """Run every part, or one measurement for the parent process."""
    parser = arguments((__doc__ or "").split("\n")[0])
    parser.add_argument("--sections", default="twin,flow,growth,real,quality")
    parser.add_argument(
        "--methods", default=",".join(METHODS), help="of real, quality, minima; igraph for minima"
    )
    parser.add_argument(
        "--cap", type=float, default=8.0, help="seconds for each naive loop; inf runs it to its end"
    )
    parser.add_argument("--largest", type=int, default=LARGE_EDGES[-1], help="edges, for 'auto'")
    parser.add_argument("--before", help="source folder of an earlier version, for 'auto'")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds of 'minimum' for a graph")
    parser.add_argument("--fresh", type=int, help="seed of graphs like those with minima")
    parser.add_argument("--ip-limit", type=int, default=2, help="CPU seconds of igraph's ip")
    options = parser.parse_args()
    if options.job:
        print(json.dumps(job(json.loads(options.job))))
        return
    command = f"python benchmarks/cycles.py --sections {options.sections} --cap {options.cap:g}"
    methods = options.methods.split(",")
    if len(methods) < len(METHODS):
        command += f" --methods {options.methods}"
    if "minima" in options.sections:
        command += f" --limit {options.limit:g} --ip-limit {options.ip_limit}"
    if options.fresh is not None:
        command += f" --fresh {options.fresh}"
    report = Report("Breaking cycles: measurements", command, options.output)
    sections = {
        "twin": lambda report: against_the_twin(report, options.cap),
        "minima": lambda report: minima(
            report, methods, options.limit, options.ip_limit, options.fresh
        ),
        "flow": flow_solvers,
        "growth": growth,
        "real": lambda report: real_graphs(report, methods),
        "quality": lambda report: quality(report, methods),
        "auto": lambda report: auto(report, options.before, options.largest),
    }
    for section in options.sections.split(","):
        sections[section](report)
    report.save()


if __name__ == "__main__":
    main()
