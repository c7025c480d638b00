"""``atp info``: describe a graph, or any file or folder that a command wrote."""

from __future__ import annotations

import json as jsonlib
import shlex
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli.console import Session, table
from atpgraph.cli.options import Reading, arg

if TYPE_CHECKING:
    from atpgraph.embedding import ATP
    from atpgraph.graph.digraph import DiGraph

Shown = tuple[dict[str, Any], list[Any]]  # for --json, and for people
# Folders and archives of atpgraph-qa say what they are in one of these files.
_MANIFESTS = ("site.json", "model.json", "backup.json")
_LONGEST = 1 << 24


def info(
    out: Session,
    file: Annotated[
        Path, arg("Edge list, or any file or folder that a command wrote.", metavar="FILE")
    ],
    reading: Reading,
) -> None:
    """Describe a graph or any file that a command wrote; 'atp FILE' does the same."""
    from atpgraph.closure.reachability import FORMAT as INDEX
    from atpgraph.embedding.model_file import FORMAT as MODEL
    from atpgraph.linkpred.predictor_file import FORMAT as LINKS
    from atpgraph.util.archive import archive_format

    describe = {MODEL: _model, LINKS: _links, INDEX: _index}
    kind = None if file.is_dir() else archive_format(file)
    if kind is None and not file.is_dir():
        payload, shown = _graph(file, reading.read(file))
    else:
        reading.check_unused(file)
        payload, shown = describe.get(kind or "", _other)(file)
    out.result({"file": file, **payload}, *shown)


def _rows(file: Path, facts: dict[str, Any]) -> Any:
    """Return a table of names and values."""
    shown = [
        [name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)]
        for name, value in facts.items()
        if value is not None and not isinstance(value, (dict, list))
    ]
    return table(["", str(file)], shown)


def _graph(file: Path, graph: DiGraph) -> Shown:
    """Describe a graph and say what to try with it."""
    import numpy as np

    from atpgraph.graph.scc import condense, cyclic_edges
    from atpgraph.hierarchy import levels

    component, condensed = condense(graph)
    sizes = np.bincount(component, minlength=1)
    on_cycles = int(cyclic_edges(graph).sum())
    facts = {
        "kind": "graph",
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "self_loops": graph.n_self_loops,
        "nodes_on_cycles": int(sizes[sizes > 1].sum()),
        "edges_on_cycles": on_cycles,
        "largest_component": int(sizes.max(initial=0)),
        "levels": int(levels(condensed).max(initial=0)),
        "roots": int((graph.in_degree == 0).sum()),
        "leaves": int((graph.out_degree == 0).sum()),
    }
    name = shlex.quote(str(file))
    hints = [(f"atp cycles {name}", f"the edges that close cycles ({on_cycles:,} lie on one)")]
    hints = hints if on_cycles else []
    hints.append((f"atp levels {name}", "what comes before what"))
    if graph.n_edges:
        sources, targets = (shlex.quote(str(side[0])) for side in graph.edge_labels([0]))
        hints.append((f"atp reach {name} {sources} {targets}", "exact paths"))
    stem = shlex.quote(file.name.partition(".")[0] + ".npz")
    hints.append((f"atp embed {name} -o {stem}", "a vector for every node"))
    hints.append((f"atp links fit {name} -o links.npz", "links that may be missing"))
    return facts, [_rows(file, facts), table(["try", "for"], hints)]


def model_facts(model: ATP) -> dict[str, Any]:
    """Return the sizes of graph, closure and fit, and how good it is, for ``--json``."""
    return {
        "purpose": model.get_params()["purpose"],
        "method": model.method_,
        "nodes": model.graph_.n_nodes,
        "edges": model.graph_.n_edges,
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


def fidelity_lines(model: ATP) -> list[Any]:
    """Return the fidelity report as text: a table with the weakest line first, then advice."""
    report = model.fidelity_
    if report is None:
        return ["fidelity: not measured; the model was made by an earlier version"]
    if not report.lines():
        return ["fidelity: there are no paths to measure"]
    rows = [
        [line.label, f"{line.value:.4f}", f"{line.goal:g}", "" if line.error <= 1 else "missed"]
        for line in report.lines()
    ]
    shown = table([f"fidelity, {report.pairs:,} sampled paths", "value", "goal", ""], rows)
    advice = report.advice(model.get_params()["purpose"])
    return [shown, advice] if advice else [shown]


def _model(file: Path) -> Shown:
    import numpy as np

    from atpgraph.embedding import ATP

    model = ATP.load(file)
    facts = model_facts(model)
    params = {name: value for name, value in model.get_params().items() if name not in facts}
    shown = {"kind": "model", **facts, "dtype": str(np.dtype(model.source_.dtype))}
    return (
        shown | {"params": model.get_params()},
        [_rows(file, shown | params), *fidelity_lines(model)],
    )


def _links(file: Path) -> Shown:
    from atpgraph.cli.links import validation_tables
    from atpgraph.linkpred.predictor import LinkPredictor

    model = LinkPredictor.load(file)
    facts = {
        "kind": "links",
        "nodes": model.graph_.n_nodes,
        "edges": model.graph_.n_edges,
        "evidence": ", ".join(model.evidence_.kinds),
        "density": model.density_,
    }
    payload = facts | {"validation": model.validation_, "params": model.get_params()}
    return payload, [_rows(file, facts), *validation_tables(model)]


def _index(file: Path) -> Shown:
    from atpgraph.closure.reachability import Reachability

    reach = Reachability.load(file)
    facts = {
        "kind": "reachability",
        "nodes": reach.graph.n_nodes,
        "edges": reach.graph.n_edges,
        "components": reach.condensation.n_nodes,
        "index": reach.index,
    }
    return facts, [_rows(file, facts)]


def _other(file: Path) -> Shown:
    """Describe what another distribution wrote, by what its manifest says."""
    from atpgraph.errors import InputError
    from atpgraph.util.archive import parse_json

    for name in _MANIFESTS:
        try:
            if file.is_dir():
                if not (file / name).is_file():
                    continue
                raw = (file / name).read_bytes()[:_LONGEST]
            else:
                with zipfile.ZipFile(file) as archive, archive.open(name) as member:
                    raw = member.read(_LONGEST)
            manifest = parse_json(raw.decode())
        except (KeyError, ValueError, OSError, zipfile.BadZipFile, jsonlib.JSONDecodeError):
            continue
        if isinstance(manifest, dict) and str(manifest.get("format")).startswith("atpgraph"):
            facts = {"kind": manifest["format"].removeprefix("atpgraph-")}
            for key, value in manifest.items():
                if key in ("rows", "site") and isinstance(value, dict):
                    facts |= value
                elif not isinstance(value, (dict, list)) and key != "format":
                    facts[key] = value
            return facts, [_rows(file, facts)]
    raise InputError(f"{file} is not a graph and not a file or folder that atp wrote.")
