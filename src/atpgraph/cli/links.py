"""``atp links``: learn a link predictor from a graph, query it, and compare it with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import atpgraph
from atpgraph.cli import options as opts
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, sized, sizes, table
from atpgraph.cli.info import validation_tables
from atpgraph.cli.nodes import answer_pairs, known_labels
from atpgraph.cli.options import Reading, Report, arg, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable
from atpgraph.util.memory import peak_megabytes

if TYPE_CHECKING:
    from rich.table import Table

    from atpgraph.linkpred.benchmark import BenchmarkResult, MethodResult

_EXPLAINED = ("score", "base", "reasons")  # base and weights add up to the score
app = Commands(help="Predict missing links: learn from a graph, then get suggestions.")

Model = Annotated[Path, arg("File that 'atp links fit' wrote.")]
Density = Annotated[
    float | None,
    opt(
        "Share of missing links among all pairs without an edge, in (0, 1).",
        "--base-rate",
        show_default="the share that was hidden to learn from",
    ),
]


@app.command()
def fit(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    output: Path = output("File of the predictor (.npz)."),
    attributes: Path | None = opt("File with a line per node: its label, then text or numbers."),
    times: Path | None = opt(
        "File with times of nodes (label, time) or edges (source, target, time)."
    ),
    evidence: str = opt(
        "Kinds of evidence, separated by commas, 'default' or 'all'.", default="default"
    ),
    dim: opts.Dim = 32,
    threads: opts.Threads = None,
    report: Report = None,
    seed: opts.Seed = 0,
) -> None:
    """Learn which links a graph should have, and save the predictor."""
    from atpgraph.linkpred.evidence.attributes import read_attributes, read_times

    check_writable(output)
    model = atpgraph.LinkPredictor(evidence, n_components=dim, n_jobs=threads, random_state=seed)
    read = reading.read(graph)
    known = None if attributes is None else read_attributes(attributes, read)
    when = None if times is None else read_times(times, read)
    model.fit(read, known, times=when)
    model.save(output)
    payload: dict[str, Any] = {
        **sizes(read),
        "evidence": model.evidence_.kinds,
        "validation": model.validation_,
        "seconds": out.seconds,
        "peak_memory_mb": round(peak_megabytes(), 1),
        "output": output,
    }
    out.result(
        payload,
        f"{sized(graph, read)}; evidence: {', '.join(model.evidence_.kinds)}",
        *validation_tables(model),
        f"{out.seconds:.1f} s, peak memory {peak_megabytes():,.0f} MB",
        f"{output}: written; next: atp links recommend {output} NODE",
        report=report,
    )


@app.command()
def score(
    out: Session,
    model: Model,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    base_rate: float = opt("Share of links among the pairs you ask about, in (0, 1).", default=0.5),
) -> None:
    """Estimate how likely a link from U to V is, and which way it points."""
    import numpy as np

    loaded = atpgraph.LinkPredictor.load(model)
    graph = loaded.graph_
    ask: dict[str, Any] = {
        "known": lambda u, v: graph.find_edges(graph.codes(u), graph.codes(v)) >= 0,
        "probability": lambda u, v: loaded.predict_proba(u, v, base_rate),
        "forward": lambda u, v: 1.0 / (1.0 + np.exp(-loaded.score_pairs(u, v, "direction"))),
    }
    rows = answer_pairs(out, graph, nodes, pairs, ask)
    columns = {"source": "source", "target": "target", "edge already": "known"}
    columns |= {"probability": "probability", "points this way": "forward"}
    out.result({"base_rate": base_rate, "pairs": rows}, table(columns, rows))


@app.command()
def recommend(
    out: Session,
    model: Model,
    node: Annotated[str, arg("Label of the node.")],
    top: opts.Top = 10,
    sources: bool = opt("List nodes that should link to this one, not targets."),
    explain: bool = opt("List the evidence for each."),
    include_known: bool = opt("Also list nodes that already have the link."),
    base_rate: Density = None,
) -> None:
    """List the likeliest targets of a node, best first."""
    loaded = atpgraph.LinkPredictor.load(model)
    (label,) = known_labels(loaded.graph_, [node])
    direction = "sources" if sources else "targets"
    find = loaded.recommend_sources if sources else loaded.recommend
    names, rates = find(label, top, exclude_known=not include_known, base_rate=base_rate)
    rows: list[dict[str, Any]] = [
        {"node": name, "rate": float(rate)}
        for name, rate in zip(names.tolist(), rates, strict=True)
    ]
    reasons = []
    for row in rows if explain else []:
        ends = (row["node"], label) if sources else (label, row["node"])
        why = loaded.explain(*ends, order=direction)
        row |= {name: value for name, value in why.to_dict().items() if name in _EXPLAINED}
        reasons.append(str(why))
    cold = not sources and loaded.is_cold(label)
    if cold:
        out.note(f"{label} has no edges: these are the nodes that got the most links recently")
    payload = {
        "node": label,
        "direction": direction,
        "base_rate": loaded.density_ if base_rate is None else base_rate,
        "cold": cold,
        "recommended": rows,
    }
    columns = {"node": "node", "probability" if sources else "hit rate": "rate"}
    out.result(payload, table(columns, rows, f"{direction} for {label}"), *reasons)


@app.command()
def top(out: Session, model: Model, top: opts.Top = 100, base_rate: Density = None) -> None:
    """List the likeliest missing links of the whole graph."""
    loaded = atpgraph.LinkPredictor.load(model)
    sources, targets, rates = loaded.top_links(top, base_rate=base_rate)
    rows = [
        {"source": u, "target": v, "rate": float(rate)}
        for u, v, rate in zip(sources.tolist(), targets.tolist(), rates, strict=True)
    ]
    out.result(
        {"base_rate": loaded.density_ if base_rate is None else base_rate, "links": rows},
        table({"source": "source", "target": "target", "hit rate": "rate"}, rows),
    )


@app.command()
def compare(
    out: Session,
    graph: Annotated[
        str,
        arg(
            "Edge list, a name of 'atp data list', or a folder of DirLinkBench splits.",
            metavar="GRAPH|NAME|FOLDER",
        ),
    ],
    reading: Reading,
    methods: str = opt(
        "'all', or methods and groups (ours, rival, trivial), separated by commas.", default="all"
    ),
    protocol: str = opt(
        "Protocols, separated by commas.", default="paper,random,reversed,ranking,dirlinkbench"
    ),
    dim: str = opt(
        "Dimensions per side, separated by commas; the table shows the first.", default="64"
    ),
    seeds: int | None = opt(
        "Number of splits.", min=1, max=1000, show_default="5; all splits of a folder"
    ),
    times: Path | None = opt(
        "File with times: train on the past, test on the newest sources; replaces --protocol."
    ),
    fraction: float | None = opt(
        "Share of the edges taken out for testing; with --times, of the sources.",
        show_default="0.1; with --times 0.05",
    ),
    queries: int = opt(
        "Number of test edges to rank per split, drawn at random; 0 for all.", default=2000, min=0
    ),
    report: Report = None,
) -> None:
    """Hide edges and compare how well each method finds them, with intervals."""
    from atpgraph.linkpred.benchmark import run
    from atpgraph.linkpred.evidence.attributes import read_times
    from atpgraph.linkpred.protocols.splits import is_splits, make_time_split, read_splits
    from atpgraph.linkpred.registry import PUBLISHED
    from atpgraph.report.comparison import render

    dims = opts.dimensions("--dim", dim)
    splits, published = [], {}
    if is_splits(graph):
        reading.check_unused(Path(graph))
        splits = read_splits(graph)
        name, loaded, protocol = Path(graph).resolve().name, splits[0].train, "dirlinkbench"
        published = PUBLISHED.get(name, {})
    else:
        name, loaded = _load(graph, reading)
    if times is not None:
        when = read_times(times, loaded)
        splits = [
            make_time_split(
                loaded,
                when,
                fraction=0.05 if fraction is None else fraction,
                random_state=seed,
                max_queries=queries or None,
            )
            for seed in range(seeds or 5)
        ]
    result = run(
        loaded,
        methods,
        opts.names(protocol),
        dim=dims,
        seeds=seeds,
        fraction=0.1 if fraction is None else fraction,
        max_queries=queries or None,
        name=name,
        splits=splits,
    )
    for key, reason in result.unavailable.items():
        out.note(f"{key} was not run: {reason}")
    if result.test_edges < result.requested:
        out.note(
            f"only {result.test_edges:,} of {result.requested:,} test edges could be taken "
            "without disconnecting the graph"
        )
    payload = result.to_json()
    if published:
        payload["published"] = published
        told = ", ".join(f"{row} {value}" for row, value in published.items())
        out.note(f"published by the authors of DirLinkBench, Hits@100 in percent: {told}")
    notes = [f"{row.name}: {row.note}" for row in result.main() if row.note]
    failures = [f"{row.name} has no result: {row.failure}" for row in result.main() if row.failure]
    out.result(
        payload,
        _summary(result),
        *notes,
        *failures,
        report=report,
        render=lambda command: render(result, command),
    )


def _load(graph: str, reading: Reading) -> tuple[str, atpgraph.DiGraph]:
    from atpgraph import datasets

    if graph == "-" or Path(graph).exists():
        return Path(graph).name, reading.read(graph)
    try:
        dataset = datasets.find(graph)
    except InputError:
        raise InputError(
            f"{graph} is neither a file nor a dataset; the datasets are "
            f"{', '.join(datasets.DATASETS)}."
        ) from None
    reading.check_unused(Path(graph))
    return dataset.name, datasets.load(dataset.name)


def _summary(result: BenchmarkResult) -> Table:
    """Return a row for each method, with a star at the best of each column."""
    columns = [f"{each}\n{result.headline(each).upper()}" for each in result.protocols]
    rows = []
    for row in result.main():
        if row.runs:
            memory = None if row.memory is None else f"{row.memory / 1e6:,.0f}"
            cells = [_cell(result, row, protocol) for protocol in result.protocols]
            rows.append([row.name, *cells, f"{row.seconds.mean:.2f}", memory])
    title = f"{result.graph}, dimension {result.dims[0]}; * is the best"
    return table(["method", *columns, "fit\ns", "memory\nMB"], rows, title)


def _cell(result: BenchmarkResult, row: MethodResult, protocol: str) -> str:
    metric = result.headline(protocol)
    value = row.interval(protocol, metric)
    text = f"{value.mean:.4f}"
    if value.high == value.high:  # not NaN: more than one seed
        text += f" ±{value.high - value.mean:.4f}"
    return f"{text} *" if result.best(protocol, metric) is row else text
