"""Why somebody is suggested, in plain words that refer to records of the site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.cqa.routing.history import Question
from atpgraph.cqa.routing.method import Int64
from atpgraph.cqa.routing.newcomers import OpenHistory, Placed
from atpgraph.cqa.routing.structural import Structure
from atpgraph.cqa.site import DAY_MS

_MOST_SIMILAR = 3
_TITLE = 60


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes
    ----------
    kind : str
        ``similar``, ``tags``, ``accepted``, ``recent``, ``asker``, ``level``, or ``declared``.
    text : str
        A phrase for people.
    questions : tuple of int
        Ids of the questions it refers to.
    """

    kind: str
    text: str
    questions: tuple[int, ...] = ()


def explain(question: Question, user: int, structure: Structure | None) -> list[Reason]:
    """Reasons for asking a user.

    Parameters
    ----------
    question : Question
    user : int
        User id.
    structure : Structure or None
        For the level.
    """
    history = question.history
    code = int(history.codes([user])[0])
    if code < 0:
        return []
    mine = history.answers_by(code)
    found: list[Reason] = []
    placed = history.newcomers.get(user) if isinstance(history, OpenHistory) else None
    if placed is not None:
        found.append(_newcomer(question, placed))
        if not placed.who.answered:  # what stands for a declaration is no record
            return found
    found += _similar(question, mine)
    found += _tags(question, mine)
    found += _accepted(question, mine)
    found += _recent(question, mine)
    asker = int(history.codes([question.asker])[0]) if question.asker >= 0 else -1
    helped = mine[history.asker[history.answer_question[mine]] == asker] if asker >= 0 else mine[:0]
    if len(helped):
        ids = np.unique(history.question_id[history.answer_question[helped]])
        text = f"answered this asker before ({len(ids)} question{'s' if len(ids) > 1 else ''})"
        found.append(Reason("asker", text, tuple(ids[-3:].tolist())))
    if structure is not None and structure.atp is not None and structure.user_level[code] > 0:
        level, top = int(structure.user_level[code]), int(structure.atp.levels_.max())
        found.append(Reason("level", f"level {level} of {top} in the hierarchy of the site"))
    return found


def _newcomer(question: Question, placed: Placed) -> Reason:
    history, who = question.history, placed.who
    ids = tuple(history.question_id[placed.questions].tolist())
    if who.answered:
        plural = "s" if len(ids) > 1 else ""
        return Reason("declared", f"newcomer, {len(ids)} first answer{plural}", ids)
    says = [f"knows about {', '.join(who.tags)}"] if who.tags else []
    says += [f"writes “{_short(who.text)}”"] if who.text else []
    near = ", ".join(f"#{number}" for number in ids)
    text = f"newcomer, {' and '.join(says)}; nearest questions here: {near}"
    return Reason("declared", text, ids)


def _short(title: str) -> str:
    return title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"


def _similar(question: Question, mine: Int64) -> list[Reason]:
    history, match = question.history, question.match
    asked = np.unique(history.answer_question[mine])
    asked = asked[np.argsort(-match[asked], kind="stable")]
    # Half of the best match on the site is what a reader still takes for similar.
    close = asked[match[asked] >= max(0.5 * question.best_match, 1e-9)]
    if not len(close):
        return []
    shown = close[:_MOST_SIMILAR]
    parts = []
    won = set(history.answer_question[mine[history.is_accepted[mine]]].tolist())
    for q in shown.tolist():
        title = _short(history.title(q))
        name = f"#{history.question_id[q]}" + (f" “{title}”" if title else "")
        parts.append(name + (" (accepted)" if q in won else ""))
    count = f"{len(close)} similar question" + ("s" if len(close) > 1 else "")
    text = f"answered {count}: {'; '.join(parts)}"
    return [Reason("similar", text, tuple(history.question_id[shown].tolist()))]


def _tags(question: Question, mine: Int64) -> list[Reason]:
    history = question.history
    codes = history.tag_codes(question.tags)
    if not len(codes):
        return []
    asked = history.answer_question[mine]
    found = []
    for code in codes.tolist():
        questions = history.tagged(code)
        place = np.minimum(np.searchsorted(questions, asked), max(len(questions) - 1, 0))
        under = mine[questions[place] == asked] if len(questions) else mine[:0]
        if len(under):
            won = int(history.is_accepted[under].sum())
            ids = history.question_id[history.answer_question[under[-3:]]]
            plural = "s" if len(under) > 1 else ""
            text = f"{len(under)} answer{plural} tagged {history.tag_names[code]}, {won} accepted"
            found.append((len(under), Reason("tags", text, tuple(ids.tolist()))))
    return [reason for _, reason in sorted(found, key=lambda pair: -pair[0])][:2]


def _accepted(question: Question, mine: Int64) -> list[Reason]:
    history = question.history
    decided = mine[history.best_answer[history.answer_question[mine]] >= 0]
    if not len(decided):
        return []
    won = decided[history.is_accepted[decided]]
    text = f"{len(won)} of {len(decided)} answers to resolved questions were accepted"
    ids = history.question_id[history.answer_question[won[-3:]]]
    return [Reason("accepted", text, tuple(ids.tolist()))]


def _recent(question: Question, mine: Int64) -> list[Reason]:
    history = question.history
    if not len(mine):
        return []
    away = (question.asked_ms - history.answer_ms[mine]) / DAY_MS
    lately = int(np.count_nonzero(away <= 30))
    last = int(history.question_id[history.answer_question[mine[-1]]])
    days = max(int(away[-1]), 0)
    ago = "today" if days == 0 else f"{days} day{'s' if days > 1 else ''} ago"
    text = f"{lately} answers in the last 30 days, the latest {ago}"
    return [Reason("recent", text, (last,))]
