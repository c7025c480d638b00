"""Choose test questions, the candidates for each, and what methods may know, in five ways.

``paper-existing``, ``paper-new``
    The paper's cold questions. Existing askers: those with at least two questions that have an
    accepted answer and answers by at least five people; the last such question is the test
    question. New askers: their only question, with an accepted answer and answers of at least five
    people. Candidates are the people who answered. Everything else on the site, earlier or later,
    may be known: time plays no part in this protocol.
``time-own``, ``time-all``
    Methods learn from what was known before a date; the test questions are all later ones with an
    accepted answer. Each is ranked with what was known just before it was asked. Candidates are
    the people who answered (questions with a single answerer test nothing and are excluded), or all
    active users: everybody who answered before, within `active_days` if given. Nobody is a
    candidate for their own question, and questions whose asker accepted their own answer are left
    out. A question whose accepted answerer never answered before stays in the test under
    ``time-all``, and every method fails on it.
``time-newcomers``
    The same split, for routing to newcomers: the test questions whose accepted answerer had given
    at most three answers. Candidates are everybody who had asked or answered before and given no
    more than three answers; no method can find a person who had never posted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph.util.checks import unknown_name
from atpgraph_qa.data.site import DAY_MS, MOST_DAYS
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import FEW_ANSWERS, Pool, Query, candidates
from atpgraph_qa.timeline.records import Records

PROTOCOLS = ("paper-existing", "paper-new", "time-own", "time-all", "time-newcomers")
FAMILIES = {"paper": PROTOCOLS[:2], "time": PROTOCOLS[2:]}
LEAST_ANSWERERS = 5


@dataclass(frozen=True)
class Split:
    """When training ends and how the test proceeds, for the protocols over time."""

    test_share: float = 0.2  # of the questions, the last ones, that are asked after the split
    split_ms: int | None = None  # the moment of the split itself
    refit_days: float = 30.0  # methods are brought up to date after so many days; 0 for never
    active_days: float | None = None  # candidates of time-all answered in so many; by default ever

    def __post_init__(self) -> None:
        if not 0 < self.test_share < 1:
            raise InputError(
                f"The share of test questions must be between 0 and 1, not {self.test_share}."
            )
        active = MOST_DAYS if self.active_days is None else self.active_days
        if not 0 <= self.refit_days <= MOST_DAYS or not 0 < active <= MOST_DAYS:
            raise InputError(
                f"refit_days and active_days must be positive numbers up to a million, not "
                f"{self.refit_days} and {self.active_days}."
            )

    def moment(self, asked_ms: Int64Array) -> int:
        """Return the moment of the split, given the times of all questions."""
        if self.split_ms is not None:
            return self.split_ms
        n = len(asked_ms)
        return int(asked_ms[min(int(n * (1 - self.test_share)), n - 1)]) if n else 0


@dataclass(frozen=True, eq=False)
class Case:
    """One test question; people are ids."""

    query: Query  # the question, put to what is known when it is ranked
    candidates: Int64Array  # the people to rank
    truth: int  # the accepted answerer
    answerers: Int64Array  # everybody who answered

    @property
    def place(self) -> int:
        """Position of the truth among the candidates, −1 if it is not there."""
        places = np.flatnonzero(self.candidates == self.truth)
        return int(places[0]) if len(places) else -1


@dataclass(frozen=True, eq=False)
class Protocol:
    """A protocol on a site."""

    name: str  # one of PROTOCOLS
    pool: Pool  # who is ranked
    training: History  # what methods may learn from
    test: Int64Array  # positions of the test questions, by date
    records: Records  # the site
    split: Split

    @property
    def is_timed(self) -> bool:
        """Whether every question is ranked with what was known when it was asked."""
        return self.name.startswith("time")

    def periods(self) -> Iterator[tuple[History, Iterator[Case]]]:
        """Yield the parts of the test by time: what is known at the start, and the questions."""
        for known, queries in periods([self]):
            found = (self.case(query) for query in queries)
            yield known, (case for case in found if case is not None)

    def case(self, query: Query) -> Case | None:
        """Return the case of a question; None if it is not a test question of this protocol."""
        if not self._is_test[query.position]:
            return None
        right = int(self._truth[query.position])
        answerers = self.records.ids(History(self.records).answerers(query.position))
        if self.is_timed:
            answerers = answerers[answerers != query.question.asker]
        people = answerers
        if self.pool != "own":
            people = candidates(query, self.pool, self.split.active_days)
        return Case(query, people, right, answerers)

    @cached_property
    def _is_test(self) -> BoolArray:
        result = np.zeros(len(self.records.questions), dtype=np.bool_)
        result[self.test] = True
        return result

    @cached_property
    def _truth(self) -> Int64Array:
        return best_answerer(self.records)


def periods(protocols: Sequence[Protocol]) -> Iterator[tuple[History, Iterator[Query]]]:
    """Yield the parts of the test of several protocols that share the training period."""
    first = protocols[0]
    records, test = first.records, np.unique(np.concatenate([each.test for each in protocols]))
    if not first.is_timed:
        known = first.training
        yield known, (Query.again(records, position, known) for position in test.tolist())
        return
    times = records.questions.asked_ms[test]
    start = first.training.now
    step = round(first.split.refit_days * DAY_MS)
    step = step or int(times[-1] - start + 1 if len(times) else 1)
    number = (times - start) // step
    for period in np.unique(number).tolist():
        known = History(records, start + period * step)
        inside = test[number == period].tolist()
        yield known, (Query.again(records, position) for position in inside)


def best_answerer(records: Records) -> Int64Array:
    """Return the id of the accepted answerer of every question, −1 for none."""
    best = History(records).best_answer
    return records.ids(np.append(records.answers.owner, -1)[best])


def protocol_names(names: Iterable[str] | None = None) -> list[str]:
    """Return protocols by name, or those of the families ``paper`` and ``time``; by default all."""
    chosen: list[str] = []
    for name in PROTOCOLS if names is None else names:
        if name not in FAMILIES and name not in PROTOCOLS:
            raise unknown_name("protocol", name, (*FAMILIES, *PROTOCOLS))
        chosen += FAMILIES.get(name, (name,))
    return list(dict.fromkeys(chosen))


def make_protocol(records: Records, name: str, split: Split | None = None) -> Protocol:
    """Choose the test questions of a protocol, one of :data:`PROTOCOLS`."""
    if name not in PROTOCOLS:
        raise unknown_name("protocol", name, PROTOCOLS)
    split = split or Split()
    if name in FAMILIES["paper"]:
        # Both sets of test questions are hidden, as neither may teach the other.
        existing, new = (_paper_questions(records, existing=kind) for kind in (True, False))
        hidden = records.without(np.concatenate([existing, new]))
        test = existing if name == "paper-existing" else new
        return Protocol(name, "own", History(hidden), test, records, split)
    asked = records.questions.asked_ms
    training = History(records, split.moment(asked))
    best = best_answerer(records)
    test = np.flatnonzero((asked >= training.now) & (best >= 0))
    test = test[best[test] != records.ids(records.questions.asker[test])]
    if name == "time-all":
        return Protocol(name, "all", training, test, records, split)
    if name == "time-newcomers":
        given = [
            len(History(records, int(asked[q])).answers_by(int(records.codes(best[q]))))
            for q in test.tolist()
        ]
        few = test[np.array(given, dtype=np.int64) <= FEW_ANSWERS]
        return Protocol(name, "new", training, few, records, split)
    people = History(records).answerer_counts(but_asker=True)
    return Protocol(name, "own", training, test[people[test] >= 2], records, split)


def _paper_questions(records: Records, existing: bool) -> Int64Array:
    asker, n_users = records.questions.asker, len(records.users)
    enough = History(records).answerer_counts() >= LEAST_ANSWERERS
    candidates = np.flatnonzero((best_answerer(records) >= 0) & enough & (asker >= 0))
    asked = np.bincount(asker[asker >= 0], minlength=n_users)
    asker = asker[candidates]
    if not existing:
        return np.asarray(candidates[asked[asker] == 1])
    qualified = np.bincount(asker, minlength=n_users)
    last = np.full(n_users, -1, dtype=np.int64)
    last[asker] = candidates  # by date: the last one stays
    return np.sort(last[(qualified >= 2) & (asked >= 2)])
