"""How good the suggestions were, measured on what happened afterwards."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.gate import BASELINE_DAYS
from atpgraph_qa.service.store.tables import suggestions

_BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)


@dataclass(frozen=True)
class Case:
    """A suggestion of the first round and what came of it."""

    day: int
    asked: tuple[int, ...]
    shadow: bool
    resolved: bool
    place: int | None
    baseline_place: int | None
    state: str
    ranking: tuple[tuple[int, float], ...]
    outcome: int | None


def cases(connection: Connection, since_ms: int) -> list[Case]:
    """First-round suggestions since a moment, oldest first."""
    table = suggestions.c
    query = select(
        table.created_ms, table.people, table.shadow, table.resolved_ms, table.place,
        table.baseline_place, table.state, table.ranking, table.outcome,
    ).where(table.created_ms >= since_ms, table.round == 0)  # fmt: skip
    return [
        Case(
            row.created_ms // DAY_MS,
            tuple(person["user"] for person in json.loads(row.people)),
            bool(row.shadow), row.resolved_ms is not None, row.place, row.baseline_place,
            row.state,
            tuple((entry["person"], entry["confidence"]) for entry in json.loads(row.ranking)),
            row.outcome,
        )
        for row in connection.execute(query.order_by(table.id))
    ]  # fmt: skip


def quality(found: Sequence[Case], days: int) -> dict[str, Any]:
    """All figures of the report.

    MRR and hits are over questions that somebody answered; a person outside of the kept list
    counts 0. The baseline ranks people by their answers in the last month.
    """
    return {
        "days": days,
        "baseline": f"most answers in the last {BASELINE_DAYS} days",
        **_figures(found),
        "by_day": [
            {"day": day, **_figures(group)} for day, group in _by(found, lambda case: case.day)
        ],
        "calibration": _calibration(found),
        "load": load(found),
    }


def load(found: Iterable[Case]) -> dict[str, Any]:
    """How asks were spread over people."""
    counts: dict[int, int] = defaultdict(int)
    for case in found:
        for person in case.asked:
            counts[person] += 1
    asks = sorted(counts.values(), reverse=True)
    top = max(1, len(asks) // 10)
    return {
        "asks": sum(asks),
        "people": len(asks),
        "most": max(asks, default=0),
        "top_tenth_share": sum(asks[:top]) / sum(asks) if asks else 0.0,
    }


def _figures(found: Sequence[Case]) -> dict[str, Any]:
    done = [case for case in found if case.resolved]
    return {
        "questions": len(found),
        "answered": len(done),
        "coverage": _mean([bool(case.asked) for case in found]),
        "mrr": _mean([1 / case.place if case.place else 0.0 for case in done]),
        "hits_at_5": _mean([bool(case.place and case.place <= 5) for case in done]),
        "baseline_mrr": _mean(
            [1 / case.baseline_place if case.baseline_place else 0.0 for case in done]
        ),
        "asked_answered": _mean([case.outcome in case.asked for case in done if case.asked]),
        "accepted": sum(case.state == "accepted" for case in found),
        "declined": sum(case.state == "declined" for case in found),
    }


def _calibration(found: Iterable[Case]) -> list[dict[str, Any]]:
    """Of people with about the same confidence, how many gave the answer."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in _BINS[1:]]
    for case in found:
        if case.resolved:
            for person, confidence in case.ranking:
                number = sum(confidence >= edge for edge in _BINS[1:-1])
                bins[number].append((confidence, person == case.outcome))
    return [
        {
            "from": low,
            "to": high,
            "people": len(entries),
            "stated": _mean([confidence for confidence, _ in entries]),
            "observed": _mean([right for _, right in entries]),
        }
        for low, high, entries in zip(_BINS[:-1], _BINS[1:], bins, strict=True)
        if entries
    ]


def _by(found: Iterable[Case], key: Callable[[Case], int]) -> list[tuple[int, list[Case]]]:
    groups: dict[int, list[Case]] = defaultdict(list)
    for case in found:
        groups[key(case)].append(case)
    return sorted(groups.items())


def _mean(values: Sequence[float | bool]) -> float | None:
    return sum(values) / len(values) if values else None
