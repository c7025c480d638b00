"""Which tags have questions and nobody to answer them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.schemas import TagOut
from atpgraph_qa.timeline.history import History

DAYS = 180
_LEAST_ANSWERS = 2  # of an expert, in the tag
_FEW = 2  # experts


def tags_without_experts(history: History, now_ms: int, active_days: float) -> list[TagOut]:
    """Return tags of recent questions with fewer than two active people who answer there.

    Somebody counts who gave at least two answers under the tag, and any answer within
    `active_days`.
    """
    tags, answers, asked_ms = history.tags, history.answers, history.questions.asked_ms
    n, m = len(asked_ms), len(tags.names)
    if not n or not m:
        return []
    tagged = csr_array((np.ones(len(tags.tags)), tags.tags, tags.indptr), shape=(n, m))
    active = history.last_answer_ms > now_ms - active_days * DAY_MS
    mine = np.flatnonzero(answers.owner >= 0)
    mine = mine[active[answers.owner[mine]]]
    under = tagged[answers.question[mine]].tocoo()
    pairs, count = np.unique(
        np.stack([under.col, answers.owner[mine[under.row]]]), axis=1, return_counts=True
    )
    experts = np.bincount(pairs[0][count >= _LEAST_ANSWERS], minlength=m)
    silent = np.ones(n, dtype=np.bool_)
    silent[answers.question] = False
    recent = asked_ms > now_ms - DAYS * DAY_MS
    asked = tagged.T @ recent.astype(float)
    unanswered = tagged.T @ (recent & silent).astype(float)
    found = [
        TagOut(
            tag=tags.names[code], questions=int(asked[code]), unanswered=int(unanswered[code]),
            experts=int(experts[code]),
        )
        for code in np.flatnonzero((asked > 0) & (experts < _FEW)).tolist()
    ]  # fmt: skip
    return sorted(found, key=lambda entry: (-entry.unanswered, -entry.questions, entry.tag))[:100]
