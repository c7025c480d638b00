"""Who is ranked for a question."""

from __future__ import annotations

from typing import Literal

import numpy as np

from atpgraph._typing import Int64Array
from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.timeline.query import Query

Pool = Literal["own", "all"]
"""The people who answered the question itself, or everybody who answered anything before."""


def active_users(query: Query, active_days: float | None = None) -> Int64Array:
    """Ids of everybody who answered before (in the last `active_days` if given), but the asker."""
    history = query.history
    since = 0 if active_days is None else history.last_ms - round(active_days * DAY_MS)
    people = history.users[np.flatnonzero(history.last_answer_ms > max(since, 0))]
    if history.records.grown is not None:  # users who came later are not in order
        people.sort(kind="stable")
    return np.asarray(people[people != query.question.asker])
