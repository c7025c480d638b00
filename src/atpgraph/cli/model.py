"""Commands on a saved model: ``predict``, ``neighbors``, ``info`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._choices import DIRECTIONS, FORMATS, completer
from atpgraph.cli._console import Json, Quiet, session, table

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
        Path | None, typer.Option(help="File of pairs, one per line.", show_default=False)
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
    """Score pairs of nodes: does a path lead from U to V?"""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.embedding import ATP
        from atpgraph.errors import InputError
        from atpgraph.graph.edgelist import read_pairs

        if bool(nodes) == (pairs is not None):
            raise InputError("Name pairs of nodes, or a file of them with --pairs; not both.")
        loaded = ATP.load(model)
        if pairs is not None:
            given = read_pairs(pairs)
            sources, targets = (_labels(loaded, given[side]) for side in (0, 1))
        else:
            names = nodes or []
            if len(names) % 2:
                raise InputError(f"{names[-1]!r} has no partner; name an even number of nodes.")
            sources, targets = _labels(loaded, names[0::2]), _labels(loaded, names[1::2])
        scores = loaded.score_pairs(sources, targets)
        probabilities = loaded.predict_proba(sources, targets)
        paths = loaded.predict(sources, targets, threshold)
        rows = [
            {
                "source": u,
                "target": v,
                "score": float(score),
                "probability": float(probability),
                "path": bool(path),
            }
            for u, v, score, probability, path in zip(
                sources, targets, scores, probabilities, paths, strict=True
            )
        ]
        shown = [[str(row["source"]), str(row["target"]), *list(row.values())[2:]] for row in rows]
        out.result(
            {"pairs": rows}, table(["source", "target", "score", "probability", "path"], shown)
        )


def neighbors(
    model: Model,
    node: Annotated[str, typer.Argument(help="Label of a node.", show_default=False)],
    direction: Annotated[
        str,
        typer.Option(
            help="targets: what the node leads to; sources: what leads to it.",
            autocompletion=completer(DIRECTIONS),
        ),
    ] = "targets",
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The nodes that a node most strongly leads to, or is led to from."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.embedding import ATP
        from atpgraph.errors import InputError

        if direction not in DIRECTIONS:
            raise InputError(f"--direction is {direction!r}; it must be targets or sources.")
        loaded = ATP.load(model)
        (label,) = _labels(loaded, [node])
        find = loaded.top_targets if direction == "targets" else loaded.top_sources
        labels, scores = find(label, top)
        level_of = loaded.levels_[loaded.graph_.codes(labels)]
        rows = [
            {"node": name, "score": float(score), "level": int(level)}
            for name, score, level in zip(labels.tolist(), scores, level_of, strict=True)
        ]
        payload = {"node": label, "direction": direction, "neighbors": rows}
        shown = [[str(row["node"]), row["score"], row["level"]] for row in rows]
        out.result(payload, table(["node", "score", "level"], shown, f"{direction} of {node}"))


def info(model: Model, json: Json = False, quiet: Quiet = False) -> None:
    """What a model file holds."""
    with session(json=json, quiet=quiet) as out:
        import numpy as np

        from atpgraph.embedding import ATP

        loaded = ATP.load(model)
        graph = loaded.graph_
        payload: dict[str, Any] = {
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "removed": len(loaded.removed_),
            "levels": int(loaded.levels_.max(initial=0)),
            "reachable_pairs": loaded.n_reachable_pairs_,
            "extras": loaded.n_extras_,
            "iterations": loaded.n_iter_,
            "objective": float(loaded.objective_[-1]) if len(loaded.objective_) else None,
            "dtype": str(np.dtype(loaded.source_.dtype)),
            "params": loaded.get_params(),
        }
        rows = [[name, value] for name, value in payload.items() if name != "params"]
        rows += [[name, str(value)] for name, value in payload["params"].items()]
        out.result(payload, table(["", str(model)], [[a, _text(b)] for a, b in rows]))


def export(
    model: Model,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File, or beginning of the names of the files."),
    ],
    format: Annotated[
        str, typer.Option(help="word2vec, parquet or npy.", autocompletion=completer(FORMATS))
    ] = "word2vec",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the vectors for other programs."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.embedding import ATP
        from atpgraph.embedding.export import export as write

        files = write(ATP.load(model), format, output)
        out.result(
            {"format": format, "files": [str(file) for file in files]},
            *(f"{file}: written" for file in files),
        )


def _labels(model: ATP, names: list[str] | Any) -> list[Any]:
    """Labels as the model has them: a number typed on the command line may be an integer label."""
    import numpy as np

    from atpgraph.errors import InputError

    if model.labels_.dtype != np.int64:
        return list(names)
    try:
        return [int(name) for name in names]
    except ValueError:
        bad = next(name for name in names if not str(name).lstrip("-").isdigit())
        raise InputError(f"The graph has no node {bad!r}; its nodes are integers.") from None


def _text(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) else str(value)
