"""When posts, acceptances and votes became known.

Votes, acceptances among them, carry a date without a time of day, so they count from the end of
that day. Where the dump has no votes, an acceptance counts as known thirty days after its answer.
Scores of answers are not used at all: those in a dump are as of the day of the dump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY, Answers, Questions, Site
from atpgraph_qa.timeline.tables import AcceptanceTable, VoteTable

ACCEPTED, UP, DOWN = 1, 2, 3  # VoteTypeId
SETTLE_DAYS = 30.0
FOREVER = int(np.iinfo(np.int64).max)
WEEK_MS = 7 * DAY_MS
_MONDAY = 4 * DAY_MS  # 1970-01-05


def monday(moment_ms: int) -> int:
    """Return the start of the week of a moment."""
    return (moment_ms - _MONDAY) // WEEK_MS * WEEK_MS + _MONDAY


def by_visibility(questions: Questions, answers: Answers) -> tuple[Questions, Answers]:
    """Order answers by the moment from which they can be seen: not before their question.

    A few answers are older than their question, because questions were merged.
    """
    if not len(answers):
        return questions, answers
    seen = np.maximum(answers.created_ms, questions.created_ms[answers.question])
    order = np.argsort(seen, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    accepted = np.where(questions.accepted >= 0, place[np.maximum(questions.accepted, 0)], NOBODY)
    return replace(questions, accepted=accepted), Answers(
        answers.id[order],
        seen[order],
        answers.question[order],
        answers.owner[order],
        answers.score[order],
    )


@dataclass(frozen=True, eq=False)
class DatedVotes:
    """Votes for answers: position of the answer, VoteTypeId, end of the day of the vote."""

    answer: Int64Array
    kind: Int64Array
    known_ms: Int64Array


def dated_votes(site: Site, answers: Answers) -> DatedVotes:
    """Read the votes for these answers."""
    table = site.read("votes", ["post_id", "type", "created_ms"])
    post, kind, created = (table[n].to_numpy().astype(np.int64) for n in table.column_names)
    if not len(answers) or not len(post):
        nothing = np.zeros(0, dtype=np.int64)
        return DatedVotes(nothing, nothing, nothing)
    order = np.argsort(answers.id)
    ids = answers.id[order]
    place = np.minimum(np.searchsorted(ids, post), len(ids) - 1)
    keep = ids[place] == post
    end_of_day = created[keep] // DAY_MS * DAY_MS + DAY_MS
    return DatedVotes(order[place[keep]], kind[keep], end_of_day)


def acceptances(questions: Questions, answers: Answers, votes: DatedVotes) -> AcceptanceTable:
    """Accepted answers, by the moment from which their acceptance is known."""
    best = questions.accepted[questions.accepted >= 0]
    first = np.full(len(answers), FOREVER, dtype=np.int64)
    accepting = votes.kind == ACCEPTED
    np.minimum.at(first, votes.answer[accepting], votes.known_ms[accepting])
    settled = answers.created_ms[best] + round(SETTLE_DAYS * DAY_MS)
    dated = np.maximum(first[best], answers.created_ms[best])
    known = np.where(first[best] < FOREVER, dated, settled)
    return AcceptanceTable(known, best).take(np.argsort(known, kind="stable"))


def ballots(votes: DatedVotes) -> VoteTable:
    """Votes up and down, by the moment from which they are known."""
    keep = (votes.kind == UP) | (votes.kind == DOWN)
    value = np.where(votes.kind[keep] == UP, 1, -1).astype(np.int64)
    known = votes.known_ms[keep]
    table = VoteTable(known, votes.answer[keep], value)
    return table.take(np.argsort(known, kind="stable"))
