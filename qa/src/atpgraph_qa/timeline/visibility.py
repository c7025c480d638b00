"""Decide when posts, acceptances and votes became known.

Votes, acceptances among them, carry a date without a time of day, so they count from the end of
that day. Where the dump has no votes, an acceptance counts as known thirty days after its answer.
Scores of answers are not used at all: those in a dump are as of the day of the dump.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY, Answers, Questions, Site, find_ids
from atpgraph_qa.timeline.tables import AcceptanceTable, VoteTable

ACCEPTED, UP, DOWN = 1, 2, 3  # VoteTypeId
SETTLE_DAYS = 30.0
FOREVER = int(np.iinfo(np.int64).max)
WEEK_MS = 7 * DAY_MS
_MONDAY = 4 * DAY_MS  # 1970-01-05


def monday(moment_ms: int) -> int:
    """Return the start of the week of a moment."""
    return (moment_ms - _MONDAY) // WEEK_MS * WEEK_MS + _MONDAY


def end_of_day(moment_ms: Any) -> Any:
    """Return the moment from which a vote of that day is known."""
    return moment_ms // DAY_MS * DAY_MS + DAY_MS


def by_visibility(questions: Questions, answers: Answers) -> tuple[Questions, Answers]:
    """Order answers by the moment from which they can be seen: not before their question.

    A few answers are older than their question, because questions were merged.
    """
    if not len(answers):
        return questions, answers
    seen = np.maximum(answers.created_ms, questions.created_ms[answers.question])
    order = np.argsort(seen, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), NOBODY
    rest = (getattr(answers, name)[order] for name in ("question", "owner", "score"))
    made = Answers(answers.id[order], seen[order], *rest)
    return replace(questions, accepted=place[questions.accepted]), made


def dated_votes(site: Site, answers: Answers) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the votes for these answers: position of the answer, type, end of the day."""
    table = site.read("votes", ["post_id", "type", "created_ms"])
    post, kind, created = (table[n].to_numpy().astype(np.int64) for n in table.column_names)
    answer = find_ids(answers.id, post)
    keep = answer >= 0
    return answer[keep], kind[keep], end_of_day(created[keep])


def verdicts(
    questions: Questions, answers: Answers, votes: tuple[Int64Array, Int64Array, Int64Array]
) -> tuple[AcceptanceTable, VoteTable]:
    """Return acceptances, and votes up and down, by the moment from which they are known."""
    answer, kind, known = votes
    best = questions.accepted[questions.accepted >= 0]
    first = np.full(len(answers), FOREVER, dtype=np.int64)
    accepting = kind == ACCEPTED
    np.minimum.at(first, answer[accepting], known[accepting])
    settled = answers.created_ms[best] + round(SETTLE_DAYS * DAY_MS)
    dated = np.maximum(first[best], answers.created_ms[best])
    since = np.where(first[best] < FOREVER, dated, settled)
    keep = (kind == UP) | (kind == DOWN)
    value = np.where(kind[keep] == UP, 1, -1).astype(np.int64)
    return (
        AcceptanceTable(since, best).take(np.argsort(since, kind="stable")),
        VoteTable(known[keep], answer[keep], value).take(np.argsort(known[keep], kind="stable")),
    )
