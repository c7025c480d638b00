"""Difficulty and expertise on simulated communities, against what was planted.

    python benchmarks/community.py [--users 500] [--questions 10000] [--seeds 0 1 2]

For every method the pairwise accuracy against bounties (all questions with one) and the rank
correlation with the planted difficulty; for expertise the rank correlation of the position of every
user in the graph with the planted expertise over the topics they care about.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from atpgraph_qa import Expertise, Site, evaluate_site, ingest, simulate_community, write_dump


def one(users: int, questions: int, seed: int) -> tuple[dict[str, float], float, float]:
    """Accuracies by method, and the correlations of difficulty and expertise."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = simulate_community(users, questions, random_state=seed)
        write_dump(made, folder / "dump", random_state=seed)
        ingest(folder / "dump", folder / "site")
        site = Site(folder / "site")
        with np.load(folder / "dump" / "truth.npz") as planted:
            truth = dict(planted)
        expertise = Expertise.fit(site, random_state=seed)
        report = evaluate_site(site, n_bootstrap=200, random_state=seed, expertise=expertise)
    accuracy = {name: found.mean for name, found in report.methods.items()}
    difficulty = spearmanr(
        expertise.difficulty(truth["question_id"]), truth["difficulty"], nan_policy="omit"
    )
    overall = np.einsum("ut,ut->u", truth["expertise"], truth["interest"])
    people = spearmanr(expertise.expertise(truth["user_id"]), overall, nan_policy="omit")
    return accuracy, float(difficulty.statistic), float(people.statistic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    results = [one(options.users, options.questions, seed) for seed in options.seeds]
    print("| | " + " | ".join(f"seed {seed}" for seed in options.seeds) + " |")
    print("|---" * (1 + len(results)) + "|")
    names = sorted(results[0][0], key=lambda name: -np.mean([r[0][name] for r in results]))
    for name in names:
        print(f"| {name} | " + " | ".join(f"{r[0][name]:.4f}" for r in results) + " |")
    print("| difficulty, Spearman | " + " | ".join(f"{r[1]:.3f}" for r in results) + " |")
    print("| expertise, Spearman | " + " | ".join(f"{r[2]:.3f}" for r in results) + " |")


if __name__ == "__main__":
    main()
