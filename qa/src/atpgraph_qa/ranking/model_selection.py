"""Choose how far the weights of a site may move away from the shipped ones, given its labels.

With few labels validation is mostly noise, and a wrong choice costs more than keeping the weights
of other sites. So below :data:`FEW` labeled questions the weights stay near the prior. Above, all
settings are compared by cross-validation, and of those that are no worse than the best by more than
a standard error of the difference, the one nearest to the prior is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from atpgraph.util.arrays import BoolArray, Float64Array
from atpgraph.util.conditional_logit import Choices, ConditionalLogit, LogitProblem, choice_losses
from atpgraph.util.threads import Workers

FEW = 150
STAY = 1000.0
PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0)
FOLDS = 5


@dataclass(frozen=True)
class Setting:
    """How strongly weights are drawn to where they start: the prior, or 0."""

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

    Those that are `judged`, with an accepted answer, judge a setting. `prior` has shipped weights,
    of features before standardization; `use` and `stiff` are those of a ``LogitProblem``.
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
