"""Train the router on past questions, each with the data known when it was asked.

The weights start from those of other sites. With few labels, validation is mostly noise, and a
wrong choice costs more than keeping these weights: below :data:`FEW` labeled questions, the weights
stay near them. With more, all settings are compared by cross-validation. Of those that are no worse
than the best by more than a standard error of the difference, the one nearest to the prior is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from atpgraph.util.conditional_logit import Choices, ConditionalLogit, LogitProblem, choice_losses
from atpgraph.util.progress import stage
from atpgraph.util.random import generator
from atpgraph.util.threads import Workers
from atpgraph_qa.ranking.features import AT, Features
from atpgraph_qa.ranking.names import NAMES
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import FEW_ANSWERS, Pool, Query, candidates, largest
from atpgraph_qa.timeline.records import FOREVER

FEW = 150
STAY = 1000.0
PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0)
FOLDS = 5
_PROMISING = (
    "fading_15", "fading_60", "text_near", "text_recent", "tag_recent", "accepted",
    "meaning_month", "meaning_recent", "meaning_asked",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Examples:
    """Past questions to learn from, by date.

    `position` has the position of every question, and `accepted` is True if the right person is
    known from an accepted answer, not from votes. `missed` has the positions of questions whose
    accepted answer is by somebody who was not a candidate, `people` the user code of every row of
    `choices`.
    """

    choices: Choices
    position: Int64Array
    accepted: BoolArray
    missed: Int64Array
    people: Int64Array

    def reach(self, share: float) -> float:
        """Return how often the right person was a candidate over the last `share`, or 1."""
        resolved = self.position[self.accepted]
        if not len(resolved):
            return 1.0
        late = resolved[min(round(len(resolved) * (1 - share)), len(resolved) - 1)]
        reached = np.count_nonzero(resolved >= late)
        return reached / (reached + np.count_nonzero(self.missed >= late))


@dataclass(frozen=True)
class TrainingPlan:
    """Which past questions the router learns from."""

    questions: int = 2000  # at most this many, the latest
    folds: int = 5  # where time plays no part: parts of the questions that are hidden in turn
    # Learn also from questions without an accepted answer, where votes tell the best one. Most
    # questions of small sites are such, and held-out questions became likelier with them.
    voted: bool = True
    # People ranked against the right one when all active users are candidates: the most promising
    # by several counts, and a random sample of the others.
    hard: int = 25
    random: int = 40


def collect(
    history: History, pool: Pool, plan: TrainingPlan | None = None, random_state: int = 0
) -> Examples:
    """Collect training examples from a history.

    If the history has an end date, each question is learned from the data known when it was asked.
    If not (the paper's protocol), questions are hidden in turn, like the test questions.
    """
    plan, rng = plan or TrainingPlan(), generator(random_state)
    right = right_answers(history, pool, plan.voted)
    chosen = np.flatnonzero(right >= 0)
    chosen = chosen[max(len(chosen) - plan.questions, 0) :]
    timeless, groups = history.now == FOREVER, [chosen]
    if timeless:
        groups = np.array_split(rng.permutation(chosen), plan.folds)
    examples: list[_Example] = []
    missed: list[int] = []
    with stage("training examples", len(chosen)) as step:
        for group in groups:
            known = history.without(group) if timeless and len(group) else None
            for position in np.sort(group).tolist():
                query = Query.again(history.records, position, known)
                truth = int(history.answers.owner[right[position]])
                if pool == "own":
                    people = history.answerers(position)
                    people = people[people != history.questions.asker[position]]
                else:
                    people = np.sort(query.history.codes(candidates(query, pool)))
                step.advance()
                if truth in people:
                    place = int(np.flatnonzero(people == truth)[0])
                    examples.append(_example(query, people, place, pool, plan, rng))
                elif history.best_answer[position] >= 0:
                    missed.append(position)
    return _joined(history, examples, np.sort(np.array(missed, dtype=np.int64)))


class _Example(NamedTuple):
    """One question: people, their features and offsets, and the row of the right person."""

    position: int
    people: Int64Array
    x: Float32Array
    offset: Float64Array
    chosen: int


def _example(
    query: Query, people: Int64Array, right: int, pool: Pool, plan: TrainingPlan,
    rng: np.random.Generator,
) -> _Example:  # fmt: skip
    """Return an example with all people, or with the most promising and a sample of the others."""
    columns = Features(query).columns(people)
    if pool == "own":
        return _Example(query.position, people, columns.T, np.zeros(len(people)), right)
    promising = [columns[AT[name]] for name in _PROMISING]
    hard = [largest(column, plan.hard) for column in promising if column.any()]
    sure = np.unique(np.concatenate([*hard, [right]]))
    rest = np.setdiff1d(np.arange(len(people)), sure)
    drawn = rng.choice(rest, min(plan.random, len(rest)), replace=False)
    stands_for = len(rest) / len(drawn) if len(drawn) else 1.0
    offset = np.concatenate([np.zeros(len(sure)), np.full(len(drawn), np.log(stands_for))])
    sample = np.concatenate([sure, drawn])
    chosen = int(np.searchsorted(sure, right))
    return _Example(query.position, people[sample], columns[:, sample].T, offset, chosen)


def _joined(history: History, examples: list[_Example], missed: Int64Array) -> Examples:
    # By date, whatever the folds were: the last ones serve for validation.
    examples = sorted(examples, key=lambda example: example.position)
    position = np.array([example.position for example in examples], dtype=np.int64)
    sizes = np.array([len(example.x) for example in examples], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    choices = Choices(
        np.concatenate([np.zeros((0, len(NAMES))), *(example.x for example in examples)]),
        np.repeat(np.arange(len(examples)), sizes),
        first + np.array([example.chosen for example in examples], dtype=np.int64),
        np.concatenate([np.zeros(0), *(example.offset for example in examples)]),
    )
    people = np.concatenate([np.zeros(0, dtype=np.int64), *(each.people for each in examples)])
    return Examples(choices, position, history.best_answer[position] >= 0, missed, people)


def right_answers(history: History, pool: Pool, voted: bool) -> Int64Array:
    """Return for every question the answer whose author counts as right; −1 for none.

    It is the accepted one; with `voted`, if none is accepted, the one with at least two votes and
    more than any other. Answers by the asker do not count; if only the people who answered are
    candidates, neither do questions with such an answer. If newcomers are the candidates, only
    their answers count.
    """
    owner, question = history.answers.owner, history.answers.question
    right = history.best_answer.copy()
    usable = (owner >= 0) & (owner != history.questions.asker[question])
    if voted and len(history.records.votes):
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
        right[history.answerer_counts(but_asker=True) < 2] = -1
    if pool == "new":
        right[_answers_before(history, right) > FEW_ANSWERS] = -1
    return right


def _answers_before(history: History, answers: Int64Array) -> Int64Array:
    """Return how many answers the owner of each answer (−1 for none) had given before it."""
    by_owner = history.records.settled().by_owner
    place = np.full(len(history.records.answers) + 1, -1, dtype=np.int64)
    place[by_owner.positions] = np.arange(len(by_owner.positions))
    owner = np.append(history.records.answers.owner, -1)[answers]
    return np.asarray(np.where(owner >= 0, place[answers] - by_owner.indptr[owner], -1))


@dataclass(frozen=True)
class Setting:
    """How strongly weights are pulled toward their start: the prior, or 0."""

    penalty: float
    from_prior: bool


# From the prior outward.
SETTINGS = tuple(Setting(penalty, start) for start in (True, False) for penalty in PENALTIES)


@dataclass(frozen=True, eq=False)
class Selection:
    """A model fitted to all questions, and how it was chosen.

    `held_out` has the score of every row by a model fitted without its part of the questions.
    """

    model: ConditionalLogit
    setting: Setting
    held_out: Float64Array


def select_model(
    choices: Choices,
    judged: BoolArray,
    prior: Float64Array,
    use: BoolArray | None = None,
    stiff: Float64Array | None = None,
) -> Selection:
    """Choose a setting by cross-validation and fit it to all labeled questions, by date.

    Only `judged` questions, which have an accepted answer, are used to compare settings. `prior`
    has shipped weights, of features before standardization; `use` and `stiff` are those of a
    ``LogitProblem``.
    """
    enough = int(np.count_nonzero(judged)) >= FEW
    settings = SETTINGS if enough else (Setting(STAY, True),)
    n = choices.n_groups
    # Neighbors in time, which share what is current, are held out together.
    parts = np.array_split(np.arange(n), min(FOLDS, n)) if n > 1 else []
    scores = np.zeros((len(settings), len(choices.x)))

    with Workers() as workers:
        for part in parts:
            held = np.zeros(choices.n_groups, dtype=np.bool_)
            held[part] = True
            problem = LogitProblem(choices.part(~held), use, stiff)
            models = workers.map(partial(_fitted, problem, prior), settings)
            rows = held[choices.group]
            for place, model in enumerate(models):
                scores[place, rows] = model.score(choices.x[rows])
    chosen = 0
    if len(settings) > 1:
        losses = np.stack([choice_losses(row, choices)[judged] for row in scores])
        chosen = nearest_to_the_prior(losses)
    setting = settings[chosen]
    whole = _fitted(LogitProblem(choices, use, stiff), prior, setting)
    return Selection(whole, setting, scores[chosen])


def _fitted(problem: LogitProblem, prior: Float64Array, setting: Setting) -> ConditionalLogit:
    return problem.fit(setting.penalty, prior if setting.from_prior else None)


def nearest_to_the_prior(losses: Float64Array) -> int:
    """Return the first row that is no worse than the best by more than a standard error.

    Rows are the losses of settings, from the prior outward, on each question.

    Examples
    --------
    >>> nearest_to_the_prior(np.array([[2.0, 2.1, 1.0], [2.0, 2.0, 1.1], [3.0, 3.0, 3.0]]))
    0
    """
    best = losses[int(np.argmin(losses.mean(axis=1)))]
    gaps = losses - best
    error = gaps.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    return int(np.flatnonzero(gaps.mean(axis=1) <= error)[0])
