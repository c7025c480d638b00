"""``atp info``: describe a graph, or any file or folder that a command wrote."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path
from typing import Annotated, Any

import atpgraph
from atpgraph.cli.console import Session, facts_table, named, sizes, table
from atpgraph.cli.options import Reading, arg
from atpgraph.errors import InputError

Described = tuple[dict[str, Any], list[Any]]  # facts, and what is shown below them
# Folders and archives of atpgraph-qa say what they are in one of these files.
_MANIFESTS = ("site.json", "model.json", "backup.json")
_LONGEST = 1 << 24
_QUESTIONS = {
    "link": "any edge hidden",
    "connected": "its ends still connected",
    "direction": "against its reverse",
    "order": "against pairs joined the other way",
}


def info(
    out: Session,
    file: Annotated[
        Path, arg("Edge list, or any file or folder that a command wrote.", metavar="FILE")
    ],
    reading: Reading,
) -> None:
    """Describe a graph or any file that a command wrote; 'atp FILE' does the same."""
    from atpgraph.util.archive import archive_format

    kind = "" if file.is_dir() else archive_format(file)
    if kind is None:
        facts, below = _graph(file, reading)
    else:
        reading.check_unused(file)
        facts, below = _WRITTEN.get(kind, _other)(file)
    flat = facts | {
        k: v for k, v in facts.get("params", {}).items() if k not in facts and k != "verbose"
    }
    out.result({"file": file, **facts}, facts_table(named(file), flat), *below)


def _graph(file: Path, reading: Reading) -> Described:
    """Describe a graph, and suggest commands that read it the same way."""
    import numpy as np

    from atpgraph.graph.scc import condense, cyclic_edges

    graph = reading.read(file)
    component, condensed = condense(graph)
    members = np.bincount(component, minlength=1)
    on_cycle = cyclic_edges(graph)
    on_cycles = int(on_cycle.sum())
    facts = {
        "kind": "graph",
        **sizes(graph),
        "self_loops": graph.n_self_loops,
        "nodes_on_cycles": len(np.unique(graph.sources[on_cycle])),
        "edges_on_cycles": on_cycles,
        "largest_component": int(members.max(initial=0)),
        "levels": int(atpgraph.levels(condensed).max(initial=0)),
        "roots": int((graph.in_degree == 0).sum()),
        "leaves": int((graph.out_degree == 0).sum()),
    }
    name = shlex.join([str(file), *reading.typed()])
    hints = []
    if on_cycles:
        told = f"the edges that close cycles ({on_cycles:,} lie on one)"
        hints.append((f"atp cycles {name}", told))
    hints.append((f"atp levels {name}", "what comes before what"))
    if graph.n_edges:
        ends = [str(side[0]) for side in graph.edge_labels([0])]
        dashes = ["--"] * any(end.startswith("-") for end in ends)
        hints.append((f"atp reach {name} {shlex.join([*dashes, *ends])}", "exact paths"))
    stem = "graph.npz" if str(file) == "-" else shlex.quote(file.name.partition(".")[0] + ".npz")
    hints.append((f"atp embed {name} -o {stem}", "a vector for every node"))
    hints.append((f"atp links fit {name} -o links.npz", "links that may be missing"))
    return facts, [table(["try", "for"], hints)]


def model_facts(model: atpgraph.ATP) -> dict[str, Any]:
    """Return the sizes of the graph and its closure, and the quality of the fit, for ``--json``."""
    return {
        "purpose": model.get_params()["purpose"],
        "method": model.method_,
        **sizes(model.graph_),
        "removed": len(model.removed_),
        "levels": int(model.levels_.max(initial=0)),
        "reachable_pairs": model.n_reachable_pairs_,
        "iterations": model.n_iter_,
        "objective": float(model.objective_[-1]) if len(model.objective_) else None,
        "zero_weight": model.settings_.zero_weight,
        "regularization": model.settings_.regularization,
        "threshold": model.threshold_,
        "fidelity": None if model.fidelity_ is None else model.fidelity_.to_dict(),
    }


def fidelity_lines(model: atpgraph.ATP) -> list[Any]:
    """Return the fidelity report as text: a table with the weakest line first, then advice."""
    report = model.fidelity_
    if report is None:
        return ["fidelity: not measured; the model was made by an earlier version"]
    if not report.lines():
        return ["fidelity: there are no paths to measure"]
    rows = [
        [
            line.label,
            line.value,
            f"{'≥' if line.goal > 0.5 else '≤'} {line.goal:g}",
            "" if line.error <= 1 else "missed",
        ]
        for line in report.lines()
    ]
    shown = table([f"fidelity, {report.pairs:,} sampled paths", "value", "goal", ""], rows)
    advice = report.advice(model.get_params()["purpose"])
    return [shown, advice] if advice else [shown]


def validation_tables(model: atpgraph.LinkPredictor) -> list[Any]:
    """Return tables that show how well a predictor found the edges hidden from it."""
    measured = model.validation_
    judged = [
        [name, measured[key]["auc"], measured[key]["error"]] for key, name in _QUESTIONS.items()
    ]
    ranks = {"suggestion at rank": "rank", "stated hit rate": "stated", "observed": "right"}
    return [
        table(["on hidden edges", "AUC", "calibration error"], judged),
        table(ranks, measured["hits"]["ranks"]),
    ]


def _model(file: Path) -> Described:
    model = atpgraph.ATP.load(file)
    facts = {"kind": "model", **model_facts(model), "dtype": str(model.source_.dtype)}
    return facts | {"params": model.get_params()}, fidelity_lines(model)


def _links(file: Path) -> Described:
    model = atpgraph.LinkPredictor.load(file)
    facts = {
        "kind": "links",
        **sizes(model.graph_),
        "evidence": ", ".join(model.evidence_.kinds),
        "density": model.density_,
        "validation": model.validation_,
        "params": model.get_params(),
    }
    return facts, validation_tables(model)


def _index(file: Path) -> Described:
    reach = atpgraph.Reachability.load(file)
    facts: dict[str, Any] = {"kind": "reachability", **sizes(reach.graph)}
    return facts | {"components": reach.condensation.n_nodes, "index": reach.index}, []


def _other(file: Path) -> Described:
    """Describe a folder that another distribution wrote, from its manifest."""
    from atpgraph.util.archive import parse_json

    for name in _MANIFESTS:
        try:
            place: Any = file if file.is_dir() else zipfile.Path(file)
            with (place / name).open("rb") as opened:
                manifest = parse_json(opened.read(_LONGEST).decode())
        except (KeyError, ValueError, OSError, zipfile.BadZipFile):
            continue
        if isinstance(manifest, dict) and str(manifest.get("format")).startswith("atpgraph"):
            facts = {"kind": manifest["format"].removeprefix("atpgraph-")}
            for key, value in manifest.items():
                if key in ("rows", "site") and isinstance(value, dict):
                    facts |= value
                elif not isinstance(value, (dict, list)) and key != "format":
                    facts[key] = value
            return facts, []
    raise InputError(f"{file} is neither a graph nor a file or folder that atp wrote.")


_WRITTEN = {"atpgraph-model": _model, "atpgraph-links": _links, "atpgraph-reachability": _index}
