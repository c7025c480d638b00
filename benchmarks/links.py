"""What each evidence adds, whether probabilities are true, whether attributes help, what it costs.

    python benchmarks/links.py evidence --graph wiki-vote --seeds 3
    python benchmarks/links.py evidence --graph ../shared/data/dirlinkbench/cora_ml
    python benchmarks/links.py terms --graph cit-hepph
    python benchmarks/links.py attributes --seeds 5
    python benchmarks/links.py speed --graph cit-hepph [--old OLD/src]
    python benchmarks/links.py growth [--edges 100000,1000000]

`evidence` fits once for each split and learns the weights again without some of the evidence, so
that all rows see the same pairs; the candidates that the model for targets learns from come from
all of it. Results of a graph are kept in a JSON file, and the table has all graphs that were run.
A folder of DirLinkBench's splits stands for the graph that its first split observes, which is
split again. `terms` is the validation that some terms were chosen by: it splits the training graph
of seed 100, which no table reports, with seeds from 101 on. `speed` and `growth` run every fit in a
process of its own that has compiled its kernels. OLD is 0.1.0, made by:
git archive 614ac2e src | tar -x -C OLD
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
LEFT_OUT = (
    ("atp",),
    ("levels",),
    ("atp", "levels"),
    ("degrees",),
    ("proximity",),
    ("reach",),
    ("paths",),
    ("citation",),
    ("reverse",),
    ("spectral",),
)
NEW_TERMS = {
    "without roots of local evidence": (
        "root of proximity",
        "root of reach",
        "root of >",
        "root of <",
        "root of item",
    ),
    "without item-item cosine": ("any item", "log item", "root of item"),
    "without sums over fewer singular vectors": (", an eighth", ", a quarter", ", half"),
}
PAIRS, QUERIES = 4000, 300  # test pairs of each side, and test edges that are ranked
PROTOCOLS = {"random": "auc", "reversed": "auc", "ranking": "mrr"}


def main() -> None:
    """Run one section."""
    from _common import Report, arguments

    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("section", choices=["evidence", "terms", "attributes", "speed", "growth"])
    parser.add_argument("--graph", default="wiki-vote")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--edges", default="100000,1000000,5000000")
    parser.add_argument("--old", type=Path, help="the folder src of 0.1.0")
    if "--job" in sys.argv:
        print(json.dumps(job(**json.loads(sys.argv[-1]))))
        return
    options = parser.parse_args()
    about = {
        "evidence": f" --graph {Path(options.graph).name} --seeds {options.seeds}",
        "terms": f" --graph {Path(options.graph).name} --seeds {options.seeds}",
        "attributes": f" --seeds {options.seeds}",
        "speed": f" --graph {options.graph}" + (" --old OLD/src" if options.old else ""),
        "growth": f" --edges {options.edges}",
    }[options.section]
    command = f"python benchmarks/links.py {options.section}{about}"
    report = Report(
        f"Links: {options.section}",
        command,
        options.output or RESULTS / f"links-{options.section}.md",
    )
    sections = {"attributes": attributes, "speed": speed, "growth": growth}
    sections |= {"evidence": evidence, "terms": evidence}
    sections[options.section](report, options)
    report.save()


def read(name: str) -> Any:
    """A graph by name, or the one that the first split of a folder observes."""
    from atpgraph import datasets
    from atpgraph.linkpred.protocols.dirlinkbench import read_splits

    return read_splits(Path(name))[0].train if Path(name).is_dir() else datasets.load(name)


def evidence(report: Any, options: Any) -> None:
    """Run a graph, keep its numbers, and write the tables of all graphs there are."""
    from _common import markdown

    file = RESULTS / f"links-{options.section}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    found = study(read(options.graph), options.seeds, options.section)
    kept[Path(options.graph).name] = found | {"seeds": options.seeds}
    file.write_text(json.dumps(kept, indent=1) + "\n")
    report.add(
        "Made for one graph at a time; the command is that of the last. A row is all evidence but "
        "some; in brackets the paired difference to all evidence with its 95 % interval over the "
        "splits. Calibration: expected error of `predict_proba` on held-out edges and as many "
        f"random pairs, ten bins of equal size. Up to {PAIRS:,} pairs of each side and {QUERIES} "
        "rankings a split."
    )
    for name, graph in kept.items():
        report.add(f"## {name}, {graph['seeds']} splits")
        columns = ["evidence", *(f"{p} {m.upper()}" for p, m in PROTOCOLS.items())]
        report.add(markdown(columns, ablation_rows(graph["ablation"])))
        if options.section == "terms":
            continue
        errors = graph["calibration"]["errors"]
        report.add(
            f"Calibration error {np.mean(errors):.4f} (mean of the splits, largest "
            f"{max(errors):.4f}), {graph['calibration']['pooled']:.4f} pooled."
        )
        bins = graph["calibration"]["bins"]
        shown = [[b["questions"], f"{b['stated']:.3f}", f"{b['right']:.3f}"] for b in bins]
        report.add(markdown(["pairs", "stated", "observed"], shown))


def ablation_rows(found: dict[str, dict[str, list[float]]]) -> list[list[object]]:
    """Means, and paired differences to all evidence."""
    from atpgraph.evaluation.comparison import compare

    lines: list[list[object]] = []
    for key, values in found.items():
        cells: list[object] = [key]
        for protocol in PROTOCOLS:
            told = f"{np.mean(values[protocol]):.4f}"
            if key != "all":
                gap = compare(values[protocol], found["all"][protocol]).difference
                told += f" ({gap.mean:+.4f}: {gap.low:+.4f} … {gap.high:+.4f})"
            cells.append(told)
        lines.append(cells)
    return lines


def study(graph: Any, seeds: int, section: str) -> dict[str, Any]:
    """Ablation and calibration over splits; one fit for each."""
    from atpgraph.evaluation.calibration import reliability
    from atpgraph.linkpred import make_split

    first = 0
    if section == "terms":
        first, graph = 101, make_split(graph, protocols=["random"], random_state=100).train
    rows: dict[str, dict[str, list[float]]] = {}
    stated, truth, errors = [], [], []
    for seed in range(first, first + seeds):
        split = make_split(graph, protocols=list(PROTOCOLS), random_state=seed, max_queries=QUERIES)
        for key, values, chance, right in one_split(split, seed, section):
            for protocol, value in values.items():
                rows.setdefault(key, {}).setdefault(protocol, []).append(value)
            if key == "all":
                stated.append(chance)
                truth.append(right)
                errors.append(reliability(chance, right, groups=10)["error"])
        print(f"split {seed}: done", file=sys.stderr, flush=True)
    pooled = reliability(np.concatenate(stated), np.concatenate(truth), groups=10)
    about = {"errors": errors, "pooled": pooled["error"], "bins": pooled["bins"]}
    return {"ablation": rows, "calibration": about}


def one_split(split: Any, seed: int, section: str) -> list[tuple[str, dict[str, float], Any, Any]]:
    """Every row on one split: measures, stated chances of the pairs of `random`, the truth."""
    from atpgraph.linkpred.examples import Plan, examples

    from atpgraph.evaluation.metrics import auc
    from atpgraph.linkpred.evidence import Collection
    from atpgraph.linkpred.evidence.collection import Settings
    from atpgraph.linkpred.learning import combine

    settings = Settings(random_state=seed)
    rng = np.random.default_rng(seed)
    sample, _ = examples(split.train, lambda: Collection("all", settings), Plan(), rng)
    found = Collection("all", settings).fit(split.train)
    terms = {
        (protocol, side): found.terms(pairs.sources, pairs.targets)
        for protocol in ("random", "reversed")
        for side in ("positives", "negatives")
        for pairs in (_some(getattr(split.tests[protocol], side)),)
    }
    none = found.columns_of("attributes")
    learned = {
        key: combine(sample, none, mask)
        for key, mask in ({"all": none} | masks(found, section)).items()
    }
    ranking = reciprocal_ranks(split.tests["ranking"], found, learned)
    results = []
    for key, heads in learned.items():
        values = {"ranking": ranking[key]}
        for protocol, question in (("reversed", "direction"), ("random", "link")):
            good, bad = (
                heads[question].score(terms[protocol, side]) for side in ("positives", "negatives")
            )
            values[protocol] = auc(good, bad)
        chance = 1.0 / (1.0 + np.exp(-np.concatenate([good, bad])))
        results.append((key, values, chance, np.repeat([1.0, 0.0], [len(good), len(bad)])))
    return results


def masks(found: Any, section: str) -> dict[str, Any]:
    """The terms that each row does without."""
    if section == "evidence":
        return {f"without {' and '.join(out)}": found.columns_of(*out) for out in LEFT_OUT}
    names = found.term_names
    return {
        key: np.array([any(part in name for part in parts) for name in names])
        for key, parts in (
            NEW_TERMS | {"without all of these": sum(NEW_TERMS.values(), ())}
        ).items()
    }


def reciprocal_ranks(test: Any, found: Any, learned: dict[str, Any]) -> dict[str, float]:
    """MRR of every row, with the terms of all targets of a source computed once for all rows."""
    n, known = found.graph.n_nodes, test.known
    weights = np.column_stack([heads["target"].weights for heads in learned.values()])
    total = np.zeros(len(learned))
    for u, v in zip(test.queries.sources.tolist(), test.queries.targets.tolist(), strict=True):
        scores = found.terms(np.full(n, u), np.arange(n)) @ weights
        free = np.ones(n, dtype=bool)
        free[known.targets[known.indptr[u] : known.indptr[u + 1]]] = False
        free[u] = False
        others = scores[free]
        ranks = 1 + (others > scores[v]).sum(axis=0) + (others == scores[v]).sum(axis=0) / 2
        total += 1.0 / ranks
    return dict(zip(learned, (total / len(test.queries)).tolist(), strict=True))


def _some(pairs: Any) -> Any:
    """A bounded number of test pairs, spread over all of them."""
    return pairs.take(np.linspace(0, len(pairs) - 1, min(len(pairs), PAIRS)).astype(np.int64))


def attributes(report: Any, options: Any) -> None:
    """Planted attributes, noise, and none."""
    from _common import markdown

    from atpgraph import DiGraph, LinkPredictor
    from atpgraph.evaluation.comparison import compare
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
    """Our fit beside others on one graph, and the time of a recommendation."""
    from _common import markdown

    rows = []
    if options.old:
        rows.append(["`atp-blend` of 0.1.0", run("blend", options.graph, options.old)])
    for name, what in (
        ("`LinkPredictor`", "links"),
        ("scikit-network, SVD of 64", "sknetwork"),
        ("pycleora, 64", "pycleora"),
    ):
        rows.append([name, run(what, options.graph)])
    report.add(markdown(
        ["fit", "CPU s", "peak memory, MB"], [[name, r["cpu"], r["memory"]] for name, r in rows]
    ))  # fmt: skip
    ours = dict(rows)["`LinkPredictor`"]
    report.add(
        f"`recommend(node, 10)` after loading the file, 200 random nodes, one at a time: median "
        f"{ours['median']:.1f} ms of CPU, 95 % below {ours['high']:.1f} ms."
    )


def growth(report: Any, options: Any) -> None:
    """R-MAT graphs of growing size."""
    from _common import markdown

    rows = []
    for edges in map(int, options.edges.split(",")):
        r = run("links", f"rmat:{edges}")
        rows.append([r["nodes"], r["edges"], r["cpu"], r["memory"], r["median"], r["high"]])
    report.add(markdown(
        ["nodes", "edges", "fit, CPU s", "peak memory, MB", "recommend, ms (median)", "95 %"], rows
    ))  # fmt: skip


def run(what: str, graph: str, source: Path | None = None) -> dict[str, float]:
    """A job in a process of its own, with the package that lies in `source`."""
    env = os.environ | ({"PYTHONPATH": str(source.resolve())} if source else {})
    asked = json.dumps({"what": what, "graph": graph})
    command = [sys.executable, __file__, "--job", asked]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    found: dict[str, float] = json.loads(done.stdout)
    print(f"{what} {graph}: {found}", file=sys.stderr, flush=True)
    return found


def job(what: str, graph: str) -> dict[str, float]:
    """Fit one thing; CPU seconds and the peak memory of the process."""
    import resource

    whole = rmat(int(graph[5:])) if graph.startswith("rmat:") else _load(graph)
    if what == "sknetwork":
        from sknetwork.embedding import SVD

        matrix = whole.to_scipy()
        matrix.data[:] = 1
        import scipy.sparse as sp

        work: Any = lambda: SVD(64).fit(sp.csr_matrix(matrix))  # noqa: E731
    elif what == "pycleora":
        import pycleora

        ends = zip(whole.sources.tolist(), whole.targets.tolist(), strict=True)
        lines = [f"{u} {v}" for u, v in ends]

        def work() -> Any:
            matrix = pycleora.SparseMatrix.from_iterator(iter(lines), "complex::reflexive::node")
            return pycleora.embed(matrix, feature_dim=64)
    elif what == "blend":
        from atpgraph.linkpred import ours

        ours.ATPBlend(8).fit(_small())
        work = lambda: ours.ATPBlend(64).fit(whole)  # noqa: E731
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


def _load(graph: str) -> Any:
    from atpgraph import datasets

    return datasets.load(graph)


def _small() -> Any:
    from atpgraph import citation_dag

    return citation_dag(300, 2000, random_state=0)


def _answers(model: Any) -> dict[str, float]:
    """Milliseconds of CPU of a recommendation by a model that was saved and loaded."""
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
    return {"median": float(np.median(times[1:])), "high": float(np.quantile(times[1:], 0.95))}


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
