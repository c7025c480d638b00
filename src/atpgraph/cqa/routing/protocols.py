"""Test questions, the people to rank for each, and what may be known: four ways.

``paper-existing``, ``paper-new``
    The paper's cold questions. Existing askers: those with at least two questions, of which at
    least two have an accepted answer and answers of at least five people; the last such question is
    the test question. New askers: their only question, with an accepted answer and answers of at
    least five people. Candidates are the people who answered. Everything else on the site, earlier
    or later, may be known: time plays no part in this protocol.
``time-own``, ``time-all``
    Methods learn from what was known before a date; the test questions are all later ones with an
    accepted answer. Each is ranked with what was known just before it was asked. Candidates are
    the people who answered (questions with one of them only are no test and are left out), or all
    active users: everybody who answered before, within `active_days` if given. Nobody is a
    candidate for their own question, and questions whose asker accepted their own answer are left
    out. A question whose accepted answerer never answered before stays in the test under
    ``time-all``, and every method fails on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from atpgraph.cqa.routing.history import History, Question, Records
from atpgraph.cqa.site import DAY_MS, Int64
from atpgraph.errors import InputError

Pool = Literal["own", "all"]
PROTOCOLS = ("paper-existing", "paper-new", "time-own", "time-all")
FAMILIES = {"paper": PROTOCOLS[:2], "time": PROTOCOLS[2:]}
LEAST_ANSWERERS = 5


@dataclass(frozen=True, eq=False)
class Case:
    """One test question.

    Attributes
    ----------
    question : Question
        With what is known when it is ranked.
    candidates : int64 array
        Ids of the people to rank.
    truth : int
        Id of the accepted answerer.
    """

    question: Question
    candidates: Int64
    truth: int

    @property
    def place(self) -> int:
        """Position of the truth among the candidates, −1 if it is not there."""
        found = np.flatnonzero(self.candidates == self.truth)
        return int(found[0]) if len(found) else -1


@dataclass(frozen=True, eq=False)
class Protocol:
    """A protocol on a site.

    Attributes
    ----------
    name : str
        One of :data:`PROTOCOLS`.
    pool : {"own", "all"}
        Who is ranked.
    training : History
        What methods may learn from.
    test : int64 array
        Positions of the test questions, by date.
    refit_days : float
        Methods are brought up to date after so many days of the test period; 0 for never.
    active_days : float or None
        Who is active, for ``time-all``.
    """

    name: str
    pool: Pool
    training: History
    test: Int64
    records: Records
    refit_days: float = 30.0
    active_days: float | None = None

    def periods(self) -> Iterator[tuple[History, list[Case]]]:
        """Parts of the test in order of time: what is known at the start, and the questions."""
        if self.name.startswith("paper"):
            yield self.training, [self._case(q, self.training) for q in self.test.tolist()]
            return
        times = self.records.questions.created_ms[self.test]
        start = self.training.now
        step = round(self.refit_days * DAY_MS) or int(times[-1] - start + 1 if len(times) else 1)
        for number in np.unique((times - start) // step).tolist():
            chosen = self.test[(times - start) // step == number]
            known = self.records.at(start + number * step)
            yield known, [self._case(q, None) for q in chosen.tolist()]

    def _case(self, position: int, known: History | None) -> Case:
        question = self.records.question(position, known)
        truth = int(best_answerer(self.records)[position])
        if self.pool == "own":
            people = answerers_of(self.records, position)
            if self.name.startswith("time"):
                people = people[people != question.asker]
            return Case(question, people, truth)
        return Case(question, active_users(question, self.active_days), truth)


def active_users(question: Question, active_days: float | None = None) -> Int64:
    """Ids of everybody who answered before the question (within so many days), but the asker."""
    history = question.history
    last = history.last_answer_ms
    since = 0 if active_days is None else history.last_ms - round(active_days * DAY_MS)
    people = history.users[np.flatnonzero(last > max(since, 0))]
    return np.asarray(people[people != question.asker])


def answerers_of(records: Records, position: int) -> Int64:
    """Ids of the people who answered a question of the site."""
    indptr, answers = records.by_question
    owners = records.answers.owner[answers[indptr[position] : indptr[position + 1]]]
    return np.unique(owners[owners >= 0])


def best_answerer(records: Records) -> Int64:
    """Id of the accepted answerer of every question, −1 for none."""
    accepted = records.questions.accepted
    if not len(records.answers):
        return np.full(len(accepted), -1, dtype=np.int64)
    return np.where(accepted >= 0, records.answers.owner[np.maximum(accepted, 0)], -1)


def make_protocol(
    records: Records,
    name: str,
    *,
    test_share: float = 0.2,
    split_ms: int | None = None,
    refit_days: float = 30.0,
    active_days: float | None = None,
) -> Protocol:
    """Choose the test questions of a protocol.

    Parameters
    ----------
    records : Records
        The site.
    name : str
        One of :data:`PROTOCOLS`.
    test_share : float
        Share of the questions, the last ones, that are asked after the split.
    split_ms : int, optional
        The split itself.
    refit_days, active_days
        See :class:`Protocol`.
    """
    if name not in PROTOCOLS:
        raise InputError(f"There is no protocol {name!r}; there are {', '.join(PROTOCOLS)}.")
    if not 0 < test_share < 1:
        raise InputError(f"The share of test questions is between 0 and 1, not {test_share}.")
    if refit_days < 0 or (active_days is not None and active_days <= 0):
        raise InputError("Numbers of days are positive.")
    if name.startswith("paper"):
        test = _paper_questions(records, existing=name == "paper-existing")
        # Both sets of test questions are hidden, as neither may teach the other.
        if "paper" not in records.cache:
            both = np.concatenate([_paper_questions(records, existing=e) for e in (True, False)])
            records.cache["paper"] = records.without(both)
        return Protocol(name, "own", records.cache["paper"].at(), test, records)
    questions = records.questions
    if split_ms is None:
        n = len(questions)
        split_ms = int(questions.created_ms[min(int(n * (1 - test_share)), n - 1)]) if n else 0
    best = best_answerer(records)
    test = np.flatnonzero((questions.created_ms >= split_ms) & (best >= 0))
    test = test[best[test] != questions.asker[test]]
    if name == "time-own":
        people = _n_answerers(records, without_asker=True)
        test = test[people[test] >= 2]
        return Protocol(name, "own", records.at(split_ms), test, records, refit_days)
    return Protocol(name, "all", records.at(split_ms), test, records, refit_days, active_days)


def _paper_questions(records: Records, existing: bool) -> Int64:
    questions = records.questions
    enough = _n_answerers(records) >= LEAST_ANSWERERS
    good = (best_answerer(records) >= 0) & enough & (records.asker >= 0)
    asked = np.bincount(records.asker[records.asker >= 0], minlength=len(records.users))
    candidates = np.flatnonzero(good)
    asker = records.asker[candidates]
    if not existing:
        return np.asarray(candidates[asked[asker] == 1])
    qualified = np.bincount(asker, minlength=len(records.users))
    last = np.full(len(records.users), -1, dtype=np.int64)
    last[asker] = candidates  # by date: the last one stays
    chosen = last[(qualified >= 2) & (asked >= 2)]
    return np.sort(chosen)[: len(questions)]


def _n_answerers(records: Records, without_asker: bool = False) -> Int64:
    answers = records.answers
    known = records.owner >= 0
    if without_asker:
        known &= records.owner != records.asker[answers.question]
    width = len(records.users) + 1
    pairs = np.unique(answers.question[known] * width + records.owner[known])
    return np.bincount(pairs // width, minlength=len(records.questions)).astype(np.int64)
