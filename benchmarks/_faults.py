"""The service under faults: kills, and a database that goes away."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
from _common import ROOT, markdown
from _service import service, small_model

if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


def kills(given: argparse.Namespace) -> dict[str, Any]:
    """`kill -9` under load."""
    from qa.tests.service.crash import crash

    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = ""
        if given.database == "postgresql":
            from qa.tests.service.cluster import Cluster

            url = stack.enter_context(Cluster.start()).empty_database()
        model = given.model or small_model(place)
        found = crash(
            place / "work", model, given.kills, database=url, seed=given.seed,
            readers=given.readers,
        )  # fmt: skip
        found.check()
    wall, used = (np.array(part) for part in zip(*found.starts[1:], strict=True))
    return {
        "kills": given.kills, "early": given.kills + 1 - len(found.starts), "seed": given.seed,
        "readers": given.readers,
        "acknowledged": len(found.site.taken), "stored": len(found.stored),
        "sent_again": found.site.repeated, "routes": found.site.routed,
        "suggestions": len(found.suggestions), "messages": len(found.outbox),
        "received": len(found.to.got), "twice": found.twice,
        "start_s": [float(np.median(wall)), float(wall.max())],
        "start_cpu_s": [float(np.median(used)), float(used.max())],
    }  # fmt: skip


def tell_kills(found: dict[str, Any]) -> str:
    """The section of the table."""
    rows = [
        ("kills, of them while starting", f"{found['kills']}, {found['early']}"),
        ("processes that rank besides the service", found.get("readers", 0)),
        ("events acknowledged; stored", f"{found['acknowledged']:,}; {found['stored']:,}"),
        ("acknowledged events lost", 0),
        ("events known before, sent again after a crash", found["sent_again"]),
        ("routes answered meanwhile", found["routes"]),
        ("suggestions; messages about them", f"{found['suggestions']:,}; {found['messages']:,}"),
        ("questions with two suggestions, suggestions with two messages", "0, 0"),
        ("messages received; again under the same id", f"{found['received']:,}; {found['twice']}"),
        ("start to ready, seconds: median, slowest", _pair(found["start_s"])),
        ("the same of the processor", _pair(found["start_cpu_s"])),
    ]
    return markdown(("", f"seed {found['seed']}"), rows) + (
        "\n\nZeros are asserted (`qa/tests/service/crash.py`), as is that the history in memory "
        "after all those snapshots is what the events alone give. A message comes again if the "
        "process ends between the receiver's answer and the commit that notes it; the receiver "
        "knows it by `webhook-id`."
    )


def _pair(values: list[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def outage(given: argparse.Namespace) -> dict[str, Any]:
    """PostgreSQL is stopped and started again while requests go on."""
    from qa.tests.service.cluster import Cluster

    with tempfile.TemporaryDirectory() as place, Cluster.start() as cluster:
        model = given.model or small_model(Path(place))
        url = cluster.empty_database()
        with service(model, Path(place) / "work", STORE_DATABASE=url) as (_, address, token):
            headers = {"authorization": f"Bearer {token}"}
            with httpx.Client(
                base_url=address, headers=headers, trust_env=False, timeout=30
            ) as client:
                return _outage(client, cluster, given.seconds)


def _outage(client: httpx.Client, cluster: Any, seconds: float) -> dict[str, Any]:
    number, seen, slow, acknowledged = 0, Counter[str](), 0.0, 0

    def post(until: Callable[[httpx.Response], bool], longest: float) -> float:
        """Send events and routes until something is so; how long it took."""
        nonlocal number, slow, acknowledged
        began = time.monotonic()
        while time.monotonic() - began < longest:
            number += 1
            body = {"id": 10**6 + number, "title": "compost in frost", "at": time.time()}
            sent = time.monotonic()
            answer = client.post("/v1/questions", json=body)
            slow = max(slow, time.monotonic() - sent)
            acknowledged += answer.status_code == 202
            after = "Retry-After" if "retry-after" in answer.headers else "no Retry-After"
            seen[f"{answer.status_code}" + (f", {after}" if answer.status_code != 202 else "")] += 1
            seen[f"route {client.post('/v1/route', json={'title': 'frost'}).status_code}"] += 1
            if until(answer):
                return time.monotonic() - began
            time.sleep(0.2)
        return time.monotonic() - began

    post(lambda _: False, 3)
    cluster.stop()
    post(lambda _: False, seconds)
    cluster.resume()
    back = post(lambda answer: answer.status_code == 202, 60)
    post(lambda _: False, 3)
    for _ in range(300):
        if "atp_events_waiting 0" in client.get("/metrics").text:
            break
        time.sleep(0.1)
    page, cursor = 0, ""
    while True:
        answer = client.get("/v1/suggestions", params={"limit": 100, "cursor": cursor}).json()
        page, cursor = page + len(answer["items"]), answer["cursor"]
        if not cursor:
            break
    return {"seconds": seconds, "answers": dict(seen), "slowest_s": slow, "back_s": back,
            "acknowledged": acknowledged, "suggestions": page}  # fmt: skip


def tell_outage(found: dict[str, Any]) -> str:
    """The section of the table."""
    seen = ", ".join(f"{count} × {name}" for name, count in sorted(found["answers"].items()))
    return (
        f"PostgreSQL stopped for {found['seconds']:g} s while questions and routes went on: "
        f"{seen}. Slowest answer {found['slowest_s']:.1f} s. First event taken "
        f"{found['back_s']:.1f} s after the database was started again; in the end "
        f"{found['acknowledged']} questions acknowledged and {found['suggestions']} suggestions "
        "made."
    )
