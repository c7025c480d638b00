"""The purposes against an earlier version: AUC under the paper's protocol, and time of a fit.

Run: git archive 614ac2e src | tar -x -C OLD
     python benchmarks/purposes.py OLD/src [--graphs wiki-Vote,…] [--seeds 1] [--output FILE]

614ac2e is the last commit of 0.1.0, whose one objective is that of purpose "links"; with a
zero_weight of 0 it is that of "paper". Every fit runs with 64 components in a process of its own
that has compiled its kernels, old and new in turn; seconds are CPU seconds of `fit`. The first
table is on the training graphs of the splits, the second on the whole graphs. Real graphs are read
from the folder that ATP_DATA names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

REAL = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")


def job(graph: str, options: dict[str, Any], seed: int | None) -> dict[str, float]:
    """Fit once: AUC on the split of a seed, or CPU seconds on the whole graph."""
    from atpgraph import ATP, read_edgelist
    from atpgraph.linkpred import make_split

    whole = read_edgelist(graph)
    ATP(64, **options).fit([(0, 1), (1, 2), (2, 0), (0, 3)])  # compiles what is timed
    split = None if seed is None else make_split(whole, protocols=["paper"], random_state=seed)
    train = whole if split is None else split.train
    started = time.process_time()
    model = ATP(64, random_state=seed or 0, **options).fit(train)
    seconds = time.process_time() - started
    if split is None:
        return {"seconds": seconds}
    test: Any = split.tests["paper"]
    scores = np.concatenate(
        [
            model.score_pairs(train.labels[pairs.sources], train.labels[pairs.targets])
            for pairs in (test.positives, test.negatives)
        ]
    )
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    good, bad = len(test.positives.sources), len(test.negatives.sources)
    return {"auc": float((rank[:good].sum() - good * (good + 1) / 2) / (good * bad))}


def run(source: str | None, *what: Any) -> float:
    """The one number of a job, with the package that lies in `source`."""
    env = os.environ | ({"PYTHONPATH": source} if source else {})
    command = [sys.executable, __file__, "--job", json.dumps(what)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    (value,) = json.loads(done.stdout).values()
    return float(value)


def main() -> None:
    if "--job" in sys.argv:
        print(json.dumps(job(*json.loads(sys.argv[-1]))))
        return
    from _common import Report, arguments, data_dir, markdown

    parser = arguments(__doc__ or "")
    parser.add_argument("old", type=Path, help="the folder src of an earlier version")
    parser.add_argument("--graphs", default=",".join(REAL), help="real graphs, by name")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    folder = data_dir()
    if folder is None:
        raise SystemExit("set ATP_DATA to the folder of the real graphs")
    names = options.graphs.split(",")
    files = {name: str(folder / "graphs" / f"{name}.txt.gz") for name in names}
    old = str(options.old.resolve())
    command = f"python benchmarks/purposes.py OLD/src --graphs {options.graphs}"
    report = Report("Purposes and 0.1.0", f"{command} --seeds {options.seeds}", options.output)
    ways = {
        "links": ({}, {"purpose": "paper", "zero_weight": "auto"}),
        "paper": ({"zero_weight": 0.0}, {"purpose": "paper"}),
    }
    rows: list[tuple[object, ...]] = []
    for name in names:
        for seed in range(options.seeds):
            for purpose, (before, now) in ways.items():
                a, b = (run(s, files[name], o, seed) for s, o in ((old, before), (None, now)))
                rows.append((name, seed, purpose, f"{a:.6f}", f"{b:.6f}", f"{b - a:+.6f}"))
    report.add(markdown(("graph", "seed", "purpose", "0.1.0", "now", "difference"), rows))
    report.save()
    rows = []
    for name in names:
        a, b = (run(source, files[name], {}, None) for source in (old, None))
        rows.append((name, a, b, b / a))
    report.add(markdown(("graph", "0.1.0, CPU s", "reachability, CPU s", "ratio"), rows))
    report.save()


if __name__ == "__main__":
    main()
