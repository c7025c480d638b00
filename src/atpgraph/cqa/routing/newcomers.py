"""Newcomers: people the trained model knows nothing of, placed by what they say or first did.

Somebody who never answered has no vectors and no record, so no ranking would ever ask them. Here a
newcomer is placed by evidence of one of two kinds:

declared
    The tags and words they say they know about. The three resolved questions nearest to them in
    text stand for it: the newcomer is ranked as if they had answered these thirty days ago,
    without being accepted.
first answers
    Questions they answered after the model was trained. These count as they are.

For the vectors the newcomer becomes a node of the competition graph by fold-in: above the
questions they can answer, below the people whose answers were accepted there.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from atpgraph.cqa.routing.dates import SETTLE_DAYS
from atpgraph.cqa.routing.features import FeatureSpace
from atpgraph.cqa.routing.history import Floats, History, Records
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.routing.structural import Structure
from atpgraph.cqa.site import DAY_MS, NOBODY, Answers, Int64, Questions
from atpgraph.errors import InputError

NEAR = 3
MOST_ANSWERS = 3


@dataclass(frozen=True)
class Newcomer:
    """Somebody new.

    Attributes
    ----------
    user : int
        User id.
    tags : tuple of str
        Tags they say they know about.
    text : str
        The same in words.
    answered : tuple of int
        Ids of the questions they have answered.
    accepted : tuple of int
        Those of them where their answer was accepted.
    """

    user: int
    tags: tuple[str, ...] = ()
    text: str = ""
    answered: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Placed:
    """A newcomer and the evidence for them.

    Attributes
    ----------
    who : Newcomer
    questions : int64 array
        Positions of the questions that stand for what they know; none if nothing matches.
    source, target : float64 arrays
        Vectors.
    level : int
        Level in the hierarchy of the site, 0 if unknown.
    """

    who: Newcomer
    questions: Int64
    source: Floats
    target: Floats
    level: int


class OpenHistory(History):
    """A history with newcomers in it.

    Attributes
    ----------
    newcomers : dict
        A :class:`Placed` by user id.
    """

    def __init__(self, records: Records, now: int, newcomers: dict[int, Placed]) -> None:
        super().__init__(records, now)
        self.newcomers = newcomers


def read_newcomers(path: str | os.PathLike[str]) -> list[Newcomer]:
    """Newcomers from a JSON file: a list of objects with the attributes of :class:`Newcomer`."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(given, list):
        raise InputError(f'{path} is a list of newcomers, like [{{"user": 9, "tags": ["a"]}}].')
    return [_newcomer(entry, f"{path}, entry {number}") for number, entry in enumerate(given, 1)]


def _newcomer(entry: object, where: str) -> Newcomer:
    if not isinstance(entry, dict) or type(entry.get("user")) is not int or entry["user"] < 0:
        raise InputError(f'{where}: a newcomer is an object with a user id, "user".')
    unknown = sorted(set(entry) - set(Newcomer.__dataclass_fields__))
    if unknown:
        raise InputError(f"{where}: there is no {unknown[0]!r}; use user, tags, text, answered.")
    found: dict[str, tuple[object, ...]] = {}
    for name, kind in (("tags", str), ("answered", int), ("accepted", int)):
        values = entry.get(name, [])
        if not isinstance(values, list) or not all(type(value) is kind for value in values):
            raise InputError(f"{where}: {name} is a list of {kind.__name__}, not {values!r}.")
        found[name] = tuple(values)
    text = entry.get("text", "")
    if not isinstance(text, str):
        raise InputError(f"{where}: text is a string, not {text!r}.")
    return Newcomer(entry["user"], text=text, **found)  # type: ignore[arg-type]


def place(structure: Structure | None, history: History, newcomer: Newcomer) -> Placed:
    """Evidence and vectors of a newcomer.

    Parameters
    ----------
    structure : Structure or None
        The embedded competition graph; without one the vectors are zero.
    history : History
        What is known.
    newcomer : Newcomer
    """
    questions = _positions(history, newcomer) if newcomer.answered else _near(history, newcomer)
    if structure is None or structure.atp is None:
        return Placed(newcomer, questions, np.zeros(1), np.zeros(1), 0)
    come, go = _edges(structure, history, newcomer, questions)
    if not len(come) and not len(go):
        nothing = np.zeros(structure.atp.source_.shape[1])
        return Placed(newcomer, questions, nothing, nothing, 0)
    source, target = structure.fold_in.vectors(np.setdiff1d(go, come), come)
    return Placed(
        newcomer,
        questions,
        source.astype(np.float64),
        target.astype(np.float64),
        structure.fold_in.level(come),
    )


