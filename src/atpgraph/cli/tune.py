"""``atp tune``: how many components, and which penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, table
from atpgraph.cli.options import PURPOSES, Reading, opt

if TYPE_CHECKING:
    from atpgraph.embedding import ATP
    from atpgraph.graph.digraph import DiGraph

    Judge = Callable[[ATP], dict[str, Any]]

_SHOWN = (
    "components", "penalty", "auc", "edges", "closure", "f1", "precision_targets",
    "precision_sources", "average_precision", "seconds",
)  # fmt: skip
_LONGEST = 65_536
_NEAR = 0.002  # of AUC that a shorter vector may cost


def tune(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    purpose: opts.Purpose = "reachability",
    dims: Annotated[
        str, opt("Lengths of the vectors to try, separated by commas.")
    ] = "16,32,64,128",
    penalties: Annotated[
        str, opt("Penalties to try, separated by commas; auto is by purpose.")
    ] = "auto,0.01,0.1",
    protocol: Annotated[
        str, opt("For paper: protocol of 'atp links compare' that holds out edges.")
    ] = "paper",
    method: opts.Method = "auto",
    memory: opts.Memory = None,
    threads: opts.Threads = None,
    seed: opts.Seed = 0,
) -> None:
    """Choose the length of the vectors and the penalty for a graph."""
    from atpgraph.cycles import break_cycles
    from atpgraph.embedding import ATP
    from atpgraph.util.registry import unknown_name

    if purpose not in PURPOSES:
        raise unknown_name("purpose", purpose, PURPOSES)
    lengths = [_length(part) for part in dims.split(",")]
    weights = [_penalty(part) for part in penalties.split(",")]
    read = reading.read(graph, memory)
    train, judge = _by_fidelity(read)
    if purpose != "reachability":
        train, judge = _by_links(read, protocol, seed)
    dag = break_cycles(train, method, random_state=seed).dag  # once for all
    trials = []
    for length in lengths:
        for weight in weights:
            model = ATP(
                length, purpose=purpose, regularization=weight, n_jobs=threads,
                random_state=seed, zero_weight=0.0 if purpose == "reachability" else "auto",
            ).fit(dag)  # fmt: skip
            seconds = round(model.timings_["factorization"], 4)
            tried = {"components": length, "penalty": weight, "seconds": seconds}
            trials.append(tried | judge(model))
    best = _choice(trials)
    columns = [name for name in _SHOWN if name in trials[0]]
    rows = [["*" if trial is best else "", *(trial[name] for name in columns)] for trial in trials]
    command = f"atp embed {graph} -o model.npz -p {purpose} --dim {best['components']}"
    if purpose == "paper":
        command += " --zero-weight auto"
    if best["penalty"] != "auto":
        command += f" --regularization {best['penalty']:g}"
    out.result(
        {"purpose": purpose, "trials": trials, "best": best},
        table(["", *(name.replace("_", " ") for name in columns)], rows),
        f"* is the shortest within {_NEAR} of the best AUC; next: {command}",
    )


def _by_fidelity(read: DiGraph) -> tuple[DiGraph, Judge]:
    """Fit the whole graph; the fit judges itself."""
    return read, lambda model: model.fidelity_.to_dict() if model.fidelity_ is not None else {}


def _by_links(read: DiGraph, protocol: str, seed: int) -> tuple[DiGraph, Judge]:
    """Fit what is left when edges are held out, and judge by those."""
    from atpgraph.embedding.ranking import pair_scores
    from atpgraph.errors import InputError
    from atpgraph.evaluation.metrics import auc, average_precision
    from atpgraph.linkpred.protocols import PairTest
    from atpgraph.linkpred.protocols.splits import make_split

    split = make_split(read, protocols=[protocol], random_state=seed)
    test = split.tests.get(protocol)
    if not isinstance(test, PairTest):
        why = split.unavailable.get(protocol, "it does not compare pairs")
        raise InputError(f"Cannot judge by the protocol {protocol!r}: {why}.")

    def judge(model: ATP) -> dict[str, Any]:
        good, bad = (
            pair_scores(model.source_, model.target_, pairs.sources, pairs.targets)
            for pairs in (test.positives, test.negatives)
        )
        return {"auc": auc(good, bad), "average_precision": average_precision(good, bad)}

    return split.train, judge


def _choice(trials: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The shortest vectors among the best; where nothing can be asked, the first."""
    known = [trial for trial in trials if trial["auc"] is not None]
    if not known:
        return next(iter(trials))
    most = max(trial["auc"] for trial in known)
    near = [trial for trial in known if trial["auc"] >= most - _NEAR]
    return min(near, key=lambda trial: (trial["components"], -trial["auc"]))


def _length(text: str) -> int:
    from atpgraph.errors import InputError
    from atpgraph.util.checks import whole_number

    try:
        length = whole_number("dims", int(text))
    except ValueError:
        raise InputError(f"dims has {text.strip()!r}; it takes whole numbers from 1.") from None
    if length > _LONGEST:
        raise InputError(f"dims has {text.strip()}; vectors have at most {_LONGEST:,} components.")
    return length


def _penalty(text: str) -> float | Literal["auto"]:
    from atpgraph.errors import InputError

    if text.strip() == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise InputError(f"penalties has {text.strip()!r}; it takes auto and numbers from 0.")
    return value
