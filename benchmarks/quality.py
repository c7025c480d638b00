"""AUC of ATP with its defaults under the paper's link-prediction protocol, mean of 5 splits.

ATP_DATA=FOLDER python benchmarks/quality.py --output benchmarks/results/quality.md
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import numpy as np
from _common import data_dir
from search_atp import load

from atpgraph import ATP, __version__
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph, read_edgelist
from atpgraph.linkpred import PairTest, make_split

AUTHORS = "peer_breaking_cycles/gnm_5000_25000_graph_w_extra_3000_path_len_0.edges"
ROWS = [
    ("wiki-vote", 64, 0.997, 0.9481),
    ("wiki-vote", 8, 0.997, 0.9481),
    ("cit-hepph", 64, 0.975, 0.8916),
    ("p2p-gnutella31", 64, 0.955, 0.9314),
    ("gnm-30k", 64, 0.94, 0.8789),
    ("gnm-5000 (authors')", 64, 0.934, None),
]


def graph_of(name: str) -> DiGraph:
    """A graph by the name of its row."""
    if not name.startswith("gnm-5000"):
        return load(name)
    folder = data_dir()
    if folder is None:
        raise SystemExit(f"set ATP_DATA to a folder that holds {AUTHORS}")
    return read_edgelist(folder / AUTHORS)


def main() -> None:
    """Print the table, a line at a time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", default="h-voting")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        f"Command: `python benchmarks/quality.py --seeds {options.seeds} "
        f"--method {options.method}`; atpgraph {__version__}, {datetime.date.today()}.",
        "",
        "| graph | k | AUC, mean | standard deviation | goal | paper (theirs) | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name, k, goal, paper in ROWS:
        graph = graph_of(name)
        found, seconds = [], []
        for seed in range(options.seeds):
            split = make_split(graph, protocols=["paper"], random_state=seed)
            model = ATP(
                k, purpose="paper", zero_weight="auto", method=options.method, random_state=seed
            ).fit(split.train)
            test = split.tests["paper"]
            assert isinstance(test, PairTest)
            labels = split.train.labels
            good, bad = (
                model.score_pairs(labels[pairs.sources], labels[pairs.targets])
                for pairs in (test.positives, test.negatives)
            )
            found.append(auc(good, bad))
            seconds.append(sum(model.timings_.values()))
        lines.append(
            f"| {name} | {k} | {np.mean(found):.4f} | {np.std(found, ddof=1):.4f} | {goal} "
            f"| {'–' if paper is None else paper} | {np.mean(seconds):.1f} |"
        )
        print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
