"""``atp model``: ask, grow and export a saved embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from atpgraph.cli import options as opts
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, table
from atpgraph.cli.info import fidelity_lines, info, model_facts
from atpgraph.cli.nodes import answer_pairs, asked_pairs, known_labels
from atpgraph.cli.options import DIRECTIONS, FORMATS, ORDERS, Reading, arg, opt

app = Commands(help="Use a saved embedding: describe it, ask it, add edges, export vectors.")
app.command("info")(info)

Model = Annotated[Path, arg("Model file that 'atp embed' wrote.")]


@app.command()
def top(
    out: Session,
    model: Model,
    nodes: Annotated[list[str], arg("Labels of nodes.", metavar="NODE...")],
    direction: Annotated[
        str,
        opt(
            "targets: what the nodes lead to; sources: what leads to them.",
            choices=DIRECTIONS,
        ),
    ] = "targets",
    top: opts.Top = 10,
    order: Annotated[
        str,
        opt(
            "nearest: smallest difference of levels first; score: largest score first.",
            choices=ORDERS,
        ),
    ] = "nearest",
    all_: Annotated[
        bool, opt("Also nodes below the threshold; with --order score.", "--all")
    ] = False,
    approximate: Annotated[
        bool,
        opt(
            "Search an index and print its recall, by score: for many queries to a large model.",
            "--approximate",
        ),
    ] = False,
) -> None:
    """Find the nodes that a node leads to, or that lead to it, nearest first."""
    from atpgraph.embedding import ATP
    from atpgraph.util.registry import unknown_name

    if direction not in DIRECTIONS:
        raise unknown_name("direction", direction, DIRECTIONS)
    loaded = ATP.load(model)
    asked = known_labels(loaded.graph_, nodes)
    find: Any = loaded.top_targets if direction == "targets" else loaded.top_sources
    how: dict[str, Any] = {"threshold": None} if all_ else {}
    payload: dict[str, Any] = {"direction": direction}
    if approximate:
        order, index = "score", loaded.index(direction)
        find = index.top
        payload |= {"recall": index.recall_, "exact": index.exact_}
        if not index.exact_:
            out.note(f"approximate: finds {index.recall_:.1%} of the ten best, on a sample")
    else:
        how["order"] = order
    results, tables = [], []
    for label, names, scores in zip(asked, *find(asked, top, **how), strict=True):
        level_of = loaded.levels_[loaded.graph_.codes(names)]
        rows = [
            {"node": name, "score": float(score), "level": int(level)}
            for name, score, level in zip(names.tolist(), scores, level_of, strict=True)
        ]
        results.append({"node": label, "neighbors": rows})
        shown = [[str(row["node"]), row["score"], row["level"]] for row in rows]
        tables.append(table(["node", "score", "level"], shown, f"{direction} of {label}"))
    out.result(payload | {"order": order, "nodes": results}, *tables)


@app.command()
def score(
    out: Session,
    model: Model,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    threshold: Annotated[
        float | None,
        opt(
            "Probability above which a path is predicted.",
            min=0.0,
            max=1.0,
            show_default="the score with the best F1 over all pairs",
        ),
    ] = None,
    base_rate: Annotated[
        float | None,
        opt(
            "Share of paths among the pairs you ask about, for the probabilities.",
            min=0.0,
            max=1.0,
            show_default="their share among all pairs",
        ),
    ] = None,
) -> None:
    """Is there a path from U to V? In the graph, exactly, and as the vectors predict."""
    from atpgraph.embedding import ATP

    loaded = ATP.load(model)
    names = ["path", "predicted", "probability", "score"]
    rows = answer_pairs(
        out,
        loaded.graph_,
        asked_pairs(loaded.graph_, nodes, pairs),
        names,
        lambda u, v: [
            loaded.reaches(u, v),
            loaded.predict(u, v, threshold, base_rate=base_rate),
            loaded.predict_proba(u, v, base_rate=base_rate),
            loaded.score_pairs(u, v),
        ],
    )
    if len(rows) == 1 and not rows[0]["unknown"]:
        (row,) = rows
        there, predicted = ("yes" if row[name] else "no" for name in names[:2])
        out.result(
            {"pairs": rows},
            f"{row['source']} → {row['target']}: path in the graph: {there}; "
            f"predicted: {predicted}, {row['probability']:.2f}",
        )
        return
    shown = [
        [str(row["source"]), str(row["target"])]
        + ["unknown node" if row["unknown"] else row["path"]]
        + [row[name] for name in names[1:]]
        for row in rows
    ]
    columns = ["source", "target", "path in the graph", *names[1:]]
    out.result({"pairs": rows}, table(columns, shown))


@app.command()
def add(
    out: Session,
    model: Model,
    edges: opts.Graph,
    reading: Reading,
    output: Annotated[Path, opt("Model file to write; may be the same.", "--output", "-o")],
) -> None:
    """Add edges and nodes to a model without fitting it again."""
    from atpgraph.embedding import ATP
    from atpgraph.util.files import check_writable

    check_writable(output)
    before = ATP.load(model)
    grown = before.add_edges(reading.read(edges))
    grown.save(output)
    nodes = grown.graph_.n_nodes - before.graph_.n_nodes
    added = grown.graph_.n_edges - before.graph_.n_edges
    payload = model_facts(grown) | {"added_nodes": nodes, "added_edges": added}
    out.result(
        payload,
        f"{output}: written; {nodes:,} nodes and {added:,} edges are new",
        *fidelity_lines(grown),
    )


@app.command()
def export(
    out: Session,
    model: Model,
    output: Annotated[
        Path,
        opt("File (- for standard output), or folder for word2vec and npy.", "--output", "-o"),
    ],
    format: Annotated[
        str | None,
        opt(
            "word2vec, csv, parquet or npy.",
            choices=FORMATS,
            show_default="csv or parquet if the file is named so, else word2vec",
        ),
    ] = None,
) -> None:
    """Write the vectors for other programs."""
    from atpgraph.embedding import ATP
    from atpgraph.embedding.export import export as write

    if format is None:
        suffix = output.suffix.lower().removeprefix(".")
        format = suffix if suffix in ("csv", "parquet") else "word2vec"
    files = write(ATP.load(model), format, output)
    out.result(
        {"format": format, "files": [str(file) for file in files]},
        *(f"{file}: written" for file in files),
    )
