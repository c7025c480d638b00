"""``atp links compare``: compare link predictors on a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli.console import Session, typed_command
from atpgraph.cli.options import Reading, Report, arg, opt

if TYPE_CHECKING:
    from rich.table import Table

    from atpgraph.graph.digraph import DiGraph
    from atpgraph.linkpred.benchmark import BenchmarkResult, MethodResult
    from atpgraph.linkpred.protocols.splits import Split


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
    methods: Annotated[
        str, opt("'all', or methods and groups (ours, rival, trivial), separated by commas.")
    ] = "all",
    protocol: Annotated[
        str, opt("Protocols, separated by commas.")
    ] = "paper,random,reversed,ranking,dirlinkbench",
    dim: Annotated[str, opt("Dimension per side; several by commas, the first leads.")] = "64",
    seeds: Annotated[
        int | None,
        opt("Number of splits.", min=1, max=1000, show_default="5; all splits of a folder"),
    ] = None,
    times: Annotated[
        Path | None,
        opt(
            "Train on the past and predict the newest sources: a file of times of nodes "
            "(label, time) or edges (source, target, time). Replaces --protocol."
        ),
    ] = None,
    fraction: Annotated[float, opt("Share of the edges taken out for testing.")] = 0.1,
    queries: Annotated[
        int, opt("Test edges ranked per split, a random sample; 0 for all.", min=0)
    ] = 2000,
    report: Report = None,
) -> None:
    """Hide edges and compare how well each method finds them, with intervals."""
    from atpgraph.linkpred.benchmark import run
    from atpgraph.linkpred.protocols.dirlinkbench import PUBLISHED, is_splits, read_splits
    from atpgraph.report.pages.linkpred import write_report

    dims = _dimensions(dim)
    splits: list[Split] = []
    if is_splits(graph):
        reading.check_unused(Path(graph))
        splits = read_splits(graph)
        name, loaded, protocol = Path(graph).resolve().name, splits[0].train, "dirlinkbench"
    else:
        name, loaded = _load(graph, reading)
    if times is not None:
        from atpgraph.linkpred.evidence.attributes import read_times
        from atpgraph.linkpred.protocols.splits import make_time_split

        when = read_times(times, loaded)
        splits = [
            make_time_split(loaded, when, random_state=seed, max_queries=queries or None)
            for seed in range(seeds or 5)
        ]
    result = run(
        loaded,
        methods,
        [part.strip() for part in protocol.split(",") if part.strip()],
        dim=dims,
        seeds=seeds,
        fraction=fraction,
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
    payload: dict[str, Any] = result.to_json()
    if report is not None:
        written = write_report(result, report, typed_command())
        payload["report"] = written
        out.note(f"report written to {written}")
    theirs = PUBLISHED.get(name, {}) if is_splits(graph) else {}
    if theirs:
        payload["published"] = theirs
        told = ", ".join(f"{row} {value}" for row, value in theirs.items())
        out.note(f"published by the authors of DirLinkBench, Hits@100 in per cent: {told}")
    notes = [f"{row.name}: {row.note}" for row in result.main() if row.note]
    out.result(payload, _summary(result), *notes, *_failures(result))


def _dimensions(text: str) -> list[int]:
    from atpgraph.errors import InputError

    try:
        dims = [int(part) for part in text.split(",")]
    except ValueError:
        dims = []
    if not dims or min(dims) < 1:
        raise InputError(f"--dim is {text!r}; give whole numbers from 1, separated by commas.")
    return list(dict.fromkeys(dims))


def _load(graph: str, reading: Reading) -> tuple[str, DiGraph]:
    from atpgraph import datasets
    from atpgraph.errors import InputError

    if Path(graph).exists():
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
    from rich import box
    from rich.table import Table

    shown = Table(title=f"{result.graph}, dimension {result.dims[0]}", box=box.SIMPLE_HEAD)
    shown.add_column("method")
    for protocol in result.protocols:
        shown.add_column(f"{protocol}\n{result.headline(protocol).upper()}", justify="right")
    shown.add_column("fit\ns", justify="right")
    shown.add_column("memory\nMB", justify="right")
    for row in result.main():
        if row.runs:
            cells = [_cell(result, row, protocol) for protocol in result.protocols]
            memory = "" if row.memory is None else f"{row.memory / 1e6:,.0f}"
            shown.add_row(row.name, *cells, f"{row.seconds.mean:.2f}", memory)
    return shown


def _cell(result: BenchmarkResult, row: MethodResult, protocol: str) -> str:
    metric = result.headline(protocol)
    value = row.interval(protocol, metric)
    text = f"{value.mean:.4f}"
    if value.high == value.high:  # not NaN: more than one seed
        text += f" ±{value.high - value.mean:.4f}"
    return f"[bold]{text}[/bold]" if result.best(protocol, metric) is row else text


def _failures(result: BenchmarkResult) -> list[str]:
    return [f"{row.name} has no result: {row.failure}" for row in result.main() if row.failure]
