"""The demo: a hierarchy that noise has spoilt, and what atpgraph makes of it.

    python examples/demo.py

Each part is one function that prints what it does and what is seen; ``main`` runs them in order.
"""

from __future__ import annotations

import time

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from atpgraph import ATP, DiGraph, levels, noisy_hierarchy
from atpgraph._jit import on_compilation
from atpgraph.cycles import METHODS, CycleBreak, CycleBreaker
from atpgraph.linkpred.metrics import auc
from atpgraph.linkpred.splits import make_split

NODES, EDGES, PLANTED, SEED = 2_000, 12_000, 1_000, 7

console = Console(highlight=False)


def say(text: str) -> None:
    """Print a paragraph."""
    console.print(text, end="\n\n")


def break_the_cycles() -> CycleBreak:
    """Break the cycles of a noisy hierarchy by every method, and compare with the truth."""
    graph, planted = noisy_hierarchy(NODES, EDGES, PLANTED, random_state=SEED)
    say(
        f"[bold]1. Breaking cycles.[/] A random hierarchy of {NODES:,} nodes and {EDGES:,} edges, "
        f"all pointing up. Then {PLANTED:,} edges are planted that point down and close cycles. "
        "Which are they? The methods see the graph only."
    )
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method")
    for column in ("removed", "precision", "recall", "F1", "seconds"):
        table.add_column(column, justify="right")
    results: dict[str, CycleBreak] = {}
    f1: dict[str, float] = {}
    for name in METHODS:
        with on_compilation(lambda: None) as compiling:
            started = time.perf_counter()
            result = CycleBreaker(graph, SEED).run(name)
            seconds = time.perf_counter() - started - compiling.seconds
        found = result.agreement(planted)
        results[name], f1[name] = result, found.f1
        table.add_row(
            name,
            f"{len(result.removed):,}",
            f"{found.precision:.3f}",
            f"{found.recall:.3f}",
            f"{found.f1:.3f}",
            f"{seconds:.3f}",
        )
    console.print(table)
    best = max(f1, key=f1.__getitem__)
    say(
        f"Every method leaves a graph without cycles; they differ in what it costs. A depth-first "
        f"search removes whatever closes a cycle first (F1 {f1['dfs']:.2f}). The vote of the ATP "
        f"paper, h-voting, gets {f1['h-voting']:.2f}. The best here is {best}, with "
        f"{f1[best]:.2f}."
    )
    return results[best]


def show_the_levels(result: CycleBreak) -> None:
    """Levels of the nodes once the cycles are broken."""
    dag: DiGraph = result.dag
    level = levels(dag)
    say(
        f"[bold]2. The hierarchy.[/] What is left has {dag.n_edges:,} edges on {level.max()} "
        "levels, and the level rises along every edge. With cycles there are no such levels."
    )


def embed_and_predict(graph: DiGraph) -> None:
    """Hide some edges, embed the rest, tell the hidden ones from pairs the wrong way round."""
    split = make_split(graph, protocols=["paper"], random_state=SEED)
    test = split.tests["paper"]
    model = ATP(n_components=32, random_state=SEED).fit(split.train)
    labels = split.train.labels
    good, bad = (
        model.score_pairs(labels[pairs.sources], labels[pairs.targets])
        for pairs in (test.positives, test.negatives)
    )
    seconds = sum(model.timings_.values())
    say(
        f"[bold]3. The embedding.[/] {len(split.positives):,} edges are hidden. From the rest "
        f"every node gets a source and a target vector of 32 numbers, in {seconds:.1f} s: "
        f"{model.n_reachable_pairs_:,} pairs of nodes are joined by a path, and the closure forest "
        f"holds them as {model.n_extras_:,} entries."
    )
    node = labels[np.argsort(model.levels_, kind="stable")[len(labels) // 4]]
    table = Table(box=box.SIMPLE_HEAD)
    for column in (f"node {node} leads to", "score", "score of the way back", "level"):
        table.add_column(column, justify="right")
    names, scores = model.top_targets(node, 5)
    back = model.score_pairs(names, node)
    for name, there, other in zip(names.tolist(), scores, back, strict=True):
        level = model.levels_[model.graph_.codes(name)[0]]
        table.add_row(str(name), f"{there:.2f}", f"{other:.2f}", str(level))
    console.print(table)
    say(
        f"A hidden edge scores above a pair of nodes that only the way back joins in "
        f"{100 * auc(good, bad):.1f} % of all comparisons (area under the ROC curve); guessing "
        "gets 50 %."
    )


def main() -> None:
    """Run the parts."""
    started = time.perf_counter()

    def announce() -> None:
        say("[dim]First run: compiling the kernels, once per installation, about 15 s.[/]")

    with on_compilation(announce) as compiling:
        result = break_the_cycles()
        show_the_levels(result)
        embed_and_predict(result.graph)
    seconds = time.perf_counter() - started
    compiled = f", {compiling.seconds:.1f} s of them compiling" if compiling.seconds > 0.1 else ""
    say(
        f"[dim]{seconds:.1f} s in all{compiled}. With a graph of your own: "
        "atp embed GRAPH -o model.npz[/]"
    )


if __name__ == "__main__":
    main()
