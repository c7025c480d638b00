"""Learn the weights that the router starts from, ``prior_weights.json`` in the package.

They come from one large site, from the part of it that every protocol may learn from: before the
split of the time protocols, and without the test questions of the paper's protocol. A site of one's
own then moves them as far as its own questions ask for.

    python benchmarks/teach_router.py TRAVEL
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import atpgraph
from atpgraph.cqa import Site
from atpgraph.cqa.routing.evaluation.protocols import make_protocol
from atpgraph.cqa.routing.features.names import GROUPS, NAMES
from atpgraph.cqa.routing.model.conditional_logit import fit_logit
from atpgraph.cqa.routing.model.training import TrainingPlan, collect
from atpgraph.cqa.routing.timeline.candidates import Pool
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.records import Records

TARGET = Path(atpgraph.__file__).parent / "cqa" / "routing" / "model" / "prior_weights.json"
PENALTY = 30.0
PLANS: dict[Pool, TrainingPlan] = {
    "own": TrainingPlan(questions=6000, refit_days=120.0),
    "all": TrainingPlan(questions=2500, refit_days=120.0),
}


def main() -> None:
    """Learn with all features, and without those of the competition graph for the ablation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder made by 'atp cqa ingest'")
    options = parser.parse_args()
    records = Records.of(Site(options.site))
    split = make_protocol(records, "time-all").training.now
    hidden = make_protocol(records, "paper-new").training.records
    history = History(hidden.until(split), split)
    learnt: dict[str, dict[str, float]] = {}
    for pool, plan in PLANS.items():
        examples = collect(history, pool, plan)
        print(f"{pool}: {examples.choices.n_questions} questions", flush=True)
        for name, left_out in ((pool, ()), (f"{pool}-without-atp", GROUPS["atp"])):
            use = np.array([feature not in left_out for feature in NAMES])
            model = fit_logit(examples.choices, PENALTY, use)
            learnt[name] = {
                feature: round(weight, 5)
                for feature, weight in zip(NAMES, model.raw_weight.tolist(), strict=True)
                if weight
            }
    TARGET.write_text(json.dumps(learnt, indent=1) + "\n", encoding="utf-8")
    print(f"written: {TARGET.name}")


if __name__ == "__main__":
    main()
