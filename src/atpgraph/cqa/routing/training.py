"""Training examples of the router: past questions, each with what was known when it was asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph._progress import stage
from atpgraph._random import generator
from atpgraph.cqa.routing.choice import Choices
from atpgraph.cqa.routing.features import NAMES, FeatureSpace
from atpgraph.cqa.routing.history import FOREVER, Floats, History, Question
from atpgraph.cqa.routing.method import Int64
from atpgraph.cqa.routing.protocols import Pool
from atpgraph.cqa.routing.structural import AtpSettings, Structure
from atpgraph.cqa.site import DAY_MS


@dataclass(frozen=True)
class TrainingPlan:
    """Which past questions the router learns from.

    Attributes
    ----------
    questions : int
        At most so many, the latest.
    refit_days : float
        The competition graph is embedded anew after so many days on the way through them.
    folds : int
        Where time plays no part: parts of the questions that are hidden in turn.
    hard, random : int
        People ranked against the right one when all active users are candidates: the most
        promising by several counts, and a random sample of the others.
    """

    questions: int = 2000
    refit_days: float = 60.0
    folds: int = 5
    hard: int = 25
    random: int = 40


def collect(
    history: History,
    pool: Pool,
    plan: TrainingPlan | None = None,
    settings: AtpSettings | None = None,
    random_state: int = 0,
) -> tuple[Choices, Int64]:
    """Examples from a history, and the position of the question of each.

    With a history that ends at a moment, every question is seen with what was known when it was
    asked. With one that does not (the paper's protocol), questions are hidden in turn, as the test
    questions are.
    """
    plan = plan or TrainingPlan()
    key = ("examples", history.now, pool, plan, settings, random_state)
    if key not in history.cache:
        history.cache[key] = _collect(history, pool, plan, settings, random_state)
    found: tuple[Choices, Int64] = history.cache[key]
    return found


def _collect(
    history: History,
    pool: Pool,
    plan: TrainingPlan,
    settings: AtpSettings | None,
    random_state: int,
) -> tuple[Choices, Int64]:
    chosen = _questions(history, pool)[-plan.questions :]
    rng = generator(random_state)
    parts: list[tuple[Floats, Floats, int]] = []
    kept: list[int] = []
    timeless = history.now == FOREVER
    groups = (
        [np.sort(part) for part in np.array_split(rng.permutation(chosen), plan.folds)]
        if timeless
        else _periods(history, chosen, round(plan.refit_days * DAY_MS))
    )
    with stage("training examples", len(chosen)) as step:
        for group in groups:
            if not len(group):
                continue
            known = (
                history.without(group)
                if timeless
                else history.at(_start(history, int(group[0]), round(plan.refit_days * DAY_MS)))
            )
            space = FeatureSpace(Structure.of(known, settings, random_state))
            for position in group.tolist():
                question = history.ask(position, known if timeless else None)
                found = _example(history, question, position, space, pool, plan, rng)
                step.advance()
                if found is not None:
                    parts.append(found)
                    kept.append(position)
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Choices(np.zeros((0, len(NAMES))), empty, empty, np.zeros(0)), empty
    # By date, whatever the folds were: the last ones serve for validation.
    order = np.argsort(kept, kind="stable").tolist()
    parts = [parts[i] for i in order]
    sizes = np.array([len(x) for x, _, _ in parts])
    starts = np.cumsum(sizes) - sizes
    return (
        Choices(
            np.concatenate([x for x, _, _ in parts]),
            np.repeat(np.arange(len(parts)), sizes),
            starts + np.array([place for _, _, place in parts]),
            np.concatenate([offset for _, offset, _ in parts]),
        ),
        np.array(kept, dtype=np.int64)[order],
    )


def _start(history: History, position: int, step: int) -> int:
    """Start of the period of a question; periods are counted back from the end of the history."""
    back = (history.now - int(history.question_ms[position]) - 1) // step + 1
    return history.now - back * step


def _periods(history: History, chosen: Int64, step: int) -> list[Int64]:
    number = (history.now - history.question_ms[chosen] - 1) // step
    return [chosen[number == n] for n in np.unique(number)[::-1]]


def _questions(history: History, pool: Pool) -> Int64:
    """Questions whose accepted answerer is known and is not the asker."""
    best = history.best_answer
    chosen = np.flatnonzero(best >= 0)
    owner = history.answer_owner[best[chosen]]
    chosen = chosen[(owner >= 0) & (owner != history.asker[chosen])]
    if pool == "own":
        chosen = chosen[_people(history)[chosen] >= 2]
    return np.asarray(chosen)


def _people(history: History) -> Int64:
    """Number of people, the asker aside, who answered each question."""
    owner, question = history.answer_owner, history.answer_question
    known = (owner >= 0) & (owner != history.asker[question])
    pairs = np.unique(question[known] * (history.n_users + 1) + owner[known])
    counted = np.bincount(pairs // (history.n_users + 1), minlength=history.n_questions)
    return counted.astype(np.int64)


def _example(
    history: History,
    question: Question,
    position: int,
    space: FeatureSpace,
    pool: Pool,
    plan: TrainingPlan,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, int] | None:
    truth = int(history.answer_owner[history.best_answer[position]])
    asker = int(history.asker[position])
    if pool == "own":
        people = history.answerers(position)
        people = people[people != asker]
        x = space.rows(question, people)
        return x, np.zeros(len(people)), int(np.flatnonzero(people == truth)[0])
    known = question.history
    active = np.flatnonzero(known.n_given > 0)
    active = active[active != asker]
    if truth not in active:
        return None
    x = space.rows(question, active)
    hard = [
        np.argsort(-x[:, NAMES.index(name)], kind="stable")[: plan.hard]
        for name in ("fading_60", "bm25_sum", "tag_sum", "accepted", "days_since")
    ]
    right = int(np.searchsorted(active, truth))
    sure = np.unique(np.concatenate([*hard, [right]]))
    rest = np.setdiff1d(np.arange(len(active)), sure)
    drawn = rng.choice(rest, min(plan.random, len(rest)), replace=False)
    people = np.concatenate([sure, drawn])
    stands_for = len(rest) / len(drawn) if len(drawn) else 1.0
    offset = np.concatenate([np.zeros(len(sure)), np.full(len(drawn), np.log(stands_for))])
    return x[people], offset, int(np.flatnonzero(people == right)[0])
