"""The search behind ATP's defaults: validation splits and generated graphs only.

For each graph a test split is made and put aside; its training graph is split again, and AUC is
measured on that validation split (protocols `paper` and `random`). Nothing of the test edges is
seen. Run: python benchmarks/search_atp.py [--graphs wiki-vote,gnm-5000] [--dim 64] [--seeds 1]
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from _hard_pairs import ExactPaths, HardPairs, measure

from atpgraph import datasets
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding.ranking import pair_scores
from atpgraph.evaluation.metrics import auc
from atpgraph.factorization import Options, factorize
from atpgraph.graph import DiGraph, generators
from atpgraph.hierarchy import levels
from atpgraph.linkpred import PairTest, make_split


def load(name: str) -> DiGraph:
    """A graph of the search: generated, or a dataset (``ATP_DATA`` says where its file is)."""
    if name == "gnm-30k":  # 30 K nodes, 155 K edges, with cycles
        return generators.noisy_hierarchy(30_000, 150_000, 5_000, random_state=0).graph
    if name == "gnm-5000":  # generated, like the authors' graph but not that one
        return generators.noisy_hierarchy(5_000, 25_000, 3_000, random_state=0).graph
    return datasets.load(name)


def main() -> None:
    """Print one line per setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", default="wiki-vote,gnm-5000,gnm-30k,p2p-gnutella31,cit-hepph")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", default="h-voting,bayes")
    parser.add_argument("--zero-weights", default="0,0.003,0.01,0.03,0.1")
    parser.add_argument(
        "--relative",
        action="store_true",
        help="zero weights are shares of the weight of all reachable pairs, and penalties are "
        "multiplied by components / mean number of pairs of a node",
    )
    parser.add_argument(
        "--sketches", default="0", help="sizes of the sketches, 0 for the closure forests"
    )
    parser.add_argument("--regularizations", default="0.001,0.01,0.1")
    parser.add_argument("--iterations", default="1,2,4")
    options = parser.parse_args()
    numbers = [float(x) for x in options.zero_weights.split(",")]
    penalties = [float(x) for x in options.regularizations.split(",")]
    rounds = [int(x) for x in options.iterations.split(",")]
    sizes = [int(x) for x in options.sketches.split(",")]
    print(
        "graph method seed sketch zero_weight regularization iterations paper random hard seconds"
    )
    for name, seed in itertools.product(options.graphs.split(","), range(options.seeds)):
        outer = make_split(load(name), protocols=["paper"], random_state=seed).train
        split = make_split(outer, protocols=["paper", "random"], random_state=seed)
        for method in options.methods.split(","):
            dag = break_cycles(split.train, method, random_state=seed).dag
            rank = levels(dag)
            forests = closure_forests(dag)
            paths = ExactPaths(dag)
            hard = HardPairs.of(paths, rank, np.random.default_rng(seed + 1))
            table = kernel_table("log", int(rank.max()))
            for size, weight, penalty, n_iter in itertools.product(
                sizes, numbers, penalties, rounds
            ):
                if options.relative:
                    n, pairs = dag.n_nodes, forests[0].n_pairs
                    zero_weight = weight * pairs / (n * (n - 1) - pairs)
                    regularization = penalty * options.dim * n / pairs
                else:
                    zero_weight, regularization = weight, penalty
                started = time.perf_counter()
                how = Options(
                    n_components=options.dim, regularization=regularization, max_iter=n_iter,
                    random_state=seed,
                )  # fmt: skip
                fit = factorize(forests, rank, table, how, zero_weight=zero_weight)
                seconds = time.perf_counter() - started
                found = []
                for protocol in ("paper", "random"):
                    test = split.tests[protocol]
                    assert isinstance(test, PairTest)
                    good, bad = (
                        pair_scores(fit.source, fit.target, pairs.sources, pairs.targets)
                        for pairs in (test.positives, test.negatives)
                    )
                    found.append(auc(good, bad))
                print(
                    f"{name} {method} {seed} {size} {weight:g} {penalty:g} {n_iter} "
                    f"{found[0]:.4f} {found[1]:.4f} "
                    f"{measure(hard, paths, rank, fit.source, fit.target, 0.0).auc:.4f} "
                    f"{seconds:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
