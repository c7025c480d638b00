"""``atp links predict``, ``recommend`` and ``top``: questions to a link predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from atpgraph.cli._nodes import asked_pairs, known_labels
from atpgraph.cli.console import Json, Quiet, session, table

Model = Annotated[Path, typer.Argument(help="File that 'atp links fit' wrote.", show_default=False)]
BaseRate = Annotated[
    float,
    typer.Option("--base-rate", help="Share of links among the pairs you ask about, in (0, 1)."),
]
Density = Annotated[
    float | None,
    typer.Option(
        "--base-rate",
        help="Share of missing links among all pairs without an edge, in (0, 1).",
        show_default="as many as were hidden to learn",
    ),
]

_COLD = "{} has no edges: these are the nodes that got the most links of late"


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
    base_rate: BaseRate = 0.5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How likely is a link from U to V, and does it point this way?"""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.linkpred.predictor import LinkPredictor

        loaded = LinkPredictor.load(model)
        sources, targets = asked_pairs(loaded.graph_, nodes, pairs)
        rows = _predictions(loaded, sources, targets, base_rate)
        unknown = sum(bool(row["unknown"]) for row in rows)
        if unknown:
            out.note(f"{unknown:,} of {len(rows):,} pairs name a node that the model does not have")
        columns = ["source", "target", "known", "probability", "forward"]
        shown = [[row[name] if at > 1 else str(row[name]) for at, name in enumerate(columns)]
                 for row in rows]  # fmt: skip
        out.result(
            {"base_rate": base_rate, "pairs": rows},
            table(["source", "target", "edge already", "probability", "points this way"], shown),
        )


def _predictions(
    model: Any, sources: list[Any], targets: list[Any], base_rate: float
) -> list[dict[str, Any]]:
    """One row for each pair; no answers where the model does not have a node."""
    import numpy as np

    graph = model.graph_
    codes = [graph.codes_or_minus_one(side) for side in (sources, targets)]
    both = np.flatnonzero((codes[0] >= 0) & (codes[1] >= 0)).tolist()
    rows: list[dict[str, Any]] = [
        {
            "source": a,
            "target": b,
            "known": None,
            "probability": None,
            "forward": None,
            "unknown": [name for name, code in ((a, codes[0][at]), (b, codes[1][at])) if code < 0],
        }
        for at, (a, b) in enumerate(zip(sources, targets, strict=True))
    ]
    if not both:
        return rows
    u, v = [sources[at] for at in both], [targets[at] for at in both]
    known = graph.find_edges(codes[0][both], codes[1][both]) >= 0
    chance = model.predict_proba(u, v, base_rate)
    forward = 1.0 / (1.0 + np.exp(-model.score_pairs(u, v, "direction")))
    for at, *values in zip(both, known.tolist(), chance, forward, strict=True):
        rows[at] |= {
            "known": values[0],
            "probability": float(values[1]),
            "forward": float(values[2]),
        }
    return rows


def recommend(
    model: Model,
    node: Annotated[str, typer.Argument(help="Label of the source.", show_default=False)],
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    sources: Annotated[
        bool, typer.Option("--sources", help="Who should link to the node, instead of targets.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which evidence speaks for each.")
    ] = False,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="List nodes that have the link already, too.")
    ] = False,
    base_rate: Density = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The likeliest targets of a node, best first."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.linkpred.predictor import LinkPredictor

        loaded = LinkPredictor.load(model)
        (label,) = known_labels(loaded.graph_, [node])
        find = loaded.recommend_sources if sources else loaded.recommend
        names, rates = find(label, top, exclude_known=not include_known, base_rate=base_rate)
        rows: list[dict[str, Any]] = [
            {"node": name, "rate": float(rate)}
            for name, rate in zip(names.tolist(), rates, strict=True)
        ]
        told: list[str] = []
        if explain:
            for row in rows:
                ends = (row["node"], label) if sources else (label, row["node"])
                why = loaded.explain(*ends, order="sources" if sources else "targets")
                row["reasons"] = why.to_dict()["reasons"]
                told.append(str(why))
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
        out.result(payload, shown, *told)


def top(
    model: Model,
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 100,
    base_rate: Density = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The likeliest links of the whole graph that are not there."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.linkpred.predictor import LinkPredictor

        loaded = LinkPredictor.load(model)
        found = loaded.top_links(top, base_rate=base_rate)
        rows = [
            {"source": u, "target": v, "rate": float(rate)}
            for u, v, rate in zip(found[0].tolist(), found[1].tolist(), found[2], strict=True)
        ]
        shown = [[str(row["source"]), str(row["target"]), row["rate"]] for row in rows]
        out.result(
            {"base_rate": loaded.density_ if base_rate is None else base_rate, "links": rows},
            table(["source", "target", "hit rate"], shown),
        )
