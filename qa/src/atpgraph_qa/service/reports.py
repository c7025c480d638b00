"""Reports: how good the suggestions were, and tags without experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sqlalchemy import Connection, Double, case, cast, func, select, true

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.engine import BASELINE_DAYS
from atpgraph_qa.service.schemas import QualityOut, TagOut
from atpgraph_qa.service.suggestions import BINS
from atpgraph_qa.service.tables import Row, asks, calibration, find, suggestions
from atpgraph_qa.timeline.history import History

_TAG_DAYS = 180
_EXPERT_ANSWERS = 2  # in the tag
_FEW_EXPERTS = 2


def quality(
    connection: Connection, now_ms: int, days: int, *, shadow: bool | None = None
) -> QualityOut:
    """Return the figures of the report, over the first suggestions of the last days.

    MRR and hits are over answered questions; a person outside of the kept list counts 0. The
    baseline ranks people by their answers in the last month. `shadow` selects suggestions made in
    shadow mode, or only the others.
    """
    since_ms, t = now_ms - days * DAY_MS, suggestions.c
    day, done, asked = (
        (t.created_ms // DAY_MS).label("day"),
        t.resolved_ms.is_not(None),
        t.asked > 0,
    )
    count = func.count()

    def mean(which: Any, value: Any, among: Any) -> Any:
        return cast(func.avg(case((which, value), else_=0.0)).filter(among), Double)

    figures = {
        "questions": count,
        "answered": count.filter(done),
        "coverage": mean(asked, 1.0, true()),
        "mrr": mean(t.place > 0, 1.0 / t.place, done),
        "baseline_mrr": mean(t.baseline_place > 0, 1.0 / t.baseline_place, done),
        "hits_at_5": mean(t.place <= 5, 1.0, done),
        "asked_answered": mean(t.asked_answered, 1.0, done & asked),
        "accepted": count.filter(t.state == "accepted"),
        "declined": count.filter(t.state == "declined"),
    }
    # One index has all these columns, so the suggestions themselves are not read.
    query = select(*(column.label(name) for name, column in figures.items()))
    query = _only(query.where(t.created_ms >= since_ms, t.round == 0), t, shadow)
    (total,) = find(connection, query)
    return QualityOut(
        days=days, baseline=f"most answers in the last {BASELINE_DAYS} days", **total,
        by_day=find(connection, query.add_columns(day).group_by(day).order_by(day)),
        calibration=_calibration(connection, since_ms, shadow),
        load=_load(connection, since_ms, shadow),
    )  # fmt: skip


def _only(query: Any, columns: Any, shadow: bool | None) -> Any:
    return query if shadow is None else query.where(columns.shadow.is_(shadow))


def _calibration(connection: Connection, since_ms: int, shadow: bool | None) -> list[Row]:
    """Return the stated confidence and the share who answered, by bins of confidence."""
    t = calibration.c
    query = select(t.bin, func.sum(t.people), func.sum(t.stated), func.sum(t.observed))
    query = _only(query.where(t.day >= since_ms // DAY_MS), t, shadow)
    return [
        {"from": BINS[number], "to": BINS[number + 1], "people": int(people),
         "stated": float(stated) / int(people), "observed": float(observed) / int(people)}
        for number, people, stated, observed in connection.execute(
            query.group_by(t.bin).order_by(t.bin)
        )
        if people
    ]  # fmt: skip


def _load(connection: Connection, since_ms: int, shadow: bool | None) -> Row:
    """Return how the asks were distributed over people."""
    query = select(func.count()).where(asks.c.at_ms >= since_ms, asks.c.kind == "suggestion")
    query = _only(query, asks.c, shadow).group_by(asks.c.person)
    counts = sorted(connection.execute(query).scalars(), reverse=True)
    top = sum(counts[: max(1, len(counts) // 10)])
    return {
        "asks": sum(counts),
        "people": len(counts),
        "most": max(counts, default=0),
        "top_tenth_share": top / max(1, sum(counts)),
    }


def tags_without_experts(history: History, now_ms: int, active_days: float) -> list[TagOut]:
    """Return tags of recent questions in which fewer than two active people gave two answers."""
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
    experts = np.bincount(pairs[0][count >= _EXPERT_ANSWERS], minlength=m)
    silent = np.ones(n, dtype=np.bool_)
    silent[answers.question] = False
    recent = asked_ms > now_ms - _TAG_DAYS * DAY_MS
    asked = tagged.T @ recent.astype(float)
    unanswered = tagged.T @ (recent & silent).astype(float)
    codes: Sequence[int] = np.flatnonzero((asked > 0) & (experts < _FEW_EXPERTS)).tolist()
    found = [
        TagOut(tag=tags.names[code], questions=asked[code], unanswered=unanswered[code],
               experts=experts[code])
        for code in codes
    ]  # fmt: skip
    return sorted(found, key=lambda entry: (-entry.unanswered, -entry.questions, entry.tag))[:100]
