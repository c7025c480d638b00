"""How good the suggestions were, measured on what happened afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.engine import BASELINE_DAYS
from atpgraph_qa.service.store.suggestions import BINS
from atpgraph_qa.service.store.tables import asks, calibration, suggestions

_SUMS = (
    "questions", "answered", "covered", "reciprocal", "in_five", "baseline", "asked_resolved",
    "asked_right", "accepted", "declined",
)  # fmt: skip


def quality(
    connection: Connection, since_ms: int, days: int, *, shadow: bool | None = None
) -> dict[str, Any]:
    """Return all figures of the report, over first suggestions since a moment.

    MRR and hits are over questions that somebody answered; a person outside of the kept list
    counts 0. The baseline ranks people by their answers in the last month.

    Parameters
    ----------
    shadow : bool, optional
        Only suggestions that were made in shadow mode, or only others.
    """
    by_day = _by_day(connection, since_ms, shadow)
    total = [sum(sums) for sums in zip(*(sums for _, sums in by_day), strict=True)]
    return {
        "days": days,
        "baseline": f"most answers in the last {BASELINE_DAYS} days",
        **_figures(total or [0] * len(_SUMS)),
        "by_day": [{"day": day, **_figures(sums)} for day, sums in by_day],
        "calibration": _calibration(connection, since_ms, shadow),
        "load": _load(connection, since_ms, shadow),
    }


def _by_day(
    connection: Connection, since_ms: int, shadow: bool | None
) -> list[tuple[int, Sequence[float]]]:
    """Return the sums of each day. One index has all columns: no suggestion is read."""
    t = suggestions.c
    done = t.resolved_ms.is_not(None)

    def count(*which: Any) -> Any:
        where = which[0] if len(which) == 1 else which[0] & which[1]
        return func.sum(case((where, 1), else_=0))

    day = t.created_ms // DAY_MS
    query = select(
        day,
        func.count(),
        count(done),
        count(t.asked > 0),
        func.sum(case((done & (t.place > 0), 1.0 / t.place), else_=0.0)),
        count(done, t.place <= 5),
        func.sum(case((done & (t.baseline_place > 0), 1.0 / t.baseline_place), else_=0.0)),
        count(done, t.asked > 0),
        count(done, t.asked_answered),
        count(t.state == "accepted"),
        count(t.state == "declined"),
    ).where(t.created_ms >= since_ms, t.round == 0)
    if shadow is not None:
        query = query.where(t.shadow.is_(shadow))
    rows = connection.execute(query.group_by(day).order_by(day))
    return [(int(row[0]), [float(value) for value in row[1:]]) for row in rows]


def _figures(sums: Sequence[float]) -> dict[str, Any]:
    s = dict(zip(_SUMS, sums, strict=True))
    return {
        "questions": int(s["questions"]),
        "answered": int(s["answered"]),
        "coverage": _share(s["covered"], s["questions"]),
        "mrr": _share(s["reciprocal"], s["answered"]),
        "hits_at_5": _share(s["in_five"], s["answered"]),
        "baseline_mrr": _share(s["baseline"], s["answered"]),
        "asked_answered": _share(s["asked_right"], s["asked_resolved"]),
        "accepted": int(s["accepted"]),
        "declined": int(s["declined"]),
    }


def _calibration(
    connection: Connection, since_ms: int, shadow: bool | None
) -> list[dict[str, Any]]:
    """Return, for people with about the same confidence, how many gave the answer."""
    t = calibration.c
    query = select(t.bin, func.sum(t.people), func.sum(t.stated), func.sum(t.observed))
    query = query.where(t.day >= since_ms // DAY_MS)
    if shadow is not None:
        query = query.where(t.shadow.is_(shadow))
    return [
        {
            "from": BINS[number],
            "to": BINS[number + 1],
            "people": int(people),
            "stated": float(stated) / int(people),
            "observed": float(observed) / int(people),
        }
        for number, people, stated, observed in connection.execute(
            query.group_by(t.bin).order_by(t.bin)
        )
        if people
    ]


def _load(connection: Connection, since_ms: int, shadow: bool | None) -> dict[str, Any]:
    """Return how asks were spread over people."""
    query = select(func.count()).where(asks.c.at_ms >= since_ms, asks.c.kind == "suggestion")
    if shadow is not None:
        query = query.where(asks.c.shadow.is_(shadow))
    counts = sorted(connection.execute(query.group_by(asks.c.person)).scalars(), reverse=True)
    top = max(1, len(counts) // 10)
    return {
        "asks": sum(counts),
        "people": len(counts),
        "most": max(counts, default=0),
        "top_tenth_share": sum(counts[:top]) / sum(counts) if counts else 0.0,
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
