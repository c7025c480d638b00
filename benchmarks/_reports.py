"""What the pages with figures, and forgetting somebody, cost once there are many suggestions."""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import markdown
from _service import small_model
from sqlalchemy import insert

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import tables
from atpgraph_qa.service.run import create_app
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Settings

PEOPLE, DAYS, KEPT = 2000, 30, 20
ALWAYS = 0  # somebody whom every suggestion names
PAGES = ("/quality", "/shadow", "/v1/metrics/quality")


def fill(service: Service, count: int, seed: int) -> dict[int, int]:
    """Store suggestions of a month; return how many of them name each of some people.

    Few people are ranked often, as on a site: the weight of the k-th is 1 / (k + 10). One person is
    the first of every list.
    """
    rng, now = np.random.default_rng(seed), service.clock()
    weights = 1 / (np.arange(PEOPLE) + 10.0)
    named: dict[int, int] = {}
    questions, made, asks, quotes, outbox = [], [], [], [], []
    for number in range(count):
        others = 1 + rng.choice(PEOPLE, KEPT - 1, replace=False, p=weights / weights.sum())
        ranked = [ALWAYS, *others.tolist()]
        confidence = np.sort(rng.beta(1, 12, KEPT))[::-1].round(4).tolist()
        at_ms = now - int(DAYS * DAY_MS * (1 - (number + 1) / count)) - 1000
        place = int(rng.integers(1, 60)) if rng.random() < 0.7 else 0
        reason = {"kind": "tag", "text": "18 answers tagged compost, 14 accepted, the last one "
                  "9 days ago", "questions": rng.integers(1, 300, 3).tolist()}  # fmt: skip
        chosen = [
            {"user": user, "score": 1.0, "confidence": sure, "reasons": [reason, reason]}
            for user, sure in zip(ranked[:2], confidence, strict=False)
        ]
        questions.append({"id": 10**6 + number, "title": "compost smells of frost", "tags": ["a"],
                          "asker": ranked[-1], "asked_ms": at_ms, "answers": int(place > 0),
                          "body": "", "origin": {}})  # fmt: skip
        made.append({
            "question": 10**6 + number, "round": 0, "created_ms": at_ms, "changed_ms": at_ms,
            "shadow": bool(number % 2), "mode": "shadow" if number % 2 else "automatic",
            "model": "m", "state": "answered" if place else "expired", "people": chosen,
            "ranking": [{"person": u, "confidence": c}
                        for u, c in zip(ranked, confidence, strict=True)],
            "baseline": ranked[::-1], "notes": [], "confidence": confidence[0], "abstains": "",
            "decisions": [{"person": u, "rule": "asked", "text": "place 1"} for u in ranked[:2]],
            "candidates": PEOPLE, "asked": 2, "resolved_ms": at_ms + 1 if place else None,
            "outcome": ranked[place - 1] if 0 < place <= KEPT else None,
            "place": place if 0 < place <= KEPT else None, "asked_answered": 0 < place <= 2,
            "baseline_place": KEPT + 1 - place if 0 < place <= KEPT else None,
        })  # fmt: skip
        asks += [{"person": u, "suggestion": number + 1, "at_ms": at_ms, "kind": "suggestion",
                  "shadow": bool(number % 2)} for u in ranked[:2]]  # fmt: skip
        quotes += [{"question": q, "suggestion": number + 1} for q in set(reason["questions"])]
        data = {"suggestion": number + 1, "people": chosen, "question": {"id": 10**6 + number}}
        outbox.append({"id": f"m{number}", "suggestion": number + 1, "adapter": "webhook",
                       "payload": {"type": "suggestion.created", "data": data}, "state": "sent",
                       "attempts": 1, "next_ms": at_ms, "created_ms": at_ms})  # fmt: skip
        for user in ranked:
            named[user] = named.get(user, 0) + 1
    bins = [
        {"day": (now - day * DAY_MS) // DAY_MS, "shadow": shadow, "bin": b, "people": 500,
         "stated": 20.0, "observed": 18}
        for day in range(DAYS) for shadow in (False, True) for b in range(6)
    ]  # fmt: skip
    with service.database.write() as connection:
        for table, rows in (
            (tables.questions, questions), (tables.suggestions, made), (tables.asks, asks),
            (tables.calibration, bins), (tables.quotes, quotes), (tables.outbox, outbox),
        ):  # fmt: skip
            connection.execute(insert(table), rows)
    return named


def reports(given: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds of a view of each page, and of forgetting four people."""
    with warnings.catch_warnings():  # it would like another library than the one we use
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient
    with tempfile.TemporaryDirectory() as place:
        model = given.model or small_model(Path(place))
        settings = Settings().changed("store", {"folder": f"{place}/work"}, "benchmark")
        service = Service(settings, model)
        named = fill(service, given.suggestions, given.seed)
        client = TestClient(create_app(service, background=False), follow_redirects=False)
        client.post("/login", content=f"token={service.first_token}")
        headers = {"authorization": f"Bearer {service.first_token}"}

        def spent(method: str, path: str) -> float:
            before = time.process_time()
            answer = client.request(method, path, headers=headers)
            took = time.process_time() - before
            assert answer.status_code == 200, answer.text
            return took

        found: dict[str, Any] = {"suggestions": given.suggestions, "pages": {}}
        for path in PAGES:
            spent("GET", path)  # templates are compiled at the first view
            found["pages"][path] = sorted(spent("GET", path) for _ in range(9))
        people = [user for user in (10, 20, 40, ALWAYS) if user in named]
        found["forget"] = [[named[u], spent("DELETE", f"/v1/people/{u}")] for u in people]
        service.stop()
    return found


def tell_reports(found: dict[str, Any]) -> str:
    """The section of the table."""
    rows: list[tuple[object, ...]] = [
        (path, f"{1000 * times[len(times) // 2]:.0f} ms", f"{1000 * times[-1]:.0f} ms")
        for path, times in found["pages"].items()
    ]
    rows += [
        (f"forget somebody whom {count:,} of the suggestions rank", f"{seconds:.2f} s", "")
        for count, seconds in found["forget"]
    ]
    title = f"CPU time, {found['suggestions']:,} suggestions"
    return markdown((title, "median of 9", "slowest"), rows)
