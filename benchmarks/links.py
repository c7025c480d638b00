"""What each evidence adds, whether the numbers shown are true, what times add, what it costs.

    python benchmarks/links.py evidence --graph wiki-vote --seeds 3
    python benchmarks/links.py calibration --graph wordnet.txt.gz    # taxonomy:30000, rmat:100000
    python benchmarks/links.py time --graph cit-hepph --seeds 5
    python benchmarks/links.py before --graph wiki-vote --old OLD.json
    python benchmarks/links.py attributes --seeds 5
    python benchmarks/links.py speed
    python benchmarks/links.py growth [--edges 100000,1000000]

`evidence` fits the predictor again with one kind of evidence less, or more. `calibration` hides a
tenth of the edges uniformly, fits the rest, and compares stated with observed shares: probabilities
of hidden edges and other pairs, half of those near misses, each counted as often as it occurs among
all pairs; and hit rates of the lists of random nodes. `time` takes labels for arXiv numbers, as
those of cit-HepPh are. `before` compares the predictor with a table of an earlier version, such as
that of `git show 18187a6:benchmarks/results/linkpred-wiki-vote.json`. Graphs are files or names of
`atp data list`; a folder of DirLinkBench's splits stands for the graph that its first split
observes. `speed` and `growth` run every fit in a process of its own that has compiled its kernels.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
KINDS = ("degrees", "proximity", "reach", "paths", "citation", "reverse", "spectral")
PROTOCOLS = {"paper": "auc", "random": "auc", "reversed": "auc", "ranking": "mrr"}
BASE_RATES = (0.5, 0.01, 0.001)


def main() -> None:
    """Run one section."""
    from _common import Report, arguments

    parser = arguments(__doc__.splitlines()[0])
    sections = {
        "evidence": evidence,
        "calibration": calibration,
        "time": over_time,
        "before": before,
        "attributes": attributes,
        "speed": speed,
        "growth": growth,
    }
    parser.add_argument("section", choices=sections)
    parser.add_argument("--graph", default="wiki-vote")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--queries", type=int, default=2000, help="targets ranked in each test")
    parser.add_argument("--old", help="a table of an earlier version, for `before`")
    parser.add_argument("--edges", default="100000,1000000,5000000")
    if "--job" in sys.argv:
        print(json.dumps(job(**json.loads(sys.argv[-1]))))
        return
    options = parser.parse_args()
    about = {
        "attributes": f" --seeds {options.seeds}",
        "speed": "",
        "growth": f" --edges {options.edges}",
    }.get(options.section, f" --graph {Path(options.graph).name} --seeds {options.seeds}")
    about += f" --queries {options.queries}" if options.section == "time" else ""
    name = Path(options.graph).name.split(".")[0].lower().replace(":", "-")
    graphs = ("evidence", "calibration", "time", "before")
    suffix = f"-{name}" if options.section in graphs else ""
    report = Report(
        f"Links: {options.section}",
        f"python benchmarks/links.py {options.section}{about}",
        options.output or RESULTS / f"links-{options.section}{suffix}.md",
    )
    sections[options.section](report, options)
    report.save()


def read(name: str) -> Any:
    """A graph by name, from a file, or the one that the first split of a folder observes."""
    from atpgraph import datasets, read_edgelist
    from atpgraph.linkpred.protocols.splits import read_splits

    if name.startswith("taxonomy:"):
        return taxonomy(int(name.removeprefix("taxonomy:")))
    if name.startswith("rmat:"):
        return rmat(int(name.removeprefix("rmat:")))
    if Path(name).is_dir():
        return read_splits(Path(name))[0].train
    return read_edgelist(name) if Path(name).exists() else datasets.load(name)


def taxonomy(n: int) -> Any:
    """Concepts below concepts: a tree, a fifth of its nodes with an uncle for a second parent."""
    from atpgraph import DiGraph

    rng = np.random.default_rng(0)
    parent = np.zeros(n, dtype=np.int64)
    for i in range(1, n):  # half of the parents are drawn by how many children they have
        parent[i] = rng.integers(i) if rng.random() < 0.5 else parent[rng.integers(1, i + 1) - 1]
    child = np.flatnonzero((rng.random(n) < 0.2) & (parent[parent] > 0))
    order = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[order], np.arange(n + 1))
    above = parent[parent[child]]
    uncle = order[first[above] + rng.integers(first[above + 1] - first[above])]
    u, v = np.concatenate([np.arange(1, n), child]), np.concatenate([parent[1:], uncle])
    return DiGraph.from_codes(u[u > v], v[u > v], n)


def evidence(report: Any, options: Any) -> None:
    """All default evidence, and with one kind less or more."""
    from _common import markdown

    from atpgraph.evaluation.intervals import compare
    from atpgraph.linkpred.benchmark import run as bench
    from atpgraph.linkpred.registry import LearnedLinks, Row

    rows = {"default": ["default"]}
    rows |= {f"without {kind}": [k for k in KINDS if k != kind] for kind in KINDS}
    rows |= {f"with {kind}": ["default", kind] for kind in ("levels", "atp")}

    def make(kinds: list[str]) -> Any:
        return lambda k, seed: LearnedLinks(k, evidence=kinds, random_state=seed)

    made = [Row(key, "ours", make(kinds)) for key, kinds in rows.items()]
    graph = read(options.graph)
    result = bench(graph, made, list(PROTOCOLS), seeds=options.seeds, max_queries=300)
    lines = []
    found = {row.key: row for row in result.methods}
    for key, row in found.items():
        cells: list[object] = [key]
        for protocol, metric in PROTOCOLS.items():
            values = row.values(protocol, metric)
            told = f"{np.mean(values):.4f}"
            if key != "default":
                gap = compare(values, found["default"].values(protocol, metric)).difference
                told += f" ({gap.mean:+.4f}: {gap.low:+.4f} … {gap.high:+.4f})"
            cells.append(told)
        lines.append(cells)
    report.add(
        f"{options.seeds} splits; in brackets the paired difference to the default with its 95 % "
        "interval."
    )
    heads = ["evidence", *(f"{p} {m.upper()}" for p, m in PROTOCOLS.items())]
    report.add(markdown(heads, lines))


def calibration(report: Any, options: Any) -> None:
    """Stated and observed shares on edges hidden uniformly."""
    from _common import markdown

    from atpgraph import LinkPredictor
    from atpgraph.linkpred.learning import hide

    graph = read(options.graph)
    table, bins, lists = [], {rate: [] for rate in BASE_RATES}, []
    for seed in range(options.seeds):
        rng = np.random.default_rng(1000 + seed)
        hidden = hide(graph, 0.1, rng)
        model = LinkPredictor(random_state=seed).fit(hidden.rest)
        score, truth, weight = hard_pairs(model, hidden, rng)
        for rate in BASE_RATES:
            share = np.where(truth, rate / weight[truth].sum(), (1 - rate) / weight[~truth].sum())
            bins[rate].append((model._probability(score, np.log(rate / (1 - rate))), truth,
                               weight * share))  # fmt: skip
        told = model.validation_
        table.append([seed, told["link"]["auc"], told["connected"]["auc"], told["link"]["error"]])
        lists.append(hit_rates(model, hidden, rng))
        print(f"seed {seed}: done", file=sys.stderr, flush=True)
    report.add(f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges, {options.seeds} seeds.")
    columns = ["seed", "validation AUC, uniform", "connected", "calibration error"]
    report.add(markdown(columns, table))
    for rate, parts in bins.items():
        stated, truth, weight = (np.concatenate(side) for side in zip(*parts, strict=True))
        errors, rows = wide_bins(stated, truth, weight)
        report.add(f"Base rate {rate:g}: calibration error {errors:.4f} (ten bins of equal width)")
        report.add(markdown(["stated", "mean stated", "observed", "links"], rows))
    means = np.mean(lists, axis=0)
    report.add("Hit rates of the lists of 2,000 random nodes a seed:")
    rows = [[rank + 1, f"{a:.4f}", f"{b:.4f}"] for rank, (a, b) in enumerate(means)]
    report.add(markdown(["rank", "shown", "observed"], rows))


def hard_pairs(model: Any, hidden: Any, rng: Any) -> tuple[Any, Any, Any]:
    """Scores of hidden edges, random pairs and near misses, the truth, and what each counts.

    Near misses are what walks of two steps in any direction reach; a source's near misses and other
    nodes are drawn apart, and each counts as many as it stands for.
    """
    graph, rest = hidden.graph, hidden.rest
    n = graph.n_nodes
    some = rng.permutation(hidden.edges)[:3000]
    u, v, truth, weight = [graph.sources[some]], [graph.targets[some]], [], []
    weight.append(np.ones(len(some)))
    truth.append(np.ones(len(some), dtype=bool))
    both = rest.to_scipy()
    both = (both + both.T).tocsr()
    for source in rng.integers(n, size=1500):
        known = np.zeros(n, dtype=bool)
        known[graph.targets[graph.indptr[source] : graph.indptr[source + 1]]] = True
        known[source] = True
        near = np.zeros(n, dtype=bool)
        first = both.indices[both.indptr[source] : both.indptr[source + 1]]
        near[first] = True
        for x in first[:200]:
            near[both.indices[both.indptr[x] : both.indptr[x + 1]]] = True
        for side in (np.flatnonzero(near & ~known), np.flatnonzero(~near & ~known)):
            drawn = rng.permutation(side)[:10]
            u.append(np.full(len(drawn), source))
            v.append(drawn)
            weight.append(np.full(len(drawn), len(side) / max(len(drawn), 1)))
            truth.append(np.zeros(len(drawn), dtype=bool))
    ends = np.concatenate(u).astype(np.int64), np.concatenate(v).astype(np.int64)
    return model.score_codes(*ends), np.concatenate(truth), np.concatenate(weight)


def wide_bins(stated: Any, truth: Any, weight: Any) -> tuple[float, list[list[object]]]:
    """Calibration error over ten bins of equal width, and the bins."""
    place = np.minimum((10 * stated).astype(int), 9)
    total = np.bincount(place, weight, minlength=10)
    said, right = (np.bincount(place, weight * x, minlength=10) for x in (stated, truth))
    links = np.bincount(place, truth, minlength=10).astype(int)
    used = np.flatnonzero(total > 0)
    error = float(np.abs(said - right)[used].sum() / total.sum())
    return error, [
        [f"{b / 10:.1f} – {(b + 1) / 10:.1f}", f"{said[b] / total[b]:.3f}",
         f"{right[b] / total[b]:.3f}", int(links[b])]
        for b in used
    ]  # fmt: skip


def hit_rates(model: Any, hidden: Any, rng: Any) -> Any:
    """Rates shown and hits observed at ranks 1 to 10, means over random nodes."""
    graph, left = model.graph_, hidden.left()
    nodes = rng.permutation(graph.n_nodes)[:2000]
    shown, right = np.zeros((2, 10))
    lists = model.recommend(graph.labels[nodes], 10)
    for node, (names, rates) in zip(nodes, lists, strict=True):
        hit = left.find_edges(np.full(len(names), node), graph.codes(names)) >= 0
        shown[: len(names)] += rates
        right[: len(names)] += hit
    return np.column_stack([shown, right]) / len(nodes)


def over_time(report: Any, options: Any) -> None:
    """The newest sources: half of their edges known, and none."""
    from _common import markdown

    from atpgraph.linkpred.protocols.splits import make_time_split
    from atpgraph.linkpred.registry import choose

    graph = read(options.graph)
    times = np.array([arxiv_time(int(label)) for label in graph.labels.tolist()])
    rows = choose(
        "links,ppr,ppr-degree,paths,item-cosine,recent-cosine,popularity,recent-popularity"
    )
    tests = ("time", "time-cold")
    found: dict[tuple[str, str], list[Any]] = {(row.key, t): [] for row in rows for t in tests}
    asked: dict[str, list[Any]] = {name: [] for name in tests}
    for seed in range(options.seeds):
        split = make_time_split(graph, times, random_state=seed, max_queries=options.queries)
        for row in rows:
            method = row.make(64, seed)
            split.fit(method)
            for name in tests:
                ranks, _ = split.tests[name].ranks_among_all(
                    method.under(name) if hasattr(method, "under") else method
                )
                found[row.key, name].append(ranks)
        for name in tests:
            asked[name].append(split.tests[name].queries.sources)
        print(f"seed {seed}: done", file=sys.stderr, flush=True)
    lines = []
    for row in rows:
        cells: list[object] = [row.make(64, 0).name]
        for name in tests:
            ranks = np.concatenate(found[row.key, name])
            told = f"{np.mean(1 / ranks):.4f}"
            if row.key != "links":
                gap = 1 / np.concatenate(found["links", name]) - 1 / ranks
                mean, half = clustered_mean(gap, np.concatenate(asked[name]))
                told += f" ({mean:+.4f}: {mean - half:+.4f} … {mean + half:+.4f})"
            cells += [told, f"{np.mean(ranks <= 100):.3f}"]
        lines.append(cells)
    both = [np.concatenate(asked[name]) for name in tests]
    counts = [f"{len(each):,} targets of {len(np.unique(each)):,} sources" for each in both]
    report.add(
        f"The newest 5 % of the sources, {options.seeds} splits: {counts[0]}, half of whose edges "
        f"are known, and {counts[1]} without any, ranked among all nodes. In brackets what `links` "
        "is ahead by, with the paired 95 % interval; targets of one source count as one draw."
    )
    heads = ["row", "half known, MRR", "recall@100", "cold, MRR", "recall@100"]
    report.add(markdown(heads, lines))


def before(report: Any, options: Any) -> None:
    """The predictor of an earlier table and that of the table there is, under every protocol."""
    from _common import markdown

    from atpgraph.evaluation.intervals import compare

    now = RESULTS / f"linkpred-{options.graph}.json"
    sides = [json.loads(Path(each).read_text())["methods"] for each in (options.old, now)]
    rows = []
    for protocol, metric in (PROTOCOLS | {"dirlinkbench": "hits@100"}).items():

        def values(row: str, protocol: str = protocol, metric: str = metric) -> list[Any]:
            found = [side[row]["protocols"].get(protocol) for side in sides]
            return [each and each[metric]["values"] for each in found]

        same, (old, new) = values("degree-product"), values("links")
        if not old or not new:
            continue
        both = min(len(old), len(new))
        if same[0] and not np.allclose(same[0][:both], same[1][:both], atol=1e-12):
            raise SystemExit(f"{options.old} is not of these splits: degree-product differs.")
        gap = compare(new[:both], old[:both]).difference
        rows.append([f"{protocol} {metric.upper()}", both, f"{np.mean(old[:both]):.4f}",
                     f"{np.mean(new[:both]):.4f}",
                     f"{gap.mean:+.4f} ({gap.low:+.4f} … {gap.high:+.4f})"])  # fmt: skip
    report.add(
        "The same splits for both, as a row without randomness shows; the difference with its 95 % "
        "interval."
    )
    versions = [side["links"]["version"] for side in sides]
    report.add(markdown(["protocol", "splits", *versions, "difference"], rows))


def arxiv_time(number: int) -> int:
    """Put arXiv numbers YYMMNNN in the order of time; those of 2000 on have lost leading zeros."""
    return number + 10_000_000 if number < 9_000_000 else number


def clustered_mean(values: Any, groups: Any) -> tuple[float, float]:
    """Mean of values, and half of its 95 % interval if only groups are independent."""
    _, place = np.unique(groups, return_inverse=True)
    mean = float(values.mean())
    sums = np.bincount(place, values - mean)
    return mean, float(1.96 * np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def attributes(report: Any, options: Any) -> None:
    """Planted attributes, noise, and none."""
    from _common import markdown

    from atpgraph import DiGraph, LinkPredictor
    from atpgraph.evaluation.intervals import compare
    from atpgraph.evaluation.metrics import auc
    from atpgraph.linkpred import make_split

    found: dict[str, list[float]] = {"none": [], "informative": [], "noise": []}
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        n, topics = 1000, 20
        topic = rng.integers(topics, size=n)
        u, v = rng.integers(n, size=(2, 40 * n))
        keep = ((topic[u] == topic[v]) | (rng.random(40 * n) < 0.02)) & (u != v)
        planted = DiGraph.from_codes(u[keep], v[keep], n)
        known = np.eye(topics)[topic] + 0.3 * rng.standard_normal((n, topics))
        given = {"none": None, "informative": known, "noise": rng.standard_normal(known.shape)}
        split = make_split(planted, protocols=["random"], random_state=seed)
        test: Any = split.tests["random"]
        for kind, values in given.items():
            model = LinkPredictor(random_state=seed).fit(split.train, values)
            sides = (test.positives, test.negatives)
            good, bad = (model.score_codes(side.sources, side.targets) for side in sides)
            found[kind].append(auc(good, bad))
    lines = []
    for kind, values in found.items():
        gap = compare(values, found["none"]).difference
        told = "" if kind == "none" else f"{gap.mean:+.4f} ({gap.low:+.4f} … {gap.high:+.4f})"
        lines.append([kind, f"{np.mean(values):.4f}", told])
    report.add(
        f"1,000 nodes of 20 topics, links within a topic, {options.seeds} graphs; AUC against "
        "random pairs."
    )
    report.add(markdown(["attributes", "AUC", "difference to none (95 % interval)"], lines))


def speed(report: Any, options: Any) -> None:
    """Our fit beside others on an R-MAT graph of a million edges."""
    from _common import markdown

    names = {
        "links": "`LinkPredictor`",
        "als": "implicit, ALS of 64, 15 iterations, one thread",
    }
    if find_spec("sknetwork"):
        names["sknetwork"] = "scikit-network, SVD of 64"
    found = {what: run(what, "rmat:1000000") for what in names}
    report.add(markdown(
        ["fit", "CPU s", "times ALS", "peak memory, MB"],
        [[names[what], r["cpu"], r["cpu"] / found["als"]["cpu"], r["memory"]]
         for what, r in found.items()],
    ))  # fmt: skip
    ours = found["links"]
    report.add(
        f"`recommend(node, 10)` after loading the file, 200 random nodes, one at a time: median "
        f"{ours['median']:.1f} ms of CPU, 95 % below {ours['high']:.1f} ms. `top_links(100)`: "
        f"{ours['top']:.1f} CPU s."
    )


def growth(report: Any, options: Any) -> None:
    """R-MAT graphs of growing size."""
    from _common import markdown

    rows = []
    for edges in map(int, options.edges.split(",")):
        r = run("links", f"rmat:{edges}")
        names = ("nodes", "edges", "cpu", "memory", "median", "high", "top")
        rows.append([r[name] for name in names])
    report.add(markdown(
        ["nodes", "edges", "fit, CPU s", "peak memory, MB", "recommend, ms (median)", "95 %",
         "top_links(100), CPU s"], rows,
    ))  # fmt: skip


def run(what: str, graph: str) -> dict[str, float]:
    """A job in a process of its own."""
    asked = json.dumps({"what": what, "graph": graph})
    command = [sys.executable, __file__, "--job", asked]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    found: dict[str, float] = json.loads(done.stdout)
    print(f"{what} {graph}: {found}", file=sys.stderr, flush=True)
    return found


def job(what: str, graph: str) -> dict[str, float]:
    """Fit one model, kernels compiled before; CPU seconds and the largest memory."""
    import scipy.sparse as sp

    whole = rmat(int(graph.removeprefix("rmat:")))
    matrix = sp.csr_matrix(whole.to_scipy().astype(np.float32))
    matrix.data[:] = 1.0
    if what == "als":
        from implicit.als import AlternatingLeastSquares

        als = AlternatingLeastSquares(64, iterations=15, num_threads=1, random_state=0)
        work: Any = lambda: als.fit(matrix, show_progress=False)  # noqa: E731
    elif what == "sknetwork":
        from sknetwork.embedding import SVD

        work = lambda: SVD(64).fit(matrix)  # noqa: E731
    else:
        from atpgraph import LinkPredictor

        LinkPredictor(n_components=4, max_pairs=50).fit(_small())
        work = lambda: LinkPredictor().fit(whole)  # noqa: E731
    started = time.process_time()
    model = work()
    found = {
        "cpu": time.process_time() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "nodes": whole.n_nodes,
        "edges": whole.n_edges,
    }
    return found | (_answers(model) if what == "links" else {})


def _small() -> Any:
    from atpgraph import citation_dag

    return citation_dag(300, 2000, random_state=0)


def _answers(model: Any) -> dict[str, float]:
    """CPU time of the answers of a model that was saved and loaded."""
    import tempfile

    from atpgraph import LinkPredictor

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        loaded = LinkPredictor.load(Path(folder) / "model.npz")
    some = np.random.default_rng(0).integers(loaded.graph_.n_nodes, size=201)
    times = []
    for label in loaded.graph_.labels[some].tolist():
        started = time.process_time()
        loaded.recommend(label, 10)
        times.append(1000 * (time.process_time() - started))
    started = time.process_time()
    loaded.top_links(100)
    return {
        "median": float(np.median(times[1:])),
        "high": float(np.quantile(times[1:], 0.95)),
        "top": time.process_time() - started,
    }


def rmat(edges: int) -> Any:
    """An R-MAT graph (.57, .19, .19, .05) of about ten edges a node."""
    from atpgraph import DiGraph

    rng = np.random.default_rng(0)
    bits = max(int(np.ceil(np.log2(edges / 10))), 1)
    u, v = np.zeros((2, int(edges * 1.05)), dtype=np.int64)
    for _ in range(bits):
        draw = rng.random(len(u))
        u, v = 2 * u + (draw > 0.76), 2 * v + (((draw > 0.57) & (draw <= 0.76)) | (draw > 0.95))
    return DiGraph.from_codes(u, v, 2**bits)


if __name__ == "__main__":
    main()
