"""Learn what the router starts from: ``prior_weights.json``, and the axes of the text models.

Both come from one large site, from the part of it that every protocol may learn from: before the
split of the time protocols, and without the test questions of the paper's protocol. A site of one's
own then moves the weights as far as its own questions ask for.

    python benchmarks/teach_router.py TRAVEL [--axes] [--simulated 3]
    python benchmarks/teach_router.py TRAVEL --simulated 3 --judge SITE SITE

Needs the extra ``dense``. The axes change what weights mean: with `--axes` they are learnt first.
With `--simulated`, so many simulated communities teach beside the large site, each with a twentieth
as many questions. With `--judge` nothing is written: weights from the large site alone and with the
communities are compared on questions of the training periods of other sites, as they are and as the
start of learning there (``search_router.py`` says how questions judge).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from search_router import Learner, judge, linear

import atpgraph_qa
from atpgraph.util.archive import write_archive
from atpgraph.util.arrays import AnyArray, Float64Array
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph_qa import Site, ingest, simulate_community, write_dump
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.names import GROUPS, NAMES
from atpgraph_qa.ranking.router import STIFFNESS
from atpgraph_qa.ranking.training import TrainingPlan, collect
from atpgraph_qa.text.choice import (
    AXES,
    AXES_FORMAT,
    AXES_VERSION,
    BM25,
    DENSE,
    STATIC,
    shipped_axes,
    text_model,
)
from atpgraph_qa.text.store import question_text, text_vectors
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Pool
from atpgraph_qa.timeline.records import Records

PACKAGE = Path(atpgraph_qa.__file__).parent
TARGET = PACKAGE / "ranking" / "prior_weights.json"
N_AXES = 128
PENALTY = 30.0
PLANS: dict[Pool, TrainingPlan] = {
    "own": TrainingPlan(questions=4000),
    "all": TrainingPlan(questions=2500),
    "new": TrainingPlan(questions=1500),
}
SIMULATED = 100  # their seeds from here on; tables have others
SHARE = 20


def main() -> None:
    """Learn the weights of every pool and text model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder made by 'atp qa ingest'")
    parser.add_argument("--axes", action="store_true", help="learn the axes first")
    parser.add_argument("--kinds", default=f"{STATIC},{DENSE}", help="text models to learn for")
    parser.add_argument("--pools", default=",".join(PLANS), help="whom to rank")
    parser.add_argument("--simulated", type=int, default=0, help="simulated communities to add")
    parser.add_argument("--judge", type=Path, nargs="+", help="sites to compare weights on")
    options = parser.parse_args()
    site = Site(options.site)
    learnt: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        others = [simulated(Path(folder), k) for k in range(options.simulated)]
        for kind in options.kinds.split(","):
            if options.axes:
                learn_axes(site, kind)
            histories = [training(Records.of(each, kind)) for each in (site, *others)]
            for pool in options.pools.split(","):
                choices = examples_of(histories, pool)
                print(f"{kind}, {pool}: {choices[-1].n_groups} questions", flush=True)
                if options.judge:
                    compare(choices, pool, kind, options.judge)
                    continue
                learnt |= weights(choices[-1], f"{pool}-{kind}", ())
                if kind == DENSE:  # the features of words are the same
                    learnt |= weights(choices[-1], f"{pool}-{BM25}", meaning_features())
    if learnt:
        learnt = json.loads(TARGET.read_text(encoding="utf-8")) | learnt
        TARGET.write_text(json.dumps(learnt, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"written: {TARGET.name}")


def simulated(folder: Path, number: int) -> Site:
    """A simulated community, ingested."""
    dump = folder / f"dump-{number}"
    community = simulate_community(300, 2000, random_state=SIMULATED + number)
    write_dump(community, dump, random_state=SIMULATED + number)
    ingest(dump, folder / f"site-{number}")
    return Site(folder / f"site-{number}")


def examples_of(histories: Sequence[History], pool: Pool) -> tuple[Choices, Choices]:
    """Those of the first history, and those of all."""
    plan = PLANS[pool]
    fewer = replace(plan, questions=plan.questions // SHARE)
    parts = [
        collect(history, pool, plan if place == 0 else fewer).choices
        for place, history in enumerate(histories)
    ]
    questions = np.cumsum([0, *(part.n_groups for part in parts)])
    rows = np.cumsum([0, *(len(part.x) for part in parts)])
    together = Choices(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.group + first for part, first in zip(parts, questions, strict=False)]),
        np.concatenate([part.chosen + first for part, first in zip(parts, rows, strict=False)]),
        np.concatenate([part.offset for part in parts]),
    )
    return parts[0], together


def compare(choices: tuple[Choices, Choices], pool: Pool, kind: str, sites: Sequence[Path]) -> None:
    """MRR and loss on other sites, of weights from one site and from all."""
    priors = [fit_logit(each, PENALTY, stiff=STIFFNESS).raw_weight for each in choices]
    for site in sites:
        history = make_protocol(Records.of(Site(site), kind), "time-all").training
        examples = collect(history, pool, TrainingPlan(questions=1200))
        ways: dict[str, Callable[[Float64Array], Learner]] = {
            "as they are": lambda prior: lambda _: lambda x: x @ prior,
            "as a start": lambda prior: linear(100.0, prior=prior),
        }
        for name, way in ways.items():
            (one, loss), (all_of, other) = (judge(examples, way(p), True) for p in priors)
            away = all_of - one
            print(
                f"{site.name}, {pool}, {kind}, {name}: {len(one)} questions, MRR {one.mean():.4f} "
                f"alone, {away.mean():+.4f} ± {away.std() / np.sqrt(len(away)):.4f} with simulated "
                f"sites; loss {loss:.4f}, {other:.4f}",
                flush=True,
            )


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
    vectors = text_vectors(model, texts[:n])
    mean, basis = principal(vectors)
    description = {"format": AXES_FORMAT, "version": AXES_VERSION, "model": model.digest}
    arrays = {"mean": mean.astype(np.float16), "basis": basis.astype(np.float16)}
    write_archive(PACKAGE / "text" / AXES.format(kind), description, arrays)
    shipped_axes.cache_clear()
    print(f"axes of {kind}: {n} titles", flush=True)


def principal(vectors: AnyArray) -> tuple[Float64Array, Float64Array]:
    """Return the mean and the first principal components of vectors, one per row."""
    mean = vectors.astype(np.float64).mean(axis=0)
    away = vectors.astype(np.float64) - mean
    _, directions = np.linalg.eigh(away.T @ away)
    basis = directions[:, ::-1][:, :N_AXES]
    # Signs are arbitrary: the largest entry is positive, so that they are the same anywhere.
    largest = np.abs(basis).argmax(axis=0)
    return mean, basis * np.sign(basis[largest, np.arange(basis.shape[1])])


def meaning_features() -> tuple[str, ...]:
    """The features that need vectors."""
    return tuple(name for name in NAMES if "meaning" in name or name in GROUPS["axes"])


def weights(choices: Choices, name: str, left_out: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Weights by name, without some features."""
    use = np.array([feature not in left_out for feature in NAMES])
    model = fit_logit(choices, PENALTY, use, stiff=STIFFNESS)
    return {
        name: {
            feature: round(weight, 5)
            for feature, weight in zip(NAMES, model.raw_weight.tolist(), strict=True)
            if weight
        }
    }


if __name__ == "__main__":
    main()
