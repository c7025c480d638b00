"""Learn what the router starts from: ``prior_weights.json``, and the axes of the text models.

Both come from one large site, from the part of it that every protocol may learn from: before the
split of the time protocols, and without the test questions of the paper's protocol. A site of one's
own then moves the weights as far as its own questions ask for.

    python benchmarks/teach_router.py TRAVEL [--axes]

Needs the extra ``dense``. The axes change what weights mean: with `--axes` they are learnt first.
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
from atpgraph.cqa.routing.model.router import STIFFNESS
from atpgraph.cqa.routing.model.training import Examples, TrainingPlan, collect
from atpgraph.cqa.routing.timeline.candidates import Pool
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.records import Records
from atpgraph.cqa.text import axes as text_axes
from atpgraph.cqa.text.axes import Axes, write_axes
from atpgraph.cqa.text.choice import BM25, DENSE, STATIC, text_model
from atpgraph.cqa.text.store import question_text, text_vectors

PACKAGE = Path(atpgraph.__file__).parent / "cqa"
TARGET = PACKAGE / "routing" / "model" / "prior_weights.json"
PENALTY = 30.0
PLANS: dict[Pool, TrainingPlan] = {
    "own": TrainingPlan(questions=4000),
    "all": TrainingPlan(questions=2500),
    "new": TrainingPlan(questions=1500),
}


def main() -> None:
    """Learn the weights of every pool and text model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder made by 'atp cqa ingest'")
    parser.add_argument("--axes", action="store_true", help="learn the axes first")
    parser.add_argument("--kinds", default=f"{STATIC},{DENSE}", help="text models to learn for")
    parser.add_argument("--pools", default=",".join(PLANS), help="whom to rank")
    options = parser.parse_args()
    site = Site(options.site)
    learnt: dict[str, dict[str, float]] = {}
    for kind in options.kinds.split(","):
        if options.axes:
            learn_axes(site, kind)
        history = training(Records.of(site, kind))
        for pool in options.pools.split(","):
            plan = PLANS[pool]
            examples = collect(history, pool, plan)
            print(f"{kind}, {pool}: {examples.choices.n_questions} questions", flush=True)
            learnt |= weights(examples, f"{pool}-{kind}", ())
            if kind == DENSE:  # the features of words are the same
                learnt |= weights(examples, f"{pool}-{BM25}", meaning_features())
    learnt = json.loads(TARGET.read_text(encoding="utf-8")) | learnt
    TARGET.write_text(json.dumps(learnt, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written: {TARGET.name}")


def training(records: Records) -> History:
    """What every protocol may learn from."""
    split = make_protocol(records, "time-all").training.now
    hidden = make_protocol(records, "paper-new").training.records
    return History(hidden.until(split), split)


def learn_axes(site: Site, kind: str) -> None:
    """Principal components of the titles before the split."""
    model = text_model(kind)
    assert model is not None
    n = make_protocol(Records.of(site), "time-all").training.n_questions
    texts = [
        question_text(*parts) for parts in zip(site.titles(), site.question_bodies(), strict=True)
    ]
    vectors = text_vectors(model, texts, site.path)[:n]
    write_axes(PACKAGE / "text" / text_axes.FILE.format(kind), model, Axes.principal(vectors))
    text_axes._shipped.cache_clear()
    print(f"axes of {kind}: {n} titles", flush=True)


def meaning_features() -> tuple[str, ...]:
    """The features that need vectors."""
    return tuple(name for name in NAMES if "meaning" in name or name in GROUPS["axes"])


def weights(
    examples: Examples, name: str, left_out: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Weights by name, without some features."""
    use = np.array([feature not in left_out for feature in NAMES])
    model = fit_logit(examples.choices, PENALTY, use, stiff=STIFFNESS)
    return {
        name: {
            feature: round(weight, 5)
            for feature, weight in zip(NAMES, model.raw_weight.tolist(), strict=True)
            if weight
        }
    }


if __name__ == "__main__":
    main()
