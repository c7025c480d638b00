"""Elo over votes and empirical-Bayes rates as features: do they help on the training period?

    python benchmarks/search_standing.py SITE [SITE …] [--text static] [--output FILE]

Past questions of the training period teach and judge as in ``search_router.py`` (four stretches of
time, no test question is seen), against people sampled as the router samples them. Elo: two answers
to a question are a match that the one with more votes wins, thirty days after the question, with
what votes were known then. Empirical Bayes: how much the acceptance rate and the mean votes are
drawn to the site's mean is estimated from how far people really differ (moments), where the
router draws by a fixed five and three answers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from _common import Report, arguments, markdown
from search_router import judge, linear

from atpgraph._typing import Float64Array
from atpgraph.cqa import Site
from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.evaluation.protocols import make_protocol
from atpgraph.cqa.routing.features.activity import week_start
from atpgraph.cqa.routing.features.names import NAMES
from atpgraph.cqa.routing.model.training import Examples, TrainingPlan, collect
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.query import Query
from atpgraph.cqa.routing.timeline.records import Records

SETTLED = 30 * DAY_MS
STEP, SCALE = 24.0, 400.0
PENALTY = 100.0


class Elo:
    """Ratings that go on question by question, each thirty days after it was asked."""

    def __init__(self, history: History) -> None:
        self.history, self.rating, self._next = history, np.zeros(history.n_users), 0
        votes = history.records.votes
        self._order = np.argsort(votes.answer, kind="stable")
        self._start = np.searchsorted(
            votes.answer[self._order], np.arange(len(history.records.answers) + 1)
        )

    def until(self, moment_ms: int) -> Float64Array:
        """Ratings of all users at a moment; moments do not go back."""
        asked = self.history.records.questions.asked_ms
        while self._next < len(asked) and asked[self._next] + SETTLED < moment_ms:
            self._play(self._next, int(asked[self._next]) + SETTLED)
            self._next += 1
        return self.rating

    def _play(self, question: int, known_ms: int) -> None:
        records, votes = self.history.records, self.history.records.votes
        indptr, by_question = records.by_question
        answers = by_question[indptr[question] : indptr[question + 1]]
        keep = (records.answers.owner[answers] >= 0) & (
            records.answers.given_ms[answers] < known_ms
        )
        answers = answers[keep]
        if len(answers) < 2:
            return
        owner, score = records.answers.owner[answers], np.zeros(len(answers))
        for place, answer in enumerate(answers.tolist()):
            mine = self._order[self._start[answer] : self._start[answer + 1]]
            score[place] = votes.value[mine][votes.known_ms[mine] <= known_ms].sum()
        won = 0.5 * (1.0 + np.sign(score[:, None] - score))
        away = self.rating[owner][:, None] - self.rating[owner]
        expected = 1.0 / (1.0 + 10.0 ** (-away / SCALE))
        gain = (won - expected).sum(axis=1) * STEP / (len(answers) - 1)
        np.add.at(self.rating, owner, gain)


def bayes_rates(history: History) -> tuple[Float64Array, Float64Array]:
    """Acceptance rate (log-odds) and mean votes, drawn to the mean as much as moments say."""
    decided = history.per_user((history.best_answer >= 0)[history.answers.question] * 1.0)
    won, given = history.n_won, history.n_given
    some = decided >= 2
    usual = won.sum() / max(decided.sum(), 1.0)
    rate = np.divide(won, decided, out=np.full(len(won), usual), where=decided > 0)
    # Var(rate) = between + usual (1 − usual) / n: what is left over is how people differ.
    noise = usual * (1 - usual) / np.maximum(decided[some], 1.0)
    between = max(float(np.mean((rate[some] - usual) ** 2 - noise)) if some.any() else 0.0, 1e-4)
    strength = max(usual * (1 - usual) / between - 1.0, 0.5)
    drawn = np.clip((won + strength * usual) / (decided + strength), 1e-4, 1 - 1e-4)
    votes = history.answer_votes
    mean = float(votes.mean()) if len(votes) else 0.0
    total = history.per_user(votes)
    own = np.divide(total, given, out=np.full(len(given), mean), where=given > 0)
    known = history.answers.owner >= 0
    apart = (votes[known] - own[history.answers.owner[known]]) ** 2
    within = float(apart.mean()) if len(apart) else 1.0
    some = given >= 2
    spread = (own[some] - mean) ** 2 - within / np.maximum(given[some], 1.0)
    between = max(float(spread.mean()) if some.any() else 0.0, 1e-4)
    strength = within / between
    return np.log(drawn / (1 - drawn)), np.arcsinh((total + strength * mean) / (given + strength))


def extras(history: History, examples: Examples) -> Float64Array:
    """Elo, acceptance rate and mean votes of everybody in the examples, as of the week's start."""
    elo, rows, week, rates = Elo(history), [], -1, (np.zeros(0), np.zeros(0))
    ends = np.searchsorted(examples.choices.group, np.arange(len(examples.position) + 1))
    for place, position in enumerate(examples.position.tolist()):
        codes = examples.people[ends[place] : ends[place + 1]]
        known = week_start(Query.again(history.records, position).history)
        if known.now != week:
            week, rates = known.now, bayes_rates(known)
            rating = elo.until(known.now).copy()
        rows.append(np.stack([rating[codes] / 100.0, *(rate[codes] for rate in rates)], axis=1))
    return np.concatenate(rows)


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("sites", type=Path, nargs="+", help="folders made by 'atp cqa ingest'")
    parser.add_argument("--text", default="static")
    parser.add_argument("--questions", type=int, default=1200)
    options = parser.parse_args()
    names = " ".join(site.name for site in options.sites)
    command = f"python benchmarks/search_standing.py {names} --text {options.text}"
    report = Report("Elo and empirical-Bayes rates", command, options.output)
    for site in options.sites:
        history = make_protocol(Records.of(Site(site), options.text), "time-all").training
        examples = collect(history, "all", TrainingPlan(questions=options.questions))
        more = extras(history, examples)
        rows, base = [], np.zeros(0)
        rate, votes = (NAMES.index(name) for name in ("acceptance_rate", "mean_votes"))
        swapped = examples.choices.x.copy()
        swapped[:, [rate, votes]] = more[:, 1:]
        tables = {
            "as it is": examples.choices.x,
            "with Elo over votes": np.hstack([examples.choices.x, more[:, :1]]),
            "with empirical-Bayes rates instead": swapped,
            "with both": np.hstack([swapped, more[:, :1]]),
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
