"""Reasons for a suggestion, in plain words that refer to records of the site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.events import Arrival
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query

_MOST_SIMILAR = 3
_TITLE = 60
_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels of people in the competition graph of a site, its cycles broken.

    They are not used for ranking: counts of answers, votes and acceptances are as informative
    (docs/evidence/routing.md).
    """

    users: Int64Array = field(default_factory=lambda: _NOBODY)  # ids, ascending
    level: Int64Array = field(default_factory=lambda: _NOBODY)  # of each, from 1
    top: int = 0  # the highest level

    @classmethod
    def of(cls, history: History, random_state: int = 0) -> Self:
        """Return the hierarchy of a history."""
        from atpgraph.cycles import break_cycles
        from atpgraph.hierarchy import levels
        from atpgraph_qa.competition import competition_graph

        competition = competition_graph(history.posts(), ega="consecutive")
        if not competition.graph.n_edges:
            return cls()
        height = levels(break_cycles(competition.graph, "h-voting", random_state=random_state).dag)
        nodes = competition.user_nodes(history.users)
        there = nodes >= 0
        users, level = history.users[there], height[nodes[there]].astype(np.int64)
        order = np.argsort(users)
        return cls(users[order], level[order], int(height.max()))

    def level_of(self, user: int) -> int:
        """Return the level of a user by id, 0 for those not in it."""
        place = int(np.searchsorted(self.users, user))
        there = place < len(self.users) and self.users[place] == user
        return int(self.level[place]) if there else 0

    def without(self, users: Iterable[int]) -> Self:
        """Return the hierarchy without some people."""
        gone = np.fromiter(users, dtype=np.int64)
        if not len(gone):
            return self
        kept = ~np.isin(self.users, gone)
        return replace(self, users=self.users[kept], level=self.level[kept])


@dataclass(frozen=True)
class Reason:
    """One reason: its kind, a phrase for people, and ids of the questions it refers to.

    Kinds are ``similar``, ``tags``, ``accepted``, ``recent``, ``asker``, ``level``, ``declared``.
    """

    kind: str
    text: str
    questions: tuple[int, ...] = ()


def explain(query: Query, user: int, hierarchy: Hierarchy | None = None) -> list[Reason]:
    """Return reasons for asking a user (by id), the level in a hierarchy among them."""
    history = query.history
    code = int(history.codes([user])[0])
    if code < 0:
        return []
    reasons: list[Reason] = []
    arrival = history.records.newcomers.get(user)
    if arrival is not None:
        reasons.append(_newcomer(query, arrival))
        if not arrival.newcomer.answered:  # what stands for a declaration is no record
            return reasons
    mine = history.answers_by(code)
    asked, won = history.answers.question[mine], history.is_accepted[mine]
    for kind in (_similar, _tags, _accepted, _recent, _asker):
        reasons += kind(query, mine, asked, won)
    level = hierarchy.level_of(user) if hierarchy is not None else 0
    if hierarchy is not None and level:
        text = f"level {level} of {hierarchy.top} in the hierarchy of the site"
        reasons.append(Reason("level", text))
    return reasons


def _newcomer(query: Query, arrival: Arrival) -> Reason:
    who = arrival.newcomer
    ids = _ids(query, arrival.questions)
    if who.answered:
        return Reason("declared", f"newcomer, {_count(len(ids), 'first answer')}", ids)
    says = [f"knows about {', '.join(who.tags)}"] if who.tags else []
    says += [f"writes “{_short(who.text)}”"] if who.text else []
    near = ", ".join(f"#{number}" for number in ids)
    text = f"newcomer, {' and '.join(says)}; nearest questions here: {near}"
    return Reason("declared", text, ids)


def _short(title: str) -> str:
    return title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"


def _similar(query: Query, mine: Int64Array, asked: Int64Array, won: BoolArray) -> list[Reason]:
    history, match = query.history, query.match
    # Half of the best match on the site is what a reader still takes for similar.
    near = np.flatnonzero(match[asked] >= max(0.5 * query.best_match, 1e-9))
    if not len(near):
        return []
    close = np.unique(asked[near])
    shown = close[np.argsort(-match[close], kind="stable")][:_MOST_SIMILAR]
    parts = []
    accepted = set(asked[near[won[near]]].tolist())
    for question in shown.tolist():
        title = _short(history.records.titles[question])
        name = f"#{history.questions.id[question]}" + (f" “{title}”" if title else "")
        parts.append(name + (" (accepted)" if question in accepted else ""))
    text = f"answered {_count(len(close), 'similar question')}: {'; '.join(parts)}"
    return [Reason("similar", text, _ids(query, shown))]


def _tags(query: Query, mine: Int64Array, asked: Int64Array, won: BoolArray) -> list[Reason]:
    tags, counted = query.history.tags, []
    for code in query.tag_codes.tolist():
        has = np.zeros(len(asked), dtype=np.bool_)
        find_tag(asked, tags.indptr, tags.tags, code, has)
        under = asked[has]
        if len(under):
            text = f"{_count(len(under), 'answer')} tagged {tags.names[code]}"
            text += f", {won[has].sum()} accepted"
            counted.append((len(under), Reason("tags", text, _ids(query, under[-3:]))))
    return [reason for _, reason in sorted(counted, key=lambda pair: -pair[0])][:2]


def _accepted(query: Query, mine: Int64Array, asked: Int64Array, won: BoolArray) -> list[Reason]:
    decided = int(np.count_nonzero(query.history.best_answer[asked] >= 0))
    if not decided:
        return []
    best = asked[won]
    text = f"{len(best)} of {decided} answers to resolved questions were accepted"
    return [Reason("accepted", text, _ids(query, best[-3:]))]


def _recent(query: Query, mine: Int64Array, asked: Int64Array, won: BoolArray) -> list[Reason]:
    if not len(mine):
        return []
    given = query.history.answers.given_ms[mine]
    lately = int(np.count_nonzero(query.asked_ms - given <= 30 * DAY_MS))
    days = max(int((query.asked_ms - int(given[-1])) / DAY_MS), 0)
    ago = "today" if days == 0 else f"{_count(days, 'day')} ago"
    text = f"{_count(lately, 'answer')} in the last 30 days, the latest {ago}"
    return [Reason("recent", text, _ids(query, asked[-1:]))]


def _asker(query: Query, mine: Int64Array, asked: Int64Array, won: BoolArray) -> list[Reason]:
    if query.asker < 0:
        return []
    theirs = asked[query.history.questions.asker[asked] == query.asker]
    if not len(theirs):
        return []
    ids = sorted(set(_ids(query, theirs)))
    text = f"answered this asker before ({_count(len(ids), 'question')})"
    return [Reason("asker", text, tuple(ids[-3:]))]


def _ids(query: Query, questions: Int64Array) -> tuple[int, ...]:
    return tuple(query.history.questions.id[questions].tolist())


def _count(count: int, what: str) -> str:
    return f"{count} {what}" + ("s" if count != 1 else "")


@kernel
def find_tag(
    questions: Int64Array, indptr: Int64Array, tags: Int64Array, code: int, has: BoolArray
) -> None:
    """Mark the questions that have a tag."""
    for place in range(len(questions)):
        for use in range(indptr[questions[place]], indptr[questions[place] + 1]):
            has[place] |= tags[use] == code
