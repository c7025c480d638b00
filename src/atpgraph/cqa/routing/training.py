"""Training examples of the router: past questions, each with what was known when it was asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atpgraph._progress import stage
from atpgraph._random import generator
from atpgraph.cqa.routing.choice import Choices
from atpgraph.cqa.routing.dates import FOREVER
from atpgraph.cqa.routing.features import NAMES, FeatureSpace
from atpgraph.cqa.routing.history import Floats, History, Question
from atpgraph.cqa.routing.method import Int64
from atpgraph.cqa.routing.protocols import Pool
from atpgraph.cqa.routing.structural import AtpSettings, Structure
from atpgraph.cqa.site import DAY_MS


@dataclass(frozen=True, eq=False)
class Examples:
    """Past questions to learn from, by date.

    Attributes
    ----------
    choices : Choices
    position : int64 array
        Position of every question.
    accepted : boolean array
        True where an accepted answer says who was right, False where votes do.
    missed : int64 array
        Positions of questions with an accepted answer by somebody who was not a candidate.
    """

    choices: Choices
    position: Int64
    accepted: npt.NDArray[np.bool_]
    missed: Int64

    def reach(self, share: float) -> float:
        """How often the right person was a candidate, over the last `share`; 1 if unknown."""
        resolved = self.position[self.accepted]
        if not len(resolved):
            return 1.0
        late = resolved[min(round(len(resolved) * (1 - share)), len(resolved) - 1)]
        found = np.count_nonzero(resolved >= late)
        return found / (found + np.count_nonzero(self.missed >= late))

    def split(self, share: float) -> tuple[Choices, Choices]:
        """All questions before, and those with an accepted answer among the last `share`."""
        resolved = self.position[self.accepted]
        if not len(resolved):
            return self.choices, self.choices.part(self.accepted)
        cut = resolved[min(round(len(resolved) * (1 - share)), len(resolved) - 1)]
        late = self.position >= cut
        return self.choices.part(~late), self.choices.part(late & self.accepted)


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
    voted : bool
        Learn also from questions without an accepted answer, where votes tell the best one. Most
        questions of small sites are such; held-out questions, all with an accepted answer, became
        likelier with them.
    hard, random : int
        People ranked against the right one when all active users are candidates: the most
        promising by several counts, and a random sample of the others.
    """

    questions: int = 2000
    refit_days: float = 60.0
    folds: int = 5
    voted: bool = True
    hard: int = 25
    random: int = 40


def collect(
    history: History,
    pool: Pool,
    plan: TrainingPlan | None = None,
    settings: AtpSettings | None = None,
    random_state: int = 0,
) -> Examples:
    """Examples from a history.

    With a history that ends at a moment, every question is seen with what was known when it was
    asked. With one that does not (the paper's protocol), questions are hidden in turn, as the test
    questions are.
    """
    plan = plan or TrainingPlan()
    key = ("examples", history.now, pool, plan, settings, random_state)
    if key not in history.cache:
        history.cache[key] = _collect(history, pool, plan, settings, random_state)
    found: Examples = history.cache[key]
    return found


