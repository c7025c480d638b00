"""Suggest missing citations, and find out which method does this best on *your* graph.

The papers are made up: each cites older papers of its own field and sometimes of another. Some
citations are removed, every method is fitted to the rest, and each ranks the papers that were cited
among all others. If a method does not beat the trivial ones, use those.
"""

import numpy as np

from atpgraph import DiGraph
from atpgraph.linkpred.benchmark import run

FIELDS, PAPERS = 6, 900
ROWS = ("atp-log", "hope-katz", "nrp", "svd", "common-neighbours", "preferential", "levels")


def literature(rng: np.random.Generator) -> DiGraph:
    """Papers by date; each cites about eight, recent and already cited ones first."""
    field = rng.integers(0, FIELDS, PAPERS)
    cited = np.ones(PAPERS)
    edges = []
    for paper in range(10, PAPERS):
        older = np.arange(paper)
        wish = cited[:paper] * np.exp((older - paper) / 300)
        wish *= np.where(field[:paper] == field[paper], 1.0, 0.03)
        count = min(rng.poisson(8), paper)
        chosen = rng.choice(older, count, replace=False, p=wish / wish.sum())
        cited[chosen] += 1
        edges += [(f"paper {paper}", f"paper {reference}") for reference in chosen]
    return DiGraph.from_edges(edges)


def main() -> None:
    graph = literature(np.random.default_rng(0))
    result = run(graph, ROWS, protocols=("ranking", "reversed"), dim=32, seeds=2)
    print(f"{graph.n_nodes} papers, {graph.n_edges} citations, {result.test_edges} taken out")
    print(f"{'method':24} {'rank it: MRR':>14} {'direction: AUC':>16}")
    rows = sorted(result.main(), key=lambda row: -row.interval("ranking", "mrr").mean)
    for row in rows:
        mrr, auc = row.interval("ranking", "mrr"), row.interval("reversed", "auc")
        print(f"{row.name:24} {mrr.mean:14.3f} {auc.mean:16.3f}")


if __name__ == "__main__":
    main()
