"""The learned ranker: a choice model over all features, with calibrated confidence.

Chosen over gradient-boosted trees: on the last part of the training period of the sites at hand
lambdarank did not do better (see docs/routing.md), needs more questions than a small site has, and
takes longer for a hundred thousand people than a router may.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar

from atpgraph.cqa.routing.choice import ChoiceModel, Choices, choice_loss, fit_choice
from atpgraph.cqa.routing.features import GROUPS, NAMES, FeatureSpace
from atpgraph.cqa.routing.history import History, Question
from atpgraph.cqa.routing.method import Floats, Int64, Method
from atpgraph.cqa.routing.protocols import Pool
from atpgraph.cqa.routing.structural import AtpSettings, Structure
from atpgraph.cqa.routing.taught import taught_weights
from atpgraph.cqa.routing.training import TrainingPlan, collect
from atpgraph.errors import InputError

PENALTIES = (10.0, 30.0, 100.0, 300.0, 1000.0)
_VALIDATION = 0.3  # the last part of the training questions chooses the penalty and calibrates
_CALM = 5.0


@dataclass(frozen=True)
class Calibration:
    """From the scores of a choice model to how often each candidate is right.

    Attributes
    ----------
    sharpness : float
        What scores are multiplied by before they become probabilities.
    reach : float
        How often the right person is among the candidates at all.
    """

    sharpness: float = 1.0
    reach: float = 1.0

    def __call__(self, scores: Floats) -> Floats:
        """A probability for every candidate."""
        if not len(scores):
            return scores
        lift = np.exp(self.sharpness * (scores - scores.max()))
        return np.asarray(self.reach * lift / lift.sum())


def calibrate(model: ChoiceModel, choices: Choices, reach: float) -> Calibration:
    """The sharpness under which held-out questions are likeliest, drawn to 1 where they are few."""
    if not choices.n_questions:
        return Calibration(1.0, reach)
    scores = model.score(choices.x)

    def cost(log_sharpness: float) -> float:
        sharp = float(np.exp(log_sharpness))
        return choice_loss(sharp * scores, choices)[0] + _CALM * log_sharpness**2

    found = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded")
    return Calibration(float(np.exp(found.x)), reach)


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
    questions_ : int
        Past questions that it learnt from.
    taught_ : bool
        Whether weights start from those of :mod:`~atpgraph.cqa.routing.taught`, or from 0. Both
        are chosen by the likelihood of the last training questions.
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
        taught = taught_weights(self.pool, self.without)
        trials = [
            (fit_choice(early, penalty, use, prior), penalty, prior)
            for prior in (taught, None)
            for penalty in PENALTIES
        ]
        losses = [model.loss(held_out) for model, _, _ in trials]
        model, self.penalty_, prior = trials[int(np.argmin(losses))]
        self.taught_ = prior is not None
        self.questions_ = examples.choices.n_questions
        self.calibration_ = calibrate(model, held_out, examples.reach(_VALIDATION))
        self.model_ = fit_choice(examples.choices, self.penalty_, use, prior)
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

    def confidence(self, scores: Floats, which: Int64 | None = None) -> Floats:
        """Calibrated probability that each candidate (or those in `which`) is accepted."""
        found = self.calibration_(scores)
        return found if which is None else found[which]

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
            "taught": self.taught_,
            "questions": self.questions_,
            "model": self.model_.to_json(),
            "calibration": asdict(self.calibration_),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Router:
        """Back from :meth:`to_json`; needs :meth:`update` before it ranks."""
        if tuple(data["features"]) != NAMES:
            raise InputError("The router was made by another version of atpgraph; train it again.")
        router = cls(data["pool"], data["random_state"], settings=AtpSettings(**data["settings"]))
        router.penalty_ = float(data["penalty"])
        router.taught_ = bool(data["taught"])
        router.questions_ = int(data["questions"])
        router.model_ = ChoiceModel.from_json(data["model"])
        router.calibration_ = Calibration(**data["calibration"])
        return router


class RouterWithoutAtp(Router):
    """The router without what comes from the competition graph, for comparison."""

    name = "router-without-atp"
    without = ("atp",)
