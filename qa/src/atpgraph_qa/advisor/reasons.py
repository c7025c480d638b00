"""Why somebody is suggested, in plain words that refer to records of the site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.advisor.hierarchy import Hierarchy
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.newcomer import Arrival
from atpgraph_qa.timeline.query import Query

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


def explain(query: Query, user: int, hierarchy: Hierarchy | None = None) -> list[Reason]:
    """Reasons for asking a user.

    Parameters
    ----------
    query : Query
    user : int
        User id.
    hierarchy : Hierarchy, optional
        For the level.
    """
    history = query.history
    code = int(history.codes([user])[0])
    if code < 0:
        return []
    mine = history.answers_by(code)
    reasons: list[Reason] = []
    arrival = history.records.newcomers.get(user)
    if arrival is not None:
        reasons.append(_newcomer(query, arrival))
        if not arrival.newcomer.answered:  # what stands for a declaration is no record
            return reasons
    for kind in (_similar, _tags, _accepted, _recent, _asker):
        reasons += kind(query, mine)
    level = hierarchy.level_of(user) if hierarchy is not None else 0
    if hierarchy is not None and level:
        text = f"level {level} of {hierarchy.top} in the hierarchy of the site"
        reasons.append(Reason("level", text))
    return reasons


def _newcomer(query: Query, arrival: Arrival) -> Reason:
    who = arrival.newcomer
    ids = tuple(query.history.questions.id[arrival.questions].tolist())
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


def _similar(query: Query, mine: Int64Array) -> list[Reason]:
    history, match = query.history, query.match
    asked = np.unique(history.answers.question[mine])
    asked = asked[np.argsort(-match[asked], kind="stable")]
    # Half of the best match on the site is what a reader still takes for similar.
    close = asked[match[asked] >= max(0.5 * query.best_match, 1e-9)]
    if not len(close):
        return []
    shown = close[:_MOST_SIMILAR]
    parts = []
    won = set(history.answers.question[mine[history.is_accepted[mine]]].tolist())
    for q in shown.tolist():
        title = _short(history.records.texts.titles[q])
        name = f"#{history.questions.id[q]}" + (f" “{title}”" if title else "")
        parts.append(name + (" (accepted)" if q in won else ""))
    count = f"{len(close)} similar question" + ("s" if len(close) > 1 else "")
    text = f"answered {count}: {'; '.join(parts)}"
    return [Reason("similar", text, tuple(history.questions.id[shown].tolist()))]


def _tags(query: Query, mine: Int64Array) -> list[Reason]:
    history = query.history
    asked = history.answers.question[mine]
    counted = []
    for code, questions in zip(query.tag_codes.tolist(), query.tagged, strict=True):
        place = np.minimum(np.searchsorted(questions, asked), max(len(questions) - 1, 0))
        under = mine[questions[place] == asked] if len(questions) else mine[:0]
        if len(under):
            won = int(history.is_accepted[under].sum())
            ids = history.questions.id[history.answers.question[under[-3:]]]
            plural = "s" if len(under) > 1 else ""
            text = f"{len(under)} answer{plural} tagged {history.tags.names[code]}, {won} accepted"
            counted.append((len(under), Reason("tags", text, tuple(ids.tolist()))))
    return [reason for _, reason in sorted(counted, key=lambda pair: -pair[0])][:2]


def _accepted(query: Query, mine: Int64Array) -> list[Reason]:
    history = query.history
    decided = mine[history.best_answer[history.answers.question[mine]] >= 0]
    if not len(decided):
        return []
    won = decided[history.is_accepted[decided]]
    text = f"{len(won)} of {len(decided)} answers to resolved questions were accepted"
    ids = history.questions.id[history.answers.question[won[-3:]]]
    return [Reason("accepted", text, tuple(ids.tolist()))]


def _recent(query: Query, mine: Int64Array) -> list[Reason]:
    history = query.history
    if not len(mine):
        return []
    away = (query.asked_ms - history.answers.given_ms[mine]) / DAY_MS
    lately = int(np.count_nonzero(away <= 30))
    last = int(history.questions.id[history.answers.question[mine[-1]]])
    days = max(int(away[-1]), 0)
    ago = "today" if days == 0 else f"{days} day{'s' if days > 1 else ''} ago"
    text = f"{lately} answers in the last 30 days, the latest {ago}"
    return [Reason("recent", text, (last,))]


def _asker(query: Query, mine: Int64Array) -> list[Reason]:
    history = query.history
    theirs = history.questions.asker[history.answers.question[mine]] == query.asker
    if query.asker < 0 or not theirs.any():
        return []
    ids = np.unique(history.questions.id[history.answers.question[mine[theirs]]])
    text = f"answered this asker before ({len(ids)} question{'s' if len(ids) > 1 else ''})"
    return [Reason("asker", text, tuple(ids[-3:].tolist()))]
