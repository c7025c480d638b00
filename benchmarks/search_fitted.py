"""How many questions with a bounty the fitted difficulty needs.

    python benchmarks/search_fitted.py [--site SITE …] [--seeds 101 102] [--draws 40]

Weights are fitted to n questions drawn from one part and judged on the other part, against position
and number of answers with equal weights, which needs no fit. Of a real site only the validation
half is looked at. ``LEAST_QUESTIONS`` of :mod:`atpgraph_qa.difficulty.signal_model` was read off
this table.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from atpgraph_qa import (
    Expertise,
    Scores,
    Site,
    bounty_truth,
    halves,
    ingest,
    pairwise_accuracy,
    simulate_community,
    write_dump,
)
from atpgraph_qa.difficulty.accuracy import BountyTruth
from atpgraph_qa.difficulty.signal_model import (
    atp_signals,
    fit_weights,
    signal_matrix,
    simple_signals,
)

SIZES = (10, 20, 30, 50, 75, 100, 150, 200)


def curve(site: Site, truth: BountyTruth, draws: int, seed: int) -> list[tuple[float, float]]:
    """Mean accuracy with and without a fit, for every size."""
    expertise = Expertise.fit(site, random_state=seed)
    signals = simple_signals(site) | atp_signals(site, expertise)
    matrix = signal_matrix(signals)[truth.question]
    plain = matrix @ [float(name in ("position", "answers")) for name in signals]
    rng = np.random.default_rng(seed)
    rows = []
    for size in SIZES:
        found = []
        for _ in range(draws):
            order = rng.permutation(len(truth))
            learn, judge = order[:size], order[len(truth) // 2 :]
            if size > len(truth) // 2:
                break
            weights = fit_weights(matrix[learn], truth.amount[learn])
            part = truth.take(np.sort(judge))
            order = np.sort(judge)
            found.append(
                [
                    pairwise_accuracy(part, Scores(values), n_bootstrap=1).mean
                    for values in (matrix[order] @ weights, plain[order])
                ]
            )
        rows.append(tuple(np.mean(found, axis=0)) if found else (np.nan, np.nan))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="*", default=[101, 102])
    parser.add_argument("--draws", type=int, default=40)
    options = parser.parse_args()
    columns: dict[str, list[tuple[float, float]]] = {}
    for path in options.site:
        site = Site(path)
        truth = bounty_truth(site)
        validation, _ = halves(truth, random_state=0)
        columns[path.name] = curve(site, truth.take(np.flatnonzero(validation)), options.draws, 0)
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as name:
            made = simulate_community(500, 5000, random_state=seed)
            write_dump(made, Path(name) / "dump", random_state=seed)
            ingest(Path(name) / "dump", Path(name) / "site")
            site = Site(Path(name) / "site")
            columns[f"seed {seed}"] = curve(site, bounty_truth(site), options.draws, seed)
    print("| questions | " + " | ".join(f"{name}: fitted, unfitted" for name in columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for place, size in enumerate(SIZES):
        cells = " | ".join(f"{r[place][0]:.3f}, {r[place][1]:.3f}" for r in columns.values())
        print(f"| {size} | {cells} |")


if __name__ == "__main__":
    main()