def welcome(
    router: Router, history: History, newcomers: Iterable[Newcomer]
) -> tuple[Router, OpenHistory]:
    """A router and a history in which newcomers can be ranked; those given stay as they are.

    Parameters
    ----------
    router : Router
        Fitted, and up to date with `history`.
    history : History
    newcomers : iterable of Newcomer
        People with at most three answers so far. Whoever has no evidence (no tag or word of theirs
        is known on the site) is placed without questions and will not be suggested.
    """
    people = list(newcomers)
    if len({person.user for person in people}) < len(people):
        raise InputError("A newcomer is listed twice.")
    codes = history.codes([person.user for person in people])
    for person, code in zip(people, codes.tolist(), strict=True):
        if code >= 0 and history.n_given[code] > MOST_ANSWERS:
            given = int(history.n_given[code])
            raise InputError(f"User {person.user} has given {given} answers and is no newcomer.")
    structure = router.space_.structure
    placed = [place(structure, history, person) for person in people]
    records, remap = _with_answers(history, placed)
    opened = OpenHistory(records, history.now, {entry.who.user: entry for entry in placed})
    made = copy.copy(router)
    made.space_ = FeatureSpace(
        None if structure is None else _with_vectors(structure, records, remap, placed)
    )
    return made, opened


def _near(history: History, newcomer: Newcomer) -> Int64:
    """Resolved questions nearest to what is declared, the latest among equals."""
    terms = history.corpus.query(newcomer.text, "", newcomer.tags)
    match = history.corpus.bm25(terms, history.present)
    match = np.where(history.best_answer >= 0, match, 0.0)
    order = np.lexsort((-np.arange(len(match)), -match))[:NEAR]
    return np.sort(order[match[order] > 0])


def _positions(history: History, newcomer: Newcomer) -> Int64:
    wanted = np.array(sorted(set(newcomer.answered) | set(newcomer.accepted)), dtype=np.int64)
    order = np.argsort(history.question_id, kind="stable")
    found = np.searchsorted(history.question_id, wanted, sorter=order)
    found = order[np.minimum(found, len(order) - 1)] if len(order) else wanted[:0]
    if not len(order) or np.any(history.question_id[found] != wanted):
        known = history.question_id[found] if len(order) else np.full(len(wanted), NOBODY)
        number = int(wanted[known != wanted][0])
        raise InputError(
            f"User {newcomer.user} is said to have answered question {number}, which the site "
            "does not have."
        )
    return np.sort(found)


def _edges(
    structure: Structure, history: History, newcomer: Newcomer, questions: Int64
) -> tuple[Int64, Int64]:
    """Nodes below and above the newcomer in the competition graph."""
    questions = questions[questions < len(structure.question_node)]  # the graph may be older
    ids = history.question_id[questions]
    won = np.isin(ids, newcomer.accepted) if newcomer.answered else np.ones(len(ids), np.bool_)
    below = structure.question_node[questions[won]]
    if newcomer.answered:
        asker = history.asker[questions[won]]
        below = np.concatenate([below, structure.user_node[asker[asker >= 0]]])
    lost = questions[~won] if newcomer.answered else questions
    best = history.best_answer[lost]
    owner = history.answer_owner[best[best >= 0]]
    above = structure.user_node[owner[owner >= 0]]
    return np.unique(below[below >= 0]), np.unique(above[above >= 0])


