"""Kill the service at random moments while a site talks to it: what was promised, what came out.

The long form is ``benchmarks/serve.py --kills``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2 as httpx
from sqlalchemy import select

from atpgraph_qa import Advisor, Question
from atpgraph_qa.service import tables
from atpgraph_qa.service.database import Database
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Settings
from qa.tests.service.receiver import Receiver, receiver

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 600.0  # seconds; spent in full only where something is wrong
# Rules wide open: every question leads to a message.
OPEN = {
    "POLICY_MODE": "automatic", "POLICY_STALE_HOURS": "1000000", "POLICY_INACTIVE_DAYS": "100000",
    "POLICY_PER_DAY": "100000", "POLICY_PER_WEEK": "100000", "POLICY_REST_HOURS": "0",
    "POLICY_LEAST_CONFIDENCE": "0", "POLICY_SPREAD": "0", "LIMITS_PER_SECOND": "100000",
    "LIMITS_BURST": "100000", "STORE_SNAPSHOT_EVENTS": "40", "LOG_LEVEL": "error",
}  # fmt: skip


def stream(n: int, start_ms: int, seed: int = 0, users: int = 60) -> Iterator[tuple[str, Any]]:
    """Questions, answers, acceptances and votes as a site would send them, some late."""
    rng = random.Random(seed)
    asked: list[int] = []
    given: list[tuple[int, int]] = []
    for number in range(n):
        at = (start_ms + 60_000 * (number - rng.choice([0, 0, 0, 5]))) / 1000
        kind = rng.choices(["questions", "answers", "acceptances", "votes"], [4, 4, 1, 1])[0]
        if kind == "questions" or not asked:
            tag = rng.choice(["tomatoes", "compost", "pruning", "new"])
            words = " ".join(rng.choices(["leaf", "soil", "prune", "water", "bean", "frost"], k=4))
            asked.append(800_000 + number)
            yield "questions", {"id": asked[-1], "title": f"{tag} {words}", "tags": [tag],
                                "asker": rng.randrange(users), "at": at}  # fmt: skip
        elif kind == "answers" or not given:
            given.append((900_000 + number, rng.choice(asked)))
            yield "answers", {"id": given[-1][0], "question": given[-1][1],
                              "user": rng.randrange(users + 5), "at": at}  # fmt: skip
        elif kind == "acceptances":
            answer, question = rng.choice(given)
            yield "acceptances", {"question": question, "answer": answer, "at": at}
        else:
            answer = rng.choice(given)[0]
            yield "votes", {"id": f"v{number}", "answer": answer, "value": 1, "at": at}


QUESTIONS = [
    Question("Why do tomato leaves curl?", tags=["tomatoes"], asker=7),
    Question("compost smells of frost", tags=["compost", "new"]),
    Question("prune a bean in water"),
]


def ranked(advisor: Advisor) -> list[list[tuple[int, float, str]]]:
    """What an advisor says, in full."""
    return [
        [(p.user, round(p.score, 9), p.reasons[0].text if p.reasons else "") for p in found.people]
        for found in (advisor.ask(question, k=20) for question in QUESTIONS)
    ]


@dataclass
class Site:
    """A site that sends events and asks for routes, and what it was told.

    What was sent and not acknowledged is sent again, as a site that means to lose nothing does.
    """

    items: Iterator[tuple[str, Any]]
    taken: list[str] = field(default_factory=list)
    repeated: int = 0
    routed: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    unsure: list[tuple[str, Any]] = field(default_factory=list)
    ended: bool = False

    async def send_events(self, client: httpx.AsyncClient) -> None:
        """Until the connection breaks."""
        while not self.ended:
            kind, body = self.unsure.pop(0) if self.unsure else next(self.items)
            try:
                answer = await client.post(f"/v1/{kind}", json=body)
            except httpx.HTTPError:
                self.unsure.append((kind, body))
                return
            self.statuses[answer.status_code] += 1
            if answer.status_code == 202:
                self.taken.append(answer.json()["name"])
                self.repeated += answer.json()["duplicate"]
            else:
                self.unsure.append((kind, body))

    async def ask(self, client: httpx.AsyncClient) -> None:
        """Routes, until the connection breaks."""
        while not self.ended:
            try:
                answer = await client.post("/v1/route", json={"title": "compost in frost"})
            except httpx.HTTPError:
                return
            self.statuses[answer.status_code] += 1
            self.routed += answer.status_code == 200


@dataclass
class Found:
    """What a series of kills left behind."""

    site: Site
    to: Receiver
    starts: list[tuple[float, float]]
    stored: list[str]
    suggestions: list[Any]
    outbox: list[Any]

    def check(self) -> None:
        """No acknowledged event lost, no effect twice."""
        assert set(self.site.taken) <= set(self.stored), "an acknowledged event was lost"
        assert len(self.stored) == len(set(self.stored)), "an event was stored twice"
        assert set(self.site.statuses) <= {200, 202}, self.site.statuses
        rounds = Counter((row.question, row.round) for row in self.suggestions)
        assert set(rounds.values()) <= {1}, "a question was routed twice"
        messages = Counter(row.suggestion for row in self.outbox)
        asked = {row.id for row in self.suggestions if row.people != "[]"}
        assert set(messages) == asked, "a suggestion without its message, or the reverse"
        assert set(messages.values()) <= {1}, "two messages about one suggestion"
        assert {row.state for row in self.outbox} <= {"sent", "cancelled"}
        sent = {row.id: row.suggestion for row in self.outbox}
        for got in self.to.got:  # a receiver knows a repetition by the id
            assert sent[got.headers["webhook-id"]] == got.json["data"]["suggestion"]
        arrived = {got.headers["webhook-id"] for got in self.to.got}
        assert {row.id for row in self.outbox if row.state == "sent"} <= arrived

    @property
    def twice(self) -> int:
        """Messages that came again, under the same id."""
        return len(self.to.got) - len({got.headers["webhook-id"] for got in self.to.got})


def crash(
    folder: Path, model: Path, kills: int, *, database: str = "", life_s: float = 1.0,
    seed: int = 0, readers: int = 0,
) -> Found:  # fmt: skip
    """Kill the service again and again while events, routes and deliveries are under way.

    One life in five ends while the service is still starting. Afterwards the history in memory,
    which went through all the snapshots, must be what the events alone give.
    """
    rng = random.Random(seed)
    site = Site(stream(10**6, time.time_ns() // 1_000_000, seed))
    token, starts = "", list[tuple[float, float]]()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with receiver(200) as to:
        environment = _environment(folder, database, f"{to.url}/hook", port)
        environment["ATP_SERVE_SERVER_READERS"] = str(readers)
        for life in range(kills + 1):
            early = life > 0 and life < kills and rng.random() < 0.2
            began = time.monotonic()
            process = _start(model, environment)
            try:
                if early:
                    time.sleep(rng.uniform(0, starts[-1][0]))
                    continue
                assert process.stdout is not None
                token = json.loads(process.stdout.readline())["token"] or token
                while not _is_ready(port):
                    assert time.monotonic() < began + PATIENCE, "the service does not get ready"
                    time.sleep(0.01)
                starts.append((time.monotonic() - began, _cpu_s(process.pid)))
                until = rng.uniform(0.05, life_s)
                asyncio.run(_live(site, process, port, token, until, last=life == kills))
            finally:
                process.kill() if life < kills else process.terminate()
                process.wait()
                assert process.stdout is not None
                process.stdout.close()
        with mock.patch.dict(os.environ, environment):
            settings = Settings.read()
        _compare(settings, model)
        reader = Database.of(settings)
        with reader.read() as connection:
            stored = list(connection.execute(select(tables.events.c.name)).scalars())
            made = list(connection.execute(select(tables.suggestions)).all())
            out = list(connection.execute(select(tables.outbox)).all())
        reader.close()
        return Found(site, to, starts, stored, made, out)


def _environment(folder: Path, database: str, hook: str, port: int) -> dict[str, str]:
    given = {
        **OPEN, "DELIVER_ADAPTERS": "webhook", "DELIVER_WEBHOOK_URL": hook, "SERVER_PORT": port,
        "DELIVER_WEBHOOK_SECRETS": "whsec_c2VjcmV0", "DELIVER_ALLOW_PRIVATE": "127.0.0.1",
        "STORE_FOLDER": folder, "STORE_DATABASE": database,
    }  # fmt: skip
    return {f"ATP_SERVE_{name}": str(value) for name, value in given.items()}


def _start(model: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    inherited = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'qa' / 'src'}"}
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start compiles every module
    return subprocess.Popen(
        [sys.executable, "-m", "atpgraph", "server", "run", str(model), "--json", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
        env={**inherited, **environment},
    )


def _is_ready(port: int) -> bool:
    try:
        url = f"http://127.0.0.1:{port}/readyz"
        return httpx.get(url, trust_env=False, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _cpu_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _live(
    site: Site, process: subprocess.Popen[str], port: int, token: str, until: float, *, last: bool
) -> None:
    """Talk to the service for so long; then kill it while requests are under way."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {token}"},
        trust_env=False, timeout=30,
    ) as client:  # fmt: skip
        site.ended = False
        work = [site.send_events(client), site.send_events(client), site.ask(client)]
        tasks = [asyncio.create_task(each) for each in work]
        await asyncio.sleep(until)
        if last:
            site.ended = True
        else:
            process.kill()
        await asyncio.gather(*tasks)
        if last:
            while site.unsure:  # what nobody acknowledged is sent until somebody does
                kind, body = site.unsure.pop()
                answer = await client.post(f"/v1/{kind}", json=body)
                site.taken.append(answer.raise_for_status().json()["name"])
            await _wait_until_idle(client)


async def _wait_until_idle(client: httpx.AsyncClient) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        text = (await client.get("/metrics")).text
        busy = any(f'atp_messages{{state="{state}"}}' in text for state in ("waiting", "sending"))
        if "atp_events_waiting 0.0" in text and not busy:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the service does not come to rest")


def _compare(settings: Settings, model: Path) -> None:
    """The history of all those snapshots is the history of all the events."""
    said = []
    for _ in range(2):
        service = Service(settings, model)
        said.append(ranked(service.engine.advisor))
        service.ready = False  # stop without a snapshot
        service.stop()
        shutil.rmtree(Path(settings.store.folder) / "snapshots")
    assert said[0] == said[1], "the snapshots differ from the events"
