"""Search the settings of the row ``atp`` on validation questions only; no test question is seen.

Validation questions are chosen as the protocols choose test questions, but inside what they leave
for training: ``time-own`` on the site as it was known at the split (the last fifth of what is
left), the paper's two after their test questions are taken away. One setting is changed at a time
from the best so far; a change is kept if the mean MRR over all sites and protocols, each weighing
as much as its questions, is higher.

    python benchmarks/search_routing.py SITE [SITE …] --output benchmarks/results/routing-search.md
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, markdown

from atpgraph_qa import Site
from atpgraph_qa.baselines import METHODS
from atpgraph_qa.baselines.structural import AtpSettings, PaperAtp
from atpgraph_qa.evaluation.evaluation import run
from atpgraph_qa.evaluation.protocols import Protocol, Split, make_protocol
from atpgraph_qa.timeline.records import Records

STEPS: list[dict[str, list[Any]]] = [
    {
        "ega": ["none", "consecutive", "all-pairs"],
        "kernel": ["log", "harmonic", "linear", "constant"],
    },
    {"zero_weight": ["auto", 0.0, 0.01, 0.1, 1.0]},
    {"n_components": [4, 8, 16, 32, 64]},
    {"recent": [1, 3, 5, 10]},
    {"neighbors": [3, 10, 30, 100]},
]


def main() -> None:
    """Search, print every trial."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("sites", type=Path, nargs="+", help="folders made by 'atp qa ingest'")
    options = parser.parse_args()
    names = " ".join(site.name for site in options.sites)
    command = f"python benchmarks/search_routing.py {names}"
    report = Report("Settings of ATP", command, options.output)
    protocols = [p for site in options.sites for p in validation(site)]
    protocols = [(label, p) for label, p in protocols if len(p.test) >= 5]
    weight = np.array([len(p.test) for _, p in protocols], dtype=np.float64)
    columns = [f"{label} ({len(p.test)})" for label, p in protocols]

    counts = [measure(p, None) for _, p in protocols]
    rows: list[list[Any]] = [["accepted answers", *cells(counts, weight)]]
    best, best_mean = AtpSettings(), -1.0
    for step in STEPS:
        trials = [{}]
        for name, values in step.items():
            trials = [{**trial, name: value} for trial in trials for value in values]
        start = best
        for trial in trials:
            settings = replace(start, **trial)
            found = [measure(p, settings) for _, p in protocols]
            label = ", ".join(f"{name} {value}" for name, value in trial.items())
            rows.append([label, *cells(found, weight)])
            print(rows[-1], flush=True)
            mean = float(np.average(found, weights=weight))
            if mean > best_mean:
                best, best_mean = settings, mean
    report.add(markdown(["setting", *columns, "mean"], rows))
    chosen = ", ".join(f"{name} {value}" for name, value in asdict(best).items())
    report.add(f"Chosen: {chosen}; mean MRR {best_mean:.4f}.")
    report.save()


def validation(folder: Path) -> list[tuple[str, Protocol]]:
    """Protocols inside what the test protocols leave for training."""
    records = Records.of(Site(folder))
    split = make_protocol(records, "time-own").training.now
    hidden = make_protocol(records, "paper-new").training.records
    found = [(f"{folder.name} paper-{n}", make_protocol(hidden, f"paper-{n}")) for n in KINDS]
    known = records.until(split)
    return [
        *found,
        (f"{folder.name} time-own", make_protocol(known, "time-own", Split(refit_days=0.0))),
    ]


KINDS = ("existing", "new")


def measure(protocol: Protocol, settings: AtpSettings | None) -> float:
    """MRR of the row, or of the number of accepted answers."""
    method: Any = METHODS["accepted-answers"]("own") if settings is None else PaperAtp("own")
    if settings is not None:
        method.settings = settings
    result = run(protocol, [method])
    return float(result.ranks[method.name].reciprocal.mean())


def cells(values: list[float], weight: np.ndarray) -> list[str]:  # type: ignore[type-arg]
    """Values and their weighted mean as text."""
    return [f"{v:.3f}" for v in values] + [f"{np.average(values, weights=weight):.4f}"]


if __name__ == "__main__":
    main()
