"""When posts, acceptances and votes became known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atpgraph.cqa.site import DAY_MS, NOBODY, Answers, Int64, Questions, Site
from atpgraph.cqa.store import read_table

ACCEPTED, UP, DOWN = 1, 2, 3  # VoteTypeId
SETTLE_DAYS = 30.0
FOREVER = np.iinfo(np.int64).max


def in_order(questions: Questions, answers: Answers) -> tuple[Questions, Answers]:
    """Answers by the moment from which they can be seen: not before their question.

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

    answer: Int64
    kind: Int64
    known_ms: Int64


def dated_votes(site: Site, answers: Answers) -> DatedVotes:
    table = read_table(site.path, "votes", ["post_id", "type", "created_ms"])
    post, kind, created = (table[n].to_numpy().astype(np.int64) for n in table.column_names)
    if not len(answers) or not len(post):
        nothing = np.zeros(0, dtype=np.int64)
        return DatedVotes(nothing, nothing, nothing)
    place = np.argsort(answers.id)
    ids = answers.id[place]
    found = np.minimum(np.searchsorted(ids, post), len(ids) - 1)
    keep = ids[found] == post
    end_of_day = created[keep] // DAY_MS * DAY_MS + DAY_MS
    return DatedVotes(place[found[keep]], kind[keep], end_of_day)


def acceptances(questions: Questions, answers: Answers, votes: DatedVotes) -> tuple[Int64, Int64]:
    best = questions.accepted[questions.accepted >= 0]
    first = np.full(len(answers), FOREVER, dtype=np.int64)
    taken = votes.kind == ACCEPTED
    np.minimum.at(first, votes.answer[taken], votes.known_ms[taken])
    settled = answers.created_ms[best] + round(SETTLE_DAYS * DAY_MS)
    dated = np.maximum(first[best], answers.created_ms[best])
    known = np.where(first[best] < FOREVER, dated, settled)
    order = np.argsort(known, kind="stable")
    return known[order], best[order]


def ballots(votes: DatedVotes) -> tuple[Int64, Int64, Int64]:
    keep = (votes.kind == UP) | (votes.kind == DOWN)
    value = np.where(votes.kind[keep] == UP, 1, -1).astype(np.int64)
    known, answer = votes.known_ms[keep], votes.answer[keep]
    order = np.argsort(known, kind="stable")
    return known[order], answer[order], value[order]
