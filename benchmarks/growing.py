"""Growing models against fitting again: every line of the fidelity report, and time.

Run: python benchmarks/growing.py [--batches 5] [--share 0.05] [--graphs wiki-Vote,…]
     [--output FILE]

A share of the edges of an acyclic graph is held back at random, the model is fitted on the rest,
and the share comes back in batches, one `add_edges` each. The grown model and one fitted to the
whole graph are judged by one sample, which no fit uses. "not grown" is the first model, new nodes
with zeros. Seconds are CPU seconds, of all threads. Real graphs are read from the folder that
ATP_DATA names; where there is none, a generated one stands in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import PAIR_SEED

from atpgraph import ATP, DiGraph, noisy_hierarchy, read_edgelist
from atpgraph.closure import collect_paths
from atpgraph.cycles import break_cycles
from atpgraph.embedding.fidelity import Fidelity, evaluate
from atpgraph.embedding.path_sample import PathSample
from atpgraph.hierarchy import levels

NAMES = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")


def graphs(names: list[str]) -> Iterator[tuple[str, DiGraph]]:
    """The graphs of the table, acyclic."""
    folder = data_dir()
    if folder is None:
        yield (
            "generated",
            break_cycles(noisy_hierarchy(5000, 20_000, 1500, random_state=0).graph).dag,
        )
        return
    for name in names:
        yield name, break_cycles(read_edgelist(folder / "graphs" / f"{name}.txt.gz")).dag


def judged(sample: PathSample, dag: DiGraph, model: ATP) -> Fidelity:
    """The report of a model's vectors; a node that the model does not have gets zeros."""
    code = model.graph_.codes_or_minus_one(dag.labels)
    zero = np.zeros((1, model.source_.shape[1]), dtype=model.source_.dtype)
    source, target = (np.concatenate([x, zero])[code] for x in (model.source_, model.target_))
    return evaluate(sample, source, target).fidelity


def fitted(graph: DiGraph) -> tuple[float, ATP]:
    """CPU seconds of a fit, and the model."""
    started = time.process_time()
    model = ATP(random_state=0).fit(graph)
    return time.process_time() - started, model


def measure(dag: DiGraph, share: float, batches: int) -> tuple[list[object], list[list[object]]]:
    """The costs on one graph, and the lines of the report."""
    late = np.random.default_rng(0).permutation(dag.n_edges)[: round(share * dag.n_edges)]
    pairs = dag.labels[np.stack([dag.sources, dag.targets], axis=1)]
    _, first = fitted(DiGraph.from_edges(np.delete(pairs, late, axis=0)))
    grown, spent = first, []
    for part in np.array_split(late, batches):
        started = time.process_time()
        grown = grown.add_edges(DiGraph.from_edges(pairs[part]))
        spent.append(time.process_time() - started)
    refit, again = fitted(dag)
    paths = collect_paths(dag, levels(dag))
    sample = PathSample.of(paths, effort=2.0, random_state=PAIR_SEED)
    reports = [judged(sample, dag, model).to_dict() for model in (again, grown, first)]
    lines = [
        [name.replace("_", " "), *(report[name] for report in reports), grew - value]
        for name, value in reports[0].items()
        if name != "pairs" and value is not None and (grew := reports[1][name]) is not None
    ]
    each = float(np.mean(spent))
    return [len(dag.labels) - len(first.labels_), refit, each, each / refit], lines


def main() -> None:
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--graphs", default=",".join(NAMES))
    options = parser.parse_args()
    command = " ".join(["python benchmarks/growing.py", *sys.argv[1:]])
    report = Report("Growing models", command, options.output)
    tiny = noisy_hierarchy(300, 900, 60, random_state=0).graph
    ATP().fit(tiny).add_edges([(0, 1), ("a", 0)])  # compiles what is timed
    for name, dag in graphs(options.graphs.split(",")):
        costs, lines = measure(dag, options.share, options.batches)
        report.add(f"## {name} ({dag.n_nodes:,} nodes, {dag.n_edges:,} edges)")
        columns = ["new nodes", "fit, CPU s", "a batch, CPU s", "batch / fit"]
        report.add(markdown(columns, [costs]))
        columns = ["line", "fitted again", "grown", "not grown", "grown − fitted again"]
        report.add(markdown(columns, lines))
    report.save()


if __name__ == "__main__":
    main()
