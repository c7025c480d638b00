"""``atp model``: query, grow and export a saved embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import atpgraph
from atpgraph.cli import options as opts
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, table
from atpgraph.cli.info import fidelity_lines, info, model_facts
from atpgraph.cli.nodes import answer_pairs, known_labels
from atpgraph.cli.options import FORMATS, Reading, arg, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable

app = Commands(help="Use a saved embedding: describe, query, add edges, export vectors.")
app.command("info")(info)

Model = Annotated[Path, arg("Model file that 'atp embed' wrote.")]


@app.command()
def top(
    out: Session,
    model: Model,
    nodes: Annotated[list[str], arg("Labels of one or more nodes.")],
    direction: Literal["targets", "sources"] = opt(
        "List nodes that they lead to, or nodes that lead to them.", default="targets"
    ),
    top: opts.Top = 10,
    order: Literal["nearest", "score"] = opt(
        "Nearest levels first, or largest scores first.", default="nearest"
    ),
    all_: bool = opt("With --order score, include nodes below the threshold.", "--all"),
    approximate: bool = opt("Search an index by score and report its recall; for many queries."),
) -> None:
    """Find the nodes that a node leads to, or that lead to it, nearest first."""
    if all_ and order == "nearest" and not approximate:
        raise InputError("--all goes with --order score.")
    loaded = atpgraph.ATP.load(model)
    asked = known_labels(loaded.graph_, nodes)
    how: dict[str, Any] = {"threshold": None} if all_ else {}
    payload: dict[str, Any] = {"direction": direction}
    if approximate:
        order, index = "score", loaded.index(direction)
        found = index.top(asked, top, **how)
        payload |= {"recall": index.recall_, "exact": index.exact_}
        if not index.exact_:
            out.note(f"approximate: finds {index.recall_:.1%} of the ten best, on a sample")
    else:
        find: Any = loaded.top_targets if direction == "targets" else loaded.top_sources
        found = find(asked, top, order=order, **how)
    results, tables = [], []
    for label, names, scores in zip(asked, *found, strict=True):
        levels = loaded.levels_[loaded.graph_.codes(names)]
        rows = [
            {"node": name, "score": float(score), "level": int(level)}
            for name, score, level in zip(names.tolist(), scores, levels, strict=True)
        ]
        results.append({"node": label, "neighbors": rows})
        tables.append(table(["node", "score", "level"], rows, f"{direction} of {label}"))
    out.result(payload | {"order": order, "nodes": results}, *tables)


@app.command()
def score(
    out: Session,
    model: Model,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    threshold: float | None = opt(
        "Probability above which a path is predicted.", show_default="best F1 over all pairs"
    ),
    base_rate: float | None = opt(
        "Share of paths among the pairs you ask about.", show_default="their share among all pairs"
    ),
) -> None:
    """Predict whether there is a path from U to V, and compare with the graph."""
    loaded = atpgraph.ATP.load(model)
    ask = {
        "path": loaded.reaches,
        "predicted": lambda u, v: loaded.predict(u, v, threshold, base_rate=base_rate),
        "probability": lambda u, v: loaded.predict_proba(u, v, base_rate=base_rate),
        "score": loaded.score_pairs,
    }
    rows = answer_pairs(out, loaded.graph_, nodes, pairs, ask)
    if len(rows) == 1 and not rows[0]["unknown"]:
        (row,) = rows
        there, predicted = ("yes" if row[name] else "no" for name in ("path", "predicted"))
        shown: Any = (
            f"{row['source']} → {row['target']}: path in the graph: {there}; "
            f"predicted: {predicted}, {row['probability']:.2f}"
        )
    else:
        columns = {"source": "source", "target": "target", "path in the graph": "path"}
        told = [row | {"path": "unknown node"} if row["unknown"] else row for row in rows]
        shown = table(columns | {name: name for name in list(ask)[1:]}, told)
    out.result({"pairs": rows}, shown)


@app.command()
def add(
    out: Session,
    model: Model,
    edges: opts.Graph,
    reading: Reading,
    output: Path = output("Model file to write; may be the same file."),
) -> None:
    """Add edges and nodes to a model without fitting it again."""
    check_writable(output)
    before = atpgraph.ATP.load(model)
    grown = before.add_edges(reading.read(edges).named_as_in(before.graph_))
    grown.save(output)
    nodes = grown.graph_.n_nodes - before.graph_.n_nodes
    added = grown.graph_.n_edges - before.graph_.n_edges
    out.result(
        model_facts(grown) | {"added_nodes": nodes, "added_edges": added},
        f"{output}: written; {nodes:,} nodes and {added:,} edges are new",
        *fidelity_lines(grown),
    )


@app.command()
def export(
    out: Session,
    model: Model,
    output: Path = output("File (- writes to standard output), or folder for word2vec and npy."),
    format: str | None = opt(
        "word2vec, csv, parquet or npy.",
        choices=FORMATS,
        show_default="csv or parquet if the file is named so, else word2vec",
    ),
) -> None:
    """Export the vectors for other programs."""
    from atpgraph.embedding.files import export as write

    if format is None:
        suffix = output.suffix.lower().removeprefix(".")
        format = suffix if suffix in ("csv", "parquet") else "word2vec"
    files = write(atpgraph.ATP.load(model), format, output)
    out.result(
        {"format": format, "files": [str(file) for file in files]},
        *(f"{file}: written" for file in files),
    )
