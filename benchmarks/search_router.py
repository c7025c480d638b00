"""Compare ways of learning the router, on questions of the training period only.

Examples are those that the router learns from, each with what was known when it was asked. Four
times the examples before a moment teach, and the questions with an accepted answer in the next
stretch of time judge (from 40 % of them on, in steps of 15 %). No test question is seen. People
drawn at random count as often as they stand for, so the MRR over all users is an estimate.

    python benchmarks/search_router.py SITE [SITE …] --output benchmarks/results/routing-router.md

LightGBM is compared where it is installed. Starting from the prior weights is tried only on the
sites that `--prior` names: the large site they were learnt on must not be judged with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _common import Report, arguments, markdown

from atpgraph.util.arrays import Float64Array
from atpgraph.util.conditional_logit import Choices, choice_losses, fit_logit
from atpgraph_qa import Site
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.names import GROUPS, NAMES
from atpgraph_qa.ranking.router import prior_weights
from atpgraph_qa.ranking.training import Examples, TrainingPlan, collect
from atpgraph_qa.timeline.query import Pool
from atpgraph_qa.timeline.records import Records

STARTS = (0.4, 0.55, 0.7, 0.85)
PENALTIES = (10.0, 30.0, 100.0, 300.0, 1000.0)
PLANS: dict[Pool, TrainingPlan] = {
    "own": TrainingPlan(questions=4000, hard=40),
    "all": TrainingPlan(questions=1600, hard=40),
}
SINGLE = ("accepted", "acceptance_rate", "fading_15", "text_recent", "tag_recent", "level")
Scorer = Callable[[Float64Array], Float64Array]
Learner = Callable[[Choices], Scorer]


def main() -> None:
    """One section per site and pool."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("sites", type=Path, nargs="+", help="folders made by 'atp qa ingest'")
    parser.add_argument("--prior", default="", help="sites to try the prior weights on, by name")
    options = parser.parse_args()
    names = " ".join(site.name for site in options.sites)
    command = f"python benchmarks/search_router.py {names} --prior {options.prior}"
    report = Report("Learning the router", command, options.output)
    for site in options.sites:
        records = Records.of(Site(site))
        history = make_protocol(records, "time-all").training
        for pool, plan in PLANS.items():
            examples = collect(history, pool, plan)
            prior = prior_weights(pool) if site.name in options.prior.split(",") else None
            report.add(f"## {site.name}, {pool}")
            report.add(section(examples, prior))
    report.save()


def section(examples: Examples, prior: Float64Array | None) -> str:
    """Every trial on one site and pool."""
    rows: list[list[str]] = []
    base: list[Float64Array] = []

    def trial(label: str, learner: Learner, voted: bool = True, reference: bool = False) -> None:
        found, loss = judge(examples, learner, voted)
        if reference:
            base.append(found)
        gap = ""
        if base and not reference:
            away = found - base[0]
            gap = f"{away.mean():+.4f} ± {away.std() / np.sqrt(len(away)):.4f}"
        rows.append([label, f"{found.mean():.4f}", f"{loss:.4f}" if loss else "", gap])

    trial("conditional logit, penalty 100", linear(100.0), reference=True)
    for name in SINGLE:
        trial(f"feature {name} alone", lambda _, n=name: lambda x: x[:, NAMES.index(n)])
        rows[-1][2] = ""
    for penalty in PENALTIES:
        trial(f"penalty {penalty:g}", linear(penalty))
        trial(f"penalty {penalty:g}, accepted answers only", linear(penalty), voted=False)
        if prior is not None:
            trial(f"penalty {penalty:g}, from prior weights", linear(penalty, prior=prior))
    for group, members in GROUPS.items():
        use = np.array([name not in members for name in NAMES])
        trial(f"penalty 100, without {group}", linear(100.0, use=use))
    for rounds, leaves in ((50, 4), (150, 4), (150, 8)):
        learner = boosted(rounds, leaves)
        if learner is not None:
            trial(f"LightGBM lambdarank, {rounds} trees of {leaves} leaves", learner)
            rows[-1][2] = ""
    n = len(base[0])
    note = (
        f"{examples.choices.n_groups} examples, {int(examples.accepted.sum())} with an accepted "
        f"answer; {n} questions judge. The last column is the difference to the first row and its "
        "standard error."
    )
    return note + "\n\n" + markdown(["trial", "MRR", "loss", "difference"], rows)


def linear(
    penalty: float,
    use: np.ndarray | None = None,  # type: ignore[type-arg]
    prior: Float64Array | None = None,
) -> Learner:
    """The router's own model."""
    return lambda choices: fit_logit(choices, penalty, use, prior).score


def boosted(rounds: int, leaves: int) -> Learner | None:
    """Gradient-boosted trees with a ranking loss; None without LightGBM."""
    try:
        import lightgbm
    except ImportError:
        return None

    def learn(choices: Choices) -> Scorer:
        label = np.zeros(len(choices.x))
        label[choices.chosen] = 1
        sizes = np.bincount(choices.group, minlength=choices.n_groups)
        settings = {
            "objective": "lambdarank",
            "num_leaves": leaves,
            "learning_rate": 0.05,
            "min_data_in_leaf": 50,
            "lambda_l2": 10.0,
            "feature_fraction": 0.5,
            "num_threads": 1,
            "seed": 1,
            "deterministic": True,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(choices.x, label, group=sizes)
        model = lightgbm.train(settings, data, rounds)
        return lambda x: np.asarray(model.predict(x))

    return learn


def stretches(examples: Examples) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # type: ignore[type-arg]
    """Which examples teach and which judge, four times."""
    resolved = examples.position[examples.accepted]
    cuts = [int(resolved[int(len(resolved) * start)]) for start in STARTS]
    for low, high in zip(cuts, [*cuts[1:], int(resolved[-1]) + 1], strict=True):
        inside = (examples.position >= low) & (examples.position < high)
        yield examples.position < low, inside & examples.accepted


def judge(examples: Examples, learner: Learner, voted: bool) -> tuple[Float64Array, float]:
    """Reciprocal ranks of all judging questions, and the mean negative log-likelihood."""
    ranks, loss = [], 0.0
    for teach, test in stretches(examples):
        score = learner(examples.choices.part(teach if voted else teach & examples.accepted))
        held = examples.choices.part(test)
        values = score(held.x)
        ranks.append(reciprocal(values, held))
        loss += float(choice_losses(values, held).sum())
    found = np.concatenate(ranks)
    return found, loss / len(found)


def reciprocal(values: Float64Array, choices: Choices) -> Float64Array:
    """1 / rank of the right person of every question."""
    truth = values[choices.chosen][choices.group]
    counts = np.exp(choices.offset)
    n = choices.n_groups
    above = np.bincount(choices.group, counts * (values > truth), minlength=n)
    equal = np.bincount(choices.group, counts * (values == truth), minlength=n)
    return np.asarray(1.0 / (above + (equal + 1) / 2))


if __name__ == "__main__":
    main()
