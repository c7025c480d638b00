"""Reports: how good the suggestions were, and tags without experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sqlalchemy import Connection, func, select

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
    done, day = t.resolved_ms.is_not(None), (t.created_ms // DAY_MS).label("day")
    n = func.count()
    sums: dict[str, Any] = {
        "questions": n,
        "answered": n.filter(done),
        "covered": n.filter(t.asked > 0),
        "reciprocal": func.sum(1.0 / t.place).filter(done & (t.place > 0)),
        "in_five": n.filter(done & (t.place <= 5)),
        "baseline": func.sum(1.0 / t.baseline_place).filter(done & (t.baseline_place > 0)),
        "asked_resolved": n.filter(done & (t.asked > 0)),
        "asked_right": n.filter(done & t.asked_answered),
        "accepted": n.filter(t.state == "accepted"),
        "declined": n.filter(t.state == "declined"),
    }
    # One index has all these columns, so the suggestions themselves are not read.
    wanted = [column.label(name) for name, column in sums.items()]
    query = select(day, *wanted).where(t.created_ms >= since_ms, t.round == 0)
    rows = find(connection, _only(query, t, shadow).group_by(day).order_by(day))
    total = {name: sum(row[name] or 0 for row in rows) for name in sums}
    return QualityOut(
        days=days, baseline=f"most answers in the last {BASELINE_DAYS} days", **_figures(total),
        by_day=[{"day": row["day"], **_figures(row)} for row in rows],
        calibration=_calibration(connection, since_ms, shadow),
        load=_load(connection, since_ms, shadow),
    )  # fmt: skip


def _only(query: Any, columns: Any, shadow: bool | None) -> Any:
    return query if shadow is None else query.where(columns.shadow.is_(shadow))


def _figures(s: Row) -> Row:
    return {
        **{name: s[name] for name in ("questions", "answered", "accepted", "declined")},
        "coverage": _share(s["covered"], s["questions"]),
        "mrr": _share(s["reciprocal"], s["answered"]),
        "hits_at_5": _share(s["in_five"], s["answered"]),
        "baseline_mrr": _share(s["baseline"], s["answered"]),
        "asked_answered": _share(s["asked_right"], s["asked_resolved"]),
    }


def _share(part: float | None, whole: float) -> float | None:
    return float(part or 0) / float(whole) if whole else None  # PostgreSQL gives decimals


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
        "top_tenth_share": _share(top, sum(counts)) or 0.0,
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
