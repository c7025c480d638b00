"""``atp links``: learn a link predictor from a graph, and ask it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from atpgraph.cli import options as opts
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, table, typed_command
from atpgraph.cli.nodes import answer_pairs, asked_pairs, known_labels
from atpgraph.cli.options import Reading, arg, opt

app = Commands(help="Predict links: learn from a graph, then ask for what is missing.")

Model = Annotated[Path, arg("File that 'atp links fit' wrote.")]
Density = Annotated[
    float | None,
    opt(
        "Share of missing links among all pairs without an edge, in (0, 1).",
        "--base-rate",
        show_default="as many as were hidden to learn",
    ),
]

_COLD = "{} has no edges: these are the nodes that got the most links of late"
_QUESTIONS = {
    "link": "any edge hidden",
    "connected": "its ends still connected",
    "direction": "against its reverse",
    "order": "against pairs joined the other way",
}


@app.command()
def fit(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    output: Annotated[Path, opt("File of the predictor (.npz).", "--output", "-o")],
    attributes: Annotated[
        Path | None,
        opt("Attributes of nodes, a line each: label, then text or numbers (.tsv or .csv)."),
    ] = None,
    times: Annotated[
        Path | None,
        opt(
            "When nodes appeared (label, time) or edges were made (source, target, time), a line "
            "each."
        ),
    ] = None,
    evidence: Annotated[
        str, opt("Kinds of evidence, separated by commas, 'default' or 'all'.")
    ] = "default",
    dim: Annotated[int, opt("Length of ATP's vectors.", min=1)] = 32,
    threads: opts.Threads = None,
    report: opts.Report = None,
    seed: opts.Seed = 0,
) -> None:
    """Learn which links a graph should have, and save the predictor."""
    from atpgraph.linkpred.evidence.attributes import read_attributes, read_times
    from atpgraph.linkpred.predictor import LinkPredictor
    from atpgraph.util.files import check_writable
    from atpgraph.util.memory import peak_megabytes

    check_writable(output)
    model = LinkPredictor(evidence, n_components=dim, n_jobs=threads, random_state=seed)
    started = time.perf_counter()
    read = reading.read(graph)
    known = None if attributes is None else read_attributes(attributes, read)
    when = None if times is None else read_times(times, read)
    model.fit(read, known, times=when)
    seconds = time.perf_counter() - started
    model.save(output)
    payload: dict[str, Any] = {
        "nodes": read.n_nodes,
        "edges": read.n_edges,
        "evidence": model.evidence_.kinds,
        "validation": model.validation_,
        "seconds": round(seconds, 3),
        "peak_memory_mb": round(peak_megabytes(), 1),
        "output": output,
    }
    if report is not None:
        from atpgraph.report.pages.links import write_report

        payload["report"] = write_report(model, report, typed_command(), name=graph.name)
        out.note(f"report written to {payload['report']}")
    out.result(
        payload,
        f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges; evidence: "
        f"{', '.join(model.evidence_.kinds)}",
        *validation_tables(model),
        f"{seconds:.1f} s, peak memory {peak_megabytes():,.0f} MB",
        f"{output}: written; next: atp links recommend {output} NODE",
    )


def validation_tables(model: Any) -> list[Any]:
    """Return the tables of how well a predictor found the edges that were hidden from it."""
    measured = model.validation_
    judged = [
        [name, measured[key]["auc"], measured[key]["error"]] for key, name in _QUESTIONS.items()
    ]
    ranks = [[row["rank"], row["stated"], row["right"]] for row in measured["hits"]["ranks"]]
    return [
        table(["on hidden edges", "AUC", "calibration error"], judged),
        table(["suggestion at rank", "stated hit rate", "observed"], ranks),
    ]


@app.command()
def score(
    out: Session,
    model: Model,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    base_rate: Annotated[
        float, opt("Share of links among the pairs you ask about, in (0, 1).")
    ] = 0.5,
) -> None:
    """How likely is a link from U to V, and does it point this way?"""
    import numpy as np

    from atpgraph.linkpred.predictor import LinkPredictor

    loaded = LinkPredictor.load(model)
    graph = loaded.graph_

    def ask(u: list[Any], v: list[Any]) -> list[Any]:
        known = graph.find_edges(graph.codes(u), graph.codes(v)) >= 0
        forward = 1.0 / (1.0 + np.exp(-loaded.score_pairs(u, v, "direction")))
        return [known, loaded.predict_proba(u, v, base_rate), forward]

    names = ["known", "probability", "forward"]
    rows = answer_pairs(out, graph, asked_pairs(graph, nodes, pairs), names, ask)
    shown = [
        [str(row["source"]), str(row["target"]), *(row[name] for name in names)] for row in rows
    ]
    columns = ["source", "target", "edge already", "probability", "points this way"]
    out.result({"base_rate": base_rate, "pairs": rows}, table(columns, shown))


@app.command()
def recommend(
    out: Session,
    model: Model,
    node: Annotated[str, arg("Label of the node.")],
    top: opts.Top = 10,
    sources: Annotated[
        bool, opt("Nodes that should link to this one, instead of targets.", "--sources")
    ] = False,
    explain: Annotated[bool, opt("List the evidence for each.", "--explain")] = False,
    include_known: Annotated[
        bool, opt("List nodes that have the link already, too.", "--include-known")
    ] = False,
    base_rate: Density = None,
) -> None:
    """The likeliest targets of a node, best first."""
    from atpgraph.linkpred.predictor import LinkPredictor

    loaded = LinkPredictor.load(model)
    (label,) = known_labels(loaded.graph_, [node])
    find = loaded.recommend_sources if sources else loaded.recommend
    names, rates = find(label, top, exclude_known=not include_known, base_rate=base_rate)
    rows: list[dict[str, Any]] = [
        {"node": name, "rate": float(rate)}
        for name, rate in zip(names.tolist(), rates, strict=True)
    ]
    reasons: list[str] = []
    if explain:
        for row in rows:
            ends = (row["node"], label) if sources else (label, row["node"])
            why = loaded.explain(*ends, order="sources" if sources else "targets")
            row["reasons"] = why.to_dict()["reasons"]
            reasons.append(str(why))
    cold = not sources and loaded.is_cold(label)
    payload = {
        "node": label,
        "direction": "sources" if sources else "targets",
        "base_rate": loaded.density_ if base_rate is None else base_rate,
        "cold": cold,
        "recommended": rows,
    }
    shown = table(
        ["node", "probability" if sources else "hit rate"],
        [[str(row["node"]), row["rate"]] for row in rows],
        f"{payload['direction']} for {label}",
    )
    if cold:
        out.note(_COLD.format(label))
    out.result(payload, shown, *reasons)


@app.command()
def top(
    out: Session,
    model: Model,
    top: opts.Top = 100,
    base_rate: Density = None,
) -> None:
    """The likeliest links of the whole graph that are not there."""
    from atpgraph.linkpred.predictor import LinkPredictor

    loaded = LinkPredictor.load(model)
    sources, targets, rates = loaded.top_links(top, base_rate=base_rate)
    rows = [
        {"source": u, "target": v, "rate": float(rate)}
        for u, v, rate in zip(sources.tolist(), targets.tolist(), rates, strict=True)
    ]
    shown = [[str(row["source"]), str(row["target"]), row["rate"]] for row in rows]
    out.result(
        {"base_rate": loaded.density_ if base_rate is None else base_rate, "links": rows},
        table(["source", "target", "hit rate"], shown),
    )
