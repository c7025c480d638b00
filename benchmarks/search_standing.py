"""Elo over votes and empirical-Bayes rates as features: do they help on the training period?

    python benchmarks/search_standing.py SITE [SITE …] [--text static] [--output FILE]

Past questions of the training period teach and judge as in ``search_router.py`` (four stretches of
time, no test question is seen), against people sampled as the router samples them. Both are in the
router since; here they are taken out again: its ratings, and how much the acceptance rate and the
mean votes are drawn to the site's mean, which was by a fixed five and three answers before.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from _common import Report, arguments, markdown
from search_router import judge, linear

from atpgraph.util.arrays import Float64Array
from atpgraph_qa import Site
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.names import NAMES
from atpgraph_qa.ranking.training import Examples, TrainingPlan, collect
from atpgraph_qa.ranking.weekly import weekly_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records

PENALTY = 100.0
ELO, RATES = NAMES.index("elo"), [NAMES.index(name) for name in ("acceptance_rate", "mean_votes")]


def fixed_rates(history: History) -> Float64Array:
    """Acceptance rate (log-odds) and mean votes, drawn to the mean by five and three answers."""
    decided = history.per_user((history.best_answer >= 0)[history.answers.question] * 1.0)
    won, given, votes = history.n_won, history.n_given, history.answer_votes
    usual = won.sum() / max(decided.sum(), 1.0)
    drawn = np.clip((won + 5 * usual) / (decided + 5), 1e-4, 1 - 1e-4)
    mean = float(votes.mean()) if len(votes) else 0.0
    total = history.per_user(votes)
    return np.stack([np.log(drawn / (1 - drawn)), np.arcsinh((total + 3 * mean) / (given + 3))])


def before(history: History, examples: Examples) -> Float64Array:
    """The features of the examples with rates as they were, as of the week's start."""
    x, week, rates = examples.choices.x.copy(), -1, np.zeros((2, 0))
    ends = np.searchsorted(examples.choices.group, np.arange(len(examples.position) + 1))
    for place, position in enumerate(examples.position.tolist()):
        part = slice(ends[place], ends[place + 1])
        known = weekly_stats(Query.again(history.records, position).history).known
        if known.now != week:
            week, rates = known.now, fixed_rates(known)
        x[part, RATES] = rates[:, examples.people[part]].T
    return x


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("sites", type=Path, nargs="+", help="folders made by 'atp qa ingest'")
    parser.add_argument("--text", default="static")
    parser.add_argument("--questions", type=int, default=1200)
    options = parser.parse_args()
    names = " ".join(site.name for site in options.sites)
    command = f"python benchmarks/search_standing.py {names} --text {options.text}"
    report = Report("Elo and empirical-Bayes rates", command, options.output)
    for site in options.sites:
        history = make_protocol(Records.of(Site(site), options.text), "time-all").training
        examples = collect(history, "all", TrainingPlan(questions=options.questions))
        rows, base = [], np.zeros(0)
        now, then = examples.choices.x, before(history, examples)
        tables = {
            "without both": np.delete(then, ELO, axis=1),
            "with Elo over votes": then,
            "with empirical-Bayes rates": np.delete(now, ELO, axis=1),
            "with both": now,
        }
        for name, x in tables.items():
            changed = replace(examples, choices=replace(examples.choices, x=x))
            found, loss = judge(changed, linear(PENALTY), True)
            base = base if len(base) else found
            away = found - base
            error = away.std() / np.sqrt(len(away))
            rows.append(
                (name, f"{found.mean():.4f}", f"{loss:.4f}", f"{away.mean():+.4f} ± {error:.4f}")
            )
        report.add(f"## {site.name}: {len(base)} questions judge")
        report.add(markdown(("features", "MRR", "loss", "difference and standard error"), rows))
    report.save()


if __name__ == "__main__":
    main()