def _with_answers(history: History, placed: Sequence[Placed]) -> tuple[Records, Int64]:
    """Records up to now with the answers that stand for newcomers; new codes of the old users."""
    old = history.records
    n, m = history.n_questions, history.n_answers
    people = np.array([entry.who.user for entry in placed], dtype=np.int64)
    users = np.union1d(old.users, people)
    remap = np.searchsorted(users, old.users)
    question = np.concatenate([entry.questions for entry in placed] or [np.zeros(0, np.int64)])
    owner = np.repeat(people, [len(entry.questions) for entry in placed])
    first = np.repeat([bool(entry.who.answered) for entry in placed],
                      [len(entry.questions) for entry in placed]).astype(np.bool_)  # fmt: skip
    now = history.last_ms - 1
    asked = old.questions.created_ms[question]
    moment = np.where(first, now, np.maximum(now - round(SETTLE_DAYS * DAY_MS), asked))
    created = np.concatenate([old.answers.created_ms[:m], moment])
    order = np.argsort(created, kind="stable")
    spot = np.empty(len(order), dtype=np.int64)
    spot[order] = np.arange(len(order))

    def joined(mine: Int64, more: Int64) -> Int64:
        return np.concatenate([mine[:m], more])[order]

    extra = np.full(len(question), NOBODY, dtype=np.int64)
    code = np.where(old.owner[:m] >= 0, remap[np.maximum(old.owner[:m], 0)], NOBODY)
    taken = old.accepted_answer[: int(np.searchsorted(old.accepted_ms, history.now, "right"))]
    keep = taken < m
    voted = old.vote_answer[: int(np.searchsorted(old.vote_ms, history.now, "right"))]
    kept = voted < m
    won = _won(history, placed)
    best = old.questions.accepted[:n]
    best = np.where((best >= 0) & (best < m), spot[np.clip(best, 0, max(m - 1, 0))], NOBODY)
    mine = old.questions
    records = replace(
        old,
        users=users,
        questions=Questions(mine.id[:n], mine.created_ms[:n], mine.asker[:n], best,
                            mine.score[:n], mine.views[:n]),
        answers=Answers(
            joined(old.answers.id, extra),
            created[order],
            joined(old.answers.question, question),
            joined(old.answers.owner, owner),
            joined(old.answers.score, np.zeros(len(question), dtype=np.int64)),
        ),
        asker=np.where(old.asker[:n] >= 0, remap[np.maximum(old.asker[:n], 0)], NOBODY),
        owner=np.concatenate([code, np.searchsorted(users, owner)])[order],
        accepted_ms=np.concatenate(
            [old.accepted_ms[: len(taken)][keep], np.full(len(won), now, dtype=np.int64)]
        ),
        accepted_answer=spot[np.concatenate([taken[keep], m + won])],
        vote_ms=old.vote_ms[: len(voted)][kept],
        vote_answer=spot[voted[kept]],
        vote_value=old.vote_value[: len(voted)][kept],
        tag_indptr=old.tag_indptr[: n + 1],
        tag_codes=old.tag_codes[: int(old.tag_indptr[n])],
        present=old.present[:n],
        cache={},
    )  # fmt: skip
    return records, remap


def _won(history: History, placed: Sequence[Placed]) -> Int64:
    """Which of the newcomers' answers are accepted, where nobody else's was."""
    found, start = [], 0
    for entry in placed:
        ids = history.question_id[entry.questions]
        mine = np.isin(ids, entry.who.accepted) & (history.best_answer[entry.questions] < 0)
        found.append(start + np.flatnonzero(mine))
        start += len(ids)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _with_vectors(
    structure: Structure, records: Records, remap: Int64, placed: Sequence[Placed]
) -> Structure:
    made = copy.copy(structure)
    made.user_node = np.full(len(records.users), NOBODY, dtype=np.int64)
    made.user_node[remap] = structure.user_node
    made.best_of = {
        question: int(remap[code]) if code >= 0 else code
        for question, code in structure.best_of.items()
    }
    target = np.zeros((len(records.users), structure.user_target.shape[1]))
    target[remap] = structure.user_target
    level = np.zeros(len(records.users))
    level[remap] = structure.user_level
    for entry in placed:
        if entry.level:
            code = int(np.searchsorted(records.users, entry.who.user))
            target[code], level[code] = entry.target, min(entry.level, structure.top_level)
    for name in (
        "user_target",
        "user_level",
        "user_strength",
        "_user_level",
        "_log_level",
        "_with_target",
    ):
        made.__dict__.pop(name, None)
    made.__dict__.update(user_target=target, user_level=level)
    return made