def _collect(
    history: History,
    pool: Pool,
    plan: TrainingPlan,
    settings: AtpSettings | None,
    random_state: int,
) -> Examples:
    right = right_answers(history, pool, plan.voted)
    chosen = np.flatnonzero(right >= 0)[-plan.questions :]
    rng = generator(random_state)
    parts: list[tuple[Floats, Floats, int]] = []
    kept: list[int] = []
    missed: list[int] = []
    timeless = history.now == FOREVER
    step_ms = round(plan.refit_days * DAY_MS)
    groups = (
        [np.sort(part) for part in np.array_split(rng.permutation(chosen), plan.folds)]
        if timeless
        else _periods(history, chosen, step_ms)
    )
    with stage("training examples", len(chosen)) as step:
        for group in groups:
            if not len(group):
                continue
            if timeless:
                known = history.without(group)
            else:
                known = history.at(_start(history, int(group[0]), step_ms))
            space = FeatureSpace(Structure.of(known, settings, random_state))
            for position in group.tolist():
                question = history.ask(position, known if timeless else None)
                truth = int(history.answer_owner[right[position]])
                found = _example(history, question, position, truth, space, pool, plan, rng)
                step.advance()
                if found is not None:
                    parts.append(found)
                    kept.append(position)
                elif history.best_answer[position] >= 0:
                    missed.append(position)
    lost = np.sort(np.array(missed, dtype=np.int64))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        nothing = Choices(np.zeros((0, len(NAMES))), empty, empty, np.zeros(0))
        return Examples(nothing, empty, np.zeros(0, dtype=np.bool_), lost)
    # By date, whatever the folds were: the last ones serve for validation.
    order = np.argsort(kept, kind="stable").tolist()
    parts = [parts[i] for i in order]
    sizes = np.array([len(x) for x, _, _ in parts])
    starts = np.cumsum(sizes) - sizes
    choices = Choices(
        np.concatenate([x for x, _, _ in parts]),
        np.repeat(np.arange(len(parts)), sizes),
        starts + np.array([place for _, _, place in parts]),
        np.concatenate([offset for _, offset, _ in parts]),
    )
    position = np.array(kept, dtype=np.int64)[order]
    return Examples(choices, position, history.best_answer[position] >= 0, lost)


def _start(history: History, position: int, step: int) -> int:
    """Start of the period of a question; periods are counted back from the end of the history."""
    back = (history.now - int(history.question_ms[position]) - 1) // step + 1
    return history.now - back * step


def _periods(history: History, chosen: Int64, step: int) -> list[Int64]:
    number = (history.now - history.question_ms[chosen] - 1) // step
    return [chosen[number == n] for n in np.unique(number)[::-1]]


def right_answers(history: History, pool: Pool, voted: bool) -> Int64:
    """The answer that teaches who was right, for every question; −1 for none.

    It is the accepted one; with `voted`, where none is, the one with at least two votes and more
    than any other. Answers by the asker do not count, nor, among the people who answered, do
    questions with one of them.
    """
    owner, question = history.answer_owner, history.answer_question
    right = history.best_answer.copy()
    usable = (owner >= 0) & (owner != history.asker[question])
    if voted and history.has_votes:
        votes = np.where(usable, history.answer_votes, -np.inf)
        order = np.lexsort((votes, question))
        order = order[usable[order]]
        last = np.append(question[order][1:] != question[order][:-1], True)[: len(order)]
        top, runner_up = order[last], np.full(history.n_questions, -np.inf)
        second = np.flatnonzero(last) - 1
        there = (second >= 0) & (question[order[second]] == question[top])
        runner_up[question[top[there]]] = votes[order[second[there]]]
        clear = (votes[top] >= 2) & (votes[top] > runner_up[question[top]])
        clear &= right[question[top]] < 0
        right[question[top[clear]]] = top[clear]
    bad = (right >= 0) & ~usable[np.maximum(right, 0)] if history.n_answers else right >= 0
    right[bad] = -1
    if pool == "own":
        right[_people(history) < 2] = -1
    return right


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
    truth: int,
    space: FeatureSpace,
    pool: Pool,
    plan: TrainingPlan,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, int] | None:
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
        for name in ("fading_15", "fading_60", "text_near", "text_recent", "tag_recent", "accepted")
    ]
    right = int(np.searchsorted(active, truth))
    sure = np.unique(np.concatenate([*hard, [right]]))
    rest = np.setdiff1d(np.arange(len(active)), sure)
    drawn = rng.choice(rest, min(plan.random, len(rest)), replace=False)
    people = np.concatenate([sure, drawn])
    stands_for = len(rest) / len(drawn) if len(drawn) else 1.0
    offset = np.concatenate([np.zeros(len(sure)), np.full(len(drawn), np.log(stands_for))])
    return x[people], offset, int(np.flatnonzero(people == right)[0])
