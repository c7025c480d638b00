"""The learned ranker: a choice model over all features, with calibrated confidence.

Chosen over gradient-boosted trees: on the last part of the training period of the sites at hand
lambdarank did not do better (see docs/routing.md), needs more questions than a small site has, and
takes longer for a hundred thousand people than a router may.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from atpgraph.cqa.routing.choice import ChoiceModel, Choices, fit_choice
from atpgraph.cqa.routing.features import GROUPS, NAMES, FeatureSpace
from atpgraph.cqa.routing.history import History, Question
from atpgraph.cqa.routing.method import Floats, Int64, Method
from atpgraph.cqa.routing.protocols import Pool
from atpgraph.cqa.routing.structural import AtpSettings, Structure
from atpgraph.cqa.routing.training import TrainingPlan, collect
from atpgraph.errors import InputError

PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
_VALIDATION = 0.3  # the last part of the training questions chooses the penalty and calibrates


@dataclass(frozen=True, eq=False)
class Calibration:
    """From the probability a choice model states to how often it is right.

    Attributes
    ----------
    stated, observed : float64 arrays
        Corners of a line that never falls.
    """

    stated: Floats
    observed: Floats

    def __call__(self, probability: Floats) -> Floats:
        """Calibrated probabilities."""
        if not len(self.stated):
            return probability
        return np.asarray(np.interp(probability, self.stated, self.observed))


def calibrate(model: ChoiceModel, choices: Choices) -> Calibration:
    """Isotonic regression of being right on the stated probability, over held-out questions."""
    if choices.n_questions < 20:
        return Calibration(np.zeros(0), np.zeros(0))
    from sklearn.isotonic import IsotonicRegression

    stated = model.probabilities(choices)
    right = np.zeros(len(stated))
    right[choices.chosen] = 1.0
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(
        stated, right, sample_weight=np.exp(choices.offset)
    )
    return Calibration(
        np.asarray(fitted.X_thresholds_, dtype=np.float64),
        np.asarray(fitted.y_thresholds_, dtype=np.float64),
    )


class Router(Method):
    """Ranks people by all features together.

    Parameters
    ----------
    pool, random_state
        See :class:`~atpgraph.cqa.routing.method.Method`. One model answers "who of those who
        answered will be accepted", another "who of all will give the accepted answer".
    without : names of feature groups
        Groups to leave out, for ablations; see :data:`~atpgraph.cqa.routing.features.GROUPS`.
    plan : TrainingPlan, optional
    settings : AtpSettings, optional

    Attributes
    ----------
    model_ : ChoiceModel
    calibration_ : Calibration
    penalty_ : float
        Chosen by the likelihood of the last training questions.
    """

    name = "router"
    without: tuple[str, ...] = ()

    def __init__(
        self,
        pool: Pool = "all",
        random_state: int = 0,
        *,
        without: tuple[str, ...] | None = None,
        plan: TrainingPlan | None = None,
        settings: AtpSettings | None = None,
    ) -> None:
        super().__init__(pool, random_state)
        if without is not None:
            self.without = without
        self.plan = plan
        self.settings = settings

    def fit(self, history: History) -> Self:
        """Learn weights from past questions, then :meth:`update`."""
        examples = collect(history, self.pool, self.plan, self.settings, self.random_state)
        hidden = {name for group in self.without for name in GROUPS[group]}
        use = np.array([name not in hidden for name in NAMES])
        early, held_out = examples.split(_VALIDATION)
        trials = [(fit_choice(early, penalty, use), penalty) for penalty in PENALTIES]
        losses = [model.loss(held_out) for model, _ in trials]
        best = int(np.argmin(losses))
        self.penalty_ = trials[best][1]
        self.calibration_ = calibrate(trials[best][0], held_out)
        self.model_ = fit_choice(examples.choices, self.penalty_, use)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Take in what has become known; the weights stay."""
        self.space_ = FeatureSpace(Structure.of(history, self.settings, self.random_state))
        return self

    def score(self, question: Question, candidates: Int64) -> Floats:
        """See :meth:`Method.score`; differences are log-odds."""
        weight = self.model_.raw_weight
        total = self.space_.weighted(question, weight) - float(self.model_.mean @ weight)
        codes = question.history.codes(candidates)
        nobody = -float(self.model_.mean @ weight)
        if not len(total):
            return np.full(len(codes), nobody)
        return np.where(codes >= 0, total[np.maximum(codes, 0)], nobody)

    def confidence(self, scores: Floats) -> Floats:
        """Calibrated probability that each candidate gives the accepted answer."""
        if not len(scores):
            return scores
        lift = np.exp(scores - scores.max())
        return self.calibration_(lift / lift.sum())

    def weights(self) -> dict[str, float]:
        """Weight of every feature in units of its standard deviation."""
        return dict(zip(NAMES, self.model_.weight.tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """What was learnt."""
        return {
            "pool": self.pool,
            "random_state": self.random_state,
            "settings": asdict(self.settings or AtpSettings()),
            "features": list(NAMES),
            "penalty": self.penalty_,
            "model": self.model_.to_json(),
            "calibration": [
                self.calibration_.stated.tolist(),
                self.calibration_.observed.tolist(),
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Router:
        """Back from :meth:`to_json`; needs :meth:`update` before it ranks."""
        if tuple(data["features"]) != NAMES:
            raise InputError("The router was made by another version of atpgraph; train it again.")
        router = cls(data["pool"], data["random_state"], settings=AtpSettings(**data["settings"]))
        router.penalty_ = float(data["penalty"])
        router.model_ = ChoiceModel.from_json(data["model"])
        router.calibration_ = Calibration(*(np.array(part) for part in data["calibration"]))
        return router


class RouterWithoutAtp(Router):
    """The router without what comes from the competition graph, for comparison."""

    name = "router-without-atp"
    without = ("atp",)
