"""Who is ranked for a question."""

from __future__ import annotations

from typing import Literal

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.query import Query

Pool = Literal["own", "all", "new"]
"""The people who answered the question itself; everybody who answered anything before; or everybody
who asked or answered before and has given at most three answers."""
POOLS: tuple[Pool, ...] = ("own", "all", "new")
FEW_ANSWERS = 3


def active_users(query: Query, active_days: float | None = None) -> Int64Array:
    """Ids of everybody who answered before (in the last `active_days` if given), but the asker."""
    history = query.history
    since = 0 if active_days is None else history.last_ms - round(active_days * DAY_MS)
    return history.users[by_id(query, np.flatnonzero(history.last_answer_ms > max(since, 0)))]


def by_id(query: Query, codes: Int64Array) -> Int64Array:
    """Return some user codes in the order of ids, without the asker."""
    history = query.history
    codes = codes[codes != query.asker]
    if history.records.grown is not None:  # codes of later users are not in that order
        codes = codes[np.argsort(history.users[codes])]
    return np.asarray(codes)


def new_users(query: Query) -> Int64Array:
    """Ids of everybody who posted before and has at most three answers, but the asker."""
    history = query.history
    seen = history.n_given > 0
    seen[history.questions.asker[history.questions.asker >= 0]] = True
    people = history.users[np.flatnonzero(seen & (history.n_given <= FEW_ANSWERS))]
    return np.asarray(people[people != query.question.asker])


def candidates(query: Query, pool: Pool, active_days: float | None = None) -> Int64Array:
    """Ids of the people of a pool that does not depend on who answered."""
    return new_users(query) if pool == "new" else active_users(query, active_days)
