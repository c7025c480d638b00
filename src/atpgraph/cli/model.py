"""Commands on a saved model: ``predict``, ``neighbors``, ``info`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._choices import DIRECTIONS, FORMATS, completer
from atpgraph.cli._facts import model_facts
from atpgraph.cli._nodes import asked_pairs, known_labels
from atpgraph.cli.console import Json, Quiet, session, table

if TYPE_CHECKING:
    from atpgraph.embedding import ATP

Model = Annotated[
    Path, typer.Argument(help="Model file that 'atp embed' wrote.", show_default=False)
]


def predict(
    model: Model,
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Pairs of nodes: U V [U V …].", show_default=False)
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="File of pairs, one per line, - for standard input. Unknown nodes are marked.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=1.0,
            help="Probability above which a path is predicted.",
            show_default="what tells paths best in the graph of the model",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Does a path lead from U to V? In the graph, exactly, and as the vectors predict."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.embedding import ATP

        loaded = ATP.load(model)
        sources, targets = asked_pairs(loaded.graph_, nodes, pairs)
        rows = _predictions(loaded, sources, targets, threshold)
        unknown = sum(bool(row["unknown"]) for row in rows)
        if unknown:
            out.note(f"{unknown:,} of {len(rows):,} pairs name a node that the model does not have")
        if len(rows) == 1 and not unknown:
            out.result({"pairs": rows}, _sentence(rows[0]))
            return
        shown = [
            [
                str(row["source"]),
                str(row["target"]),
                "unknown node" if row["unknown"] else row["path"],
            ]
            + [row[name] for name in ("predicted", "probability", "score")]
            for row in rows
        ]
        columns = ["source", "target", "path in the graph", "predicted", "probability", "score"]
        out.result({"pairs": rows}, table(columns, shown))


def _predictions(
    model: ATP, sources: list[Any], targets: list[Any], threshold: float | None
) -> list[dict[str, Any]]:
    """One row for each pair; no answers where the model does not have a node."""
    import numpy as np

    graph = model.graph_
    known = np.array([graph.codes_or_minus_one(side) >= 0 for side in (sources, targets)])
    both = np.flatnonzero(known.all(axis=0)).tolist()
    u, v = [sources[at] for at in both], [targets[at] for at in both]
    answers = {
        "path": model.reaches(u, v),
        "predicted": model.predict(u, v, threshold),
        "probability": model.predict_proba(u, v),
        "score": model.score_pairs(u, v),
    }
    rows: list[dict[str, Any]] = [
        {
            "source": a,
            "target": b,
            **dict.fromkeys(answers),
            "unknown": [name for name, here in zip((a, b), known[:, at], strict=True) if not here],
        }
        for at, (a, b) in enumerate(zip(sources, targets, strict=True))
    ]
    for name, values in answers.items():
        for at, value in zip(both, np.asarray(values).tolist(), strict=True):
            rows[at][name] = value
    return rows


def _sentence(row: dict[str, Any]) -> str:
    there, predicted = ("yes" if row[name] else "no" for name in ("path", "predicted"))
    return (
        f"{row['source']} → {row['target']}: path in the graph: {there}; "
        f"predicted: {predicted}, {row['probability']:.2f}"
    )


def neighbors(
    model: Model,
    nodes: Annotated[
        list[str], typer.Argument(help="Labels of nodes.", metavar="NODE…", show_default=False)
    ],
    direction: Annotated[
        str,
        typer.Option(
            help="targets: what the nodes lead to; sources: what leads to them.",
            autocompletion=completer(DIRECTIONS),
        ),
    ] = "targets",
    top: Annotated[int, typer.Option(min=1, help="How many for each node.")] = 10,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Search an index and say its recall: for many questions to a large model.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The nodes that a node most strongly leads to, or is led to from."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.embedding import ATP
        from atpgraph.util.registry import unknown_name

        if direction not in DIRECTIONS:
            raise unknown_name("direction", direction, DIRECTIONS)
        loaded = ATP.load(model)
        asked = known_labels(loaded.graph_, nodes)
        find: Any = loaded.top_targets if direction == "targets" else loaded.top_sources
        payload: dict[str, Any] = {"direction": direction}
        if approximate:
            index = loaded.index(direction)
            find = index.top
            payload |= {"recall": index.recall_, "exact": index.exact_}
            if not index.exact_:
                out.note(f"approximate: finds {index.recall_:.1%} of the ten best, on a sample")
        results = []
        for label, names, scores in zip(asked, *find(asked, top), strict=True):
            level_of = loaded.levels_[loaded.graph_.codes(names)]
            rows = [
                {"node": name, "score": float(score), "level": int(level)}
                for name, score, level in zip(names.tolist(), scores, level_of, strict=True)
            ]
            results.append({"node": label, "neighbors": rows})
        tables = [
            table(
                ["node", "score", "level"],
                [[str(row["node"]), row["score"], row["level"]] for row in result["neighbors"]],
                f"{direction} of {result['node']}",
            )
            for result in results
        ]
        out.result(payload | {"nodes": results}, *tables)


def info(model: Model, json: Json = False, quiet: Quiet = False) -> None:
    """What a model file holds."""
    with session(json=json, quiet=quiet) as out:
        import numpy as np

        from atpgraph.embedding import ATP

        loaded = ATP.load(model)
        payload = model_facts(loaded) | {
            "dtype": str(np.dtype(loaded.source_.dtype)),
            "params": loaded.get_params(),
        }
        told = {"params", "fidelity"}
        rows = [[name, value] for name, value in payload.items() if name not in told]
        judged = payload["fidelity"] or {"fidelity": "not measured"}
        rows += [[name, "–" if value is None else value] for name, value in judged.items()]
        rows += [[name, str(value)] for name, value in payload["params"].items()]
        out.result(payload, table(["", str(model)], [[a, _text(b)] for a, b in rows]))


def export(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File (- for standard output), or folder for word2vec and npy.",
        ),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="word2vec, csv, parquet or npy.",
            autocompletion=completer(FORMATS),
            show_default="csv or parquet if the file is called so, else word2vec",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the vectors for other programs."""
    with session(json=json, quiet=quiet) as out:
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


def _text(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) else str(value)
