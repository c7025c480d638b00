"""The learned ranker and its probabilities.

It was chosen over gradient-boosted trees: on the last part of the training periods of our sites,
lambdarank was no better (see docs/evidence/routing.md). It also needs more questions than a small
site has, and takes too long for a hundred thousand people.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.conditional_logit import Choices, ConditionalLogit, choice_losses
from atpgraph_qa.ranking.features import Features
from atpgraph_qa.ranking.names import NAMES, STIFF, names_of
from atpgraph_qa.ranking.training import TrainingPlan, collect, select_model
from atpgraph_qa.text.choice import BM25, DENSE, STATIC
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import POOLS, Pool, Query

STIFFNESS = np.array([STIFF.get(name, 1.0) for name in NAMES])
_PULL = 5.0  # of log-sharpness toward 0, in squared units
_PULL_OUTCOMES = 4.0  # of shift and slope toward 0 and 1
_EDGE = 1e-6
_LATEST = 0.3  # of the training questions say how often the right person is a candidate


@cache
def _stored_priors() -> dict[str, dict[str, float]]:
    file = files("atpgraph_qa.ranking").joinpath("prior_weights.json")
    stored: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8"))
    return stored


def prior_weights(
    pool: Pool, without: tuple[str, ...] = (), text: str | None = None
) -> Float64Array:
    """Return the weights to start from, not standardized, in the order of ``NAMES``.

    A site with a few hundred resolved questions cannot tell by itself how much a recent answer is
    worth compared with an old one, and sites differ little in this. So these were learned from one
    large site by ``benchmarks/teach_router.py``: from words alone, or with the text model named by
    `text` (for a custom one, those of ``dense``). Groups in `without` are 0.
    """
    kind = BM25 if text is None else text if text == STATIC else DENSE
    stored, hidden = _stored_priors()[f"{pool}-{kind}"], names_of(without)
    return np.array([0.0 if name in hidden else stored.get(name, 0.0) for name in NAMES])


class Router:
    """Ranks people by all features together.

    Parameters
    ----------
    pool : {"own", "all", "new"}
        The people that it will rank. One model answers "who of those who answered will be
        accepted", another "who of all will give the accepted answer", a third the same among
        newcomers.
    random_state : int
        Seed; the same seed gives the same scores.
    without : names of feature groups
        Groups to leave out, for ablations; see :mod:`~atpgraph_qa.ranking.names`.
    plan : TrainingPlan, optional
    """

    name: ClassVar[str] = "router"
    without: tuple[str, ...] = ()
    model_: ConditionalLogit
    calibration_: Calibration
    penalty_: float
    from_prior_: bool  # whether weights start from prior_weights, or from 0; see training
    questions_: int  # how many past questions it learned from
    # 2 × questions: days since the last answer, and number of answers, of the people who were
    # right; they tell how often rules for whom to ask leave such people out.
    presence_: Float64Array

    def __init__(
        self,
        pool: Pool = "all",
        random_state: int = 0,
        *,
        without: tuple[str, ...] | None = None,
        plan: TrainingPlan | None = None,
    ) -> None:
        self.pool = pool
        self.random_state = random_state
        if without is not None:
            self.without = without
        self.plan = plan or TrainingPlan()

    def fit(self, history: History) -> Self:
        """Learn weights from past questions."""
        key = history.now, self.pool, self.plan, self.without, self.random_state
        vars(self).update(history.remember("weights", key, lambda: self._learn(history)))
        return self

    def _learn(self, history: History) -> dict[str, Any]:
        """Return the new values of the attributes."""
        examples = collect(history, self.pool, self.plan, self.random_state)
        hidden = names_of(self.without)
        use = np.array([name not in hidden for name in NAMES])
        model_of_text = history.records.text_model
        kind = None if model_of_text is None else model_of_text.name
        prior = prior_weights(self.pool, self.without, kind)
        choices, judged = examples.choices, examples.accepted
        found = select_model(choices, judged, prior, use, STIFFNESS)
        right, x = choices.part(judged), choices.x[choices.chosen[judged]]
        idle = np.exp(-x[:, NAMES.index("days_since")]) - 0.05
        reach = examples.reach(_LATEST)
        return {
            "model_": found.model,
            "calibration_": calibrate(found.held_out[judged[choices.group]], right, reach),
            "penalty_": found.setting.penalty,
            "from_prior_": found.setting.from_prior,
            "questions_": choices.n_groups,
            "presence_": np.stack([np.maximum(idle, 0), np.expm1(x[:, NAMES.index("answers")])]),
        }

    def update(self, history: History) -> Self:
        """Do nothing: the weights stay, and features are computed from a question's own history."""
        return self

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """Return one number per candidate (user id); differences are log-odds."""
        return self.score_codes(query, query.history.codes(candidates))

    def score_codes(self, query: Query, codes: Int64Array) -> Float64Array:
        """Return one number per user code (−1 for an unknown user)."""
        weight = self.model_.raw_weight
        return Features(query).scores(codes, weight) - float(self.model_.mean @ weight)

    def confidence(self, scores: Float64Array, which: Int64Array | None = None) -> Float64Array:
        """Return the calibrated probability that each candidate (or those in `which`) is right."""
        stated = self.calibration_(scores)
        return stated if which is None else stated[which]

    def recalibrated(self, stated: Float64Array, happened: BoolArray) -> Self:
        """Return a router whose confidence is corrected by outcomes; see :class:`Calibration`."""
        other = copy(self)
        other.calibration_ = self.calibration_.corrected(stated, happened)
        return other

    def to_json(self) -> dict[str, Any]:
        """Return the learned state as JSON."""
        return {
            "pool": self.pool,
            "random_state": self.random_state,
            "features": list(NAMES),
            "penalty": self.penalty_,
            "from_prior": self.from_prior_,
            "questions": self.questions_,
            "model": self.model_.to_json(),
            "calibration": asdict(self.calibration_),
            "presence": np.round(self.presence_, 2).tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the router that :meth:`to_json` described.

        Raises ValueError if the data do not describe a router with the current features.
        """
        if tuple(data["features"]) != NAMES or data["pool"] not in POOLS:
            raise ValueError("it was trained with other features")
        router = cls(data["pool"], data["random_state"])
        router.penalty_ = float(data["penalty"])
        router.from_prior_ = bool(data["from_prior"])
        router.questions_ = int(data["questions"])
        router.model_ = ConditionalLogit.from_json(data["model"])
        stated = {name: float(value) for name, value in data["calibration"].items()}
        router.calibration_ = Calibration(stated.pop("sharpness"), stated.pop("reach"), **stated)
        presence = data.get("presence", [[], []])  # since 0.3
        router.presence_ = np.array(presence, dtype=np.float64).reshape(2, -1)
        model = router.model_
        if any(len(part) != len(NAMES) for part in (model.mean, model.scale, model.weight)):
            raise ValueError("it does not have one weight for every feature")
        numbers = np.concatenate([model.mean, model.scale, model.weight])
        if not np.isfinite(numbers).all() or np.any(model.scale <= 0):
            raise ValueError("it has weights out of range")
        return router


@dataclass(frozen=True)
class Calibration:
    """Turns the scores of a conditional logit into probabilities."""

    sharpness: float = 1.0  # what scores are multiplied by
    reach: float = 1.0  # how often the right person is among the candidates at all
    shift: float = 0.0  # learned from outcomes: log-odds become shift + slope · log-odds
    slope: float = 1.0

    def __call__(self, scores: Float64Array) -> Float64Array:
        """Return a probability for every candidate."""
        if not len(scores):
            return scores
        lift = np.exp(self.sharpness * (scores - scores.max()))
        stated = self.reach * lift / lift.sum()
        if (self.shift, self.slope) != (0.0, 1.0):
            stated = expit(self.shift + self.slope * logit(np.clip(stated, _EDGE, 1 - _EDGE)))
        return np.asarray(stated)

    def corrected(self, stated: Float64Array, happened: BoolArray) -> Calibration:
        """Return the calibration with a correction for how often its statements came true.

        Platt scaling of the log-odds, shrunk toward no change when there are few outcomes.
        Corrections combine into one, so it can be called again with later outcomes.

        Examples
        --------
        Statements of 46%, of which 16% came true:

        >>> stated, happened = np.full(300, 0.46), np.arange(300) < 48
        >>> better = Calibration().corrected(stated, happened)
        >>> log_odds = better.shift + better.slope * logit(0.46)
        >>> bool(abs(expit(log_odds) - 0.16) < 0.02)
        True
        """
        if not len(stated):
            return self
        x = logit(np.clip(stated, _EDGE, 1 - _EDGE))
        sign = np.where(happened, -1.0, 1.0)

        def cost(at: Float64Array) -> tuple[float, Float64Array]:
            away = at - np.array([0.0, 1.0])
            z = sign * (at[0] + at[1] * x)
            push = sign * expit(z)
            slope = np.array([push.sum(), push @ x]) + _PULL_OUTCOMES * away
            return float(np.logaddexp(0.0, z).sum() + 0.5 * _PULL_OUTCOMES * away @ away), slope

        best = minimize(cost, np.array([0.0, 1.0]), jac=True, bounds=[(None, None), (0.0, None)])
        shift, slope = best.x.tolist()
        return replace(self, shift=shift + slope * self.shift, slope=slope * self.slope)


def calibrate(scores: Float64Array, choices: Choices, reach: float) -> Calibration:
    """Return the sharpness that makes the right people likeliest, near 1 if there are few.

    Scores, one per row of `choices`, come from a model that was not fitted to these questions.
    """
    if not choices.n_groups:
        return Calibration(1.0, reach)

    def cost(log_sharpness: float) -> float:
        sharp = float(np.exp(log_sharpness))
        return float(choice_losses(sharp * scores, choices).sum()) + _PULL * log_sharpness**2

    best = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded")
    return Calibration(float(np.exp(best.x)), reach)
