"""The service under load: requests at their times whatever the answers do."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from _common import markdown
from _service import cpu_s, memory_mb, service

GIVE_UP_S = 30.0
IDLE_S = 15.0  # callers close what they do not use before the service does
MOST_MS = 100.0
RESERVE = 0.8  # of the best rate in a short trial, for ten minutes
LEAST, MOST = 2.0, 200.0  # routes a second
FLOOD = 200.0


@dataclass(frozen=True)
class Answer:
    """What became of a request: seconds from when it was due, and the status, or what failed."""

    kind: str
    due: float
    seconds: float
    status: str


@dataclass(frozen=True)
class Request:
    """Something to send at a time, in seconds from the start."""

    kind: str
    due: float
    path: str
    body: dict[str, Any]


class Line:
    """Connections to one server that are kept open and used again."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self.idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: dict[str, Any]) -> str:
        """Send JSON; the status of the answer."""
        raw = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\n{self.head}Content-Type: application/json\r\n"
        while self.idle and time.monotonic() - self.idle[0][0] > IDLE_S:
            self.idle.pop(0)[2].close()  # in the order of their last use
        if self.idle:
            _, reader, writer = self.idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        given = dict(line.split(": ", 1) for line in lines[1:] if line)
        await reader.readexactly(int(given["content-length"]))
        if given.get("connection") == "close":
            writer.close()
        else:
            self.idle.append((time.monotonic(), reader, writer))
        return lines[0].split()[1]

    def close(self) -> None:
        """Close what is open."""
        for _, _, writer in self.idle:
            writer.close()


async def send_on_time(
    url: str, token: str, requests: Iterator[Request], every_s: float, look: Callable[[], None]
) -> list[Answer]:
    """Send every request when it is due; call `look` now and then."""
    line, found, tasks = Line(url, token), list[Answer](), set[asyncio.Task[None]]()
    began, looked = time.perf_counter(), 0.0

    async def send(request: Request) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_S):
                status = await line.post(request.path, request.body)
        except (OSError, EOFError) as error:  # a time-out is one as well
            status = type(error).__name__
        took = time.perf_counter() - began - request.due
        found.append(Answer(request.kind, request.due, took, status))

    for request in requests:
        wait = request.due - (time.perf_counter() - began)
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(send(request))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if request.due - looked >= every_s:
            look()
            looked = request.due
    await asyncio.gather(*tasks)
    line.close()
    return found


def load(given: argparse.Namespace) -> dict[str, Any]:
    """Routes and events together; the same questions asked of the advisor directly."""
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder or Path(place)
        found: dict[str, Any] = direct(folder, given.people, given.text)
        site = Site(found.pop("questions"), found.pop("users"))
        found["past"] = site.live(Path(place) / "work", given.past)
        found["readers"] = given.readers
        rules = {
            "SERVER_READERS": str(given.readers),
            "POLICY_INACTIVE_DAYS": f"{found.pop('inactive_days'):.0f}",
        }
        with service(found.pop("model"), Path(place) / "work", **rules) as (pid, url, token):
            play = Play(pid, url, token, site)
            play.run(20, 5, given.events)  # compile and fill caches
            found["alone"] = play.run(given.trial, 4, 0)
            found["trials"] = trials(play, given)
            good = [run["rate"] for run in found["trials"] if holds(run)]
            rate = given.routes or RESERVE * max(good, default=LEAST)
            found["long"] = play.run(given.seconds, rate, given.events)
            found["flood"] = play.run(given.trial / 2, FLOOD, given.events)
    return found


def trials(play: Play, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Rates twice as high each time until one is too much, then between the last two."""
    runs: list[dict[str, Any]] = []
    low, high = 0.0, 0.0
    while len(runs) < given.trials:
        rate = (low + high) / 2 if high else max(2 * low, given.start)
        if high and high - low < max(1.0, 0.1 * high):
            break
        runs.append(play.run(given.trial, rate, given.events))
        if holds(runs[-1]):
            low = rate
        else:
            high = rate
        if high == given.start or low >= MOST:
            break
    return runs


def holds(run: dict[str, Any]) -> bool:
    """Whether a rate is one that the service can bear."""
    return run["route"]["p99"] < MOST_MS and not run["route"]["errors"] + run["event"]["errors"]


def direct(folder: Path, people: int, text: str) -> dict[str, Any]:
    """Make the model if it is not there; how long `Advisor.ask` takes, and what to send."""
    from route import Texts, make_questions, make_site, train

    from atpgraph_qa import Advisor, Policy

    texts, site, model = Texts(0), folder / "site", folder / f"model-{text}"
    folder.mkdir(parents=True, exist_ok=True)
    if not site.exists():
        make_site(site, texts, people, lambda _, work: work())
    if not model.exists():
        train({"site": site, "model": model, "train": 40, "text": text})
    advisor = Advisor.load(model)
    advisor.warm_up()
    questions = make_questions(texts, advisor.history, 500, seed=1)
    wall, processor = [], []
    for question in questions[:200]:
        began, used = time.perf_counter(), time.process_time()
        advisor.ask(question, Policy(inactive_days=180.0, least_answers=3), k=2)
        wall.append(1000 * (time.perf_counter() - began))
        processor.append(1000 * (time.process_time() - used))
    history = advisor.history
    answered = np.flatnonzero(history.n_given)
    return {
        "model": model,
        # As of the last post, however long ago the community ended.
        "inactive_days": 180.0 + (1000 * time.time() - history.last_ms) / 86_400_000,
        "people": len(answered),
        "text": text,
        "ask_ms": float(np.median(wall)),
        "ask_cpu_ms": float(np.median(processor)),
        "users": history.users[answered],
        "questions": [{"title": q.title, "body": q.body, "tags": list(q.tags)} for q in questions],
    }


class Site:
    """What happens on a site: of ten events, a question, two answers, an acceptance, six votes."""

    def __init__(self, questions: list[dict[str, Any]], users: Any) -> None:
        self.questions, self.users = questions, users
        self.rng = np.random.default_rng(0)
        self.next_id = self.asked = self.given = 10**9

    def question(self) -> dict[str, Any]:
        """What somebody might ask."""
        return self.questions[int(self.rng.integers(len(self.questions)))]

    def event(self, number: int, at: float) -> tuple[str, dict[str, Any]]:
        """The number-th event, to be sent at a time."""
        self.next_id += 1
        turn = number % 10
        if turn == 0:
            self.asked = self.next_id
            return "/v1/questions", {**self.question(), "id": self.asked, "at": at}
        if turn in (2, 5):
            self.given = self.next_id
            user = int(self.rng.choice(self.users))
            body = {"id": self.given, "question": self.asked, "user": user, "at": at}
            return "/v1/answers", body
        if turn == 9:
            body = {"question": self.asked, "answer": self.given, "at": at}
            return "/v1/acceptances", body
        body = {"id": f"v{self.next_id}", "answer": self.given, "value": 1, "at": at}
        return "/v1/votes", body

    def live(self, folder: Path, n: int) -> int:
        """Leave a work folder as a service does that took so many events in the last hour.

        Two people were asked about every question; suggestions and projections are left out.
        """
        from atpgraph_qa.service import events, schemas, tables
        from atpgraph_qa.service.database import FILE, Database
        from atpgraph_qa.service.engine import APPLIED

        if not n:
            return 0
        kinds = {
            "/v1/questions": schemas.QuestionIn, "/v1/answers": schemas.AnswerIn,
            "/v1/acceptances": schemas.AcceptanceIn, "/v1/votes": schemas.VoteIn,
        }  # fmt: skip
        folder.mkdir()
        store, now = Database(f"sqlite:///{folder / FILE}"), time.time()
        store.migrate()
        told = (self.event(number, now - 3600 * (1 - number / n)) for number in range(n))
        arrivals = [kinds[path].model_validate(body).arrival() for path, body in told]
        asked = [
            {"person": int(person), "at_ms": arrival.event.at_ms, "kind": "suggestion"}
            for arrival in arrivals[::10]
            for person in self.rng.choice(self.users, 2)
        ]
        with store.write() as connection:
            numbers = events.append(connection, arrivals, round(1000 * now))
            for ask in asked:
                tables.add(connection, tables.asks, **ask, shadow=True)
            tables.put_meta(connection, APPLIED, max(filter(None, numbers)))
        store.close()
        return n


class Play:
    """Asks for routes and sends the events of a site at given rates."""

    def __init__(self, pid: int, url: str, token: str, site: Site) -> None:
        self.pid, self.url, self.token, self.site = pid, url, token, site

    def run(self, seconds: float, routes: float, events: float) -> dict[str, Any]:
        """Send for so long; what was seen."""
        memory = [memory_mb(self.pid)]
        used, mine = cpu_s(self.pid), time.process_time()
        requests = iter(sorted(self._requests(seconds, routes, events), key=lambda r: r.due))

        def look() -> None:
            memory.append(memory_mb(self.pid))

        answers = asyncio.run(send_on_time(self.url, self.token, requests, seconds / 20, look))
        memory.append(memory_mb(self.pid))
        main, readers = (
            (now - before) / seconds for now, before in zip(cpu_s(self.pid), used, strict=True)
        )
        result = {
            "rate": routes, "events": events, "seconds": seconds, "memory_mb": memory,
            "server_cores": main + readers, "reader_cores": readers,
            "client_cores": (time.process_time() - mine) / seconds,
            **{kind: figures(kind, answers) for kind in ("route", "event")},
        }  # fmt: skip
        print(json.dumps(result), file=sys.stderr, flush=True)
        return result

    def _requests(self, seconds: float, routes: float, events: float) -> Iterator[Request]:
        for due in self._moments(seconds, routes):
            yield Request("route", due, "/v1/route", self.site.question())
        start = time.time()
        for number, due in enumerate(self._moments(seconds, events)):
            yield Request("event", due, *self.site.event(number, start + due))

    def _moments(self, seconds: float, rate: float) -> list[float]:
        """Each somewhere in its slot: evenly spaced, routes and events would always meet."""
        slots = np.arange(int(seconds * rate))
        moments: list[float] = ((slots + self.site.rng.random(len(slots))) / rate).tolist()
        return moments


def figures(kind: str, answers: list[Answer]) -> dict[str, Any]:
    """Times and errors of one kind of request."""
    mine = [answer for answer in answers if answer.kind == kind]
    took = 1000 * np.array([answer.seconds for answer in mine])
    bad = Counter(answer.status for answer in mine if answer.status not in ("200", "202"))
    p50, p95, p99, most = np.percentile(took, (50, 95, 99, 100)).tolist() if mine else [0.0] * 4
    return {"number": len(mine), "p50": p50, "p95": p95, "p99": p99, "most": most,
            "errors": sum(bad.values()), "statuses": dict(sorted(bad.items()))}  # fmt: skip


def tell_load(found: dict[str, Any]) -> str:
    """The section of the table."""
    run, alone, flood = found["long"], found["alone"], found["flood"]
    table = markdown(
        ("routes/s", "seconds", "routes", "p50 ms", "p95 ms", "p99 ms", "p99 of events ms",
         "errors", "cores of the service", "of them readers", "of the client"),
        [_row(each) for each in (*found["trials"], run)],
    )  # fmt: skip
    good = [each["rate"] for each in found["trials"] if holds(each)]
    best = f"Of the trials, {max(good):g} a second held" if good else "No rate that was tried held"
    used = 1000 * alone["server_cores"] / alone["rate"]
    return (
        f"{found['people']:,} people who answered, those of the last 180 days with three answers "
        f"are ranked, by {found.get('readers', 0)} readers; text: {found['text']}; SQLite; "
        f"{found.get('past', 0):,} events before the start; "
        f"{run['events']:g} events a second beside the routes: of ten, a question, which is "
        "routed as well, two answers, an acceptance and six votes. The last row is the "
        f"long run.\n\n{table}\n\n"
        f"{best} (99th percentile below {MOST_MS:g} ms, no error); the long run "
        f"{'held' if holds(run) else 'did not hold'}. `Advisor.ask` by itself takes "
        f"{found['ask_ms']:.1f} ms (median; {found['ask_cpu_ms']:.1f} of the processor). Routes "
        f"alone, {alone['rate']:g} a second without events: median {alone['route']['p50']:.1f} ms, "
        f"{used:.1f} of the processor for everything the service did. The median route of the "
        f"long run took {run['route']['p50'] / found['ask_ms']:.1f} times as long as "
        f"`Advisor.ask`.\n\nResident memory of the service during the long run, every twentieth "
        f"of it, in MB: {', '.join(f'{value:.0f}' for value in run['memory_mb'])}.\n\n"
        f"Far too much, {flood['rate']:g} routes a second for {flood['seconds']:g} s: "
        f"{_statuses(flood)}; slowest answer {flood['route']['most'] / 1000:.1f} s, 99th "
        f"percentile of the events {flood['event']['p99']:.0f} ms."
    )


def _row(run: dict[str, Any]) -> tuple[Any, ...]:
    route, event = run["route"], run["event"]
    failed = [f"{n} × {s}" for part in (route, event) for s, n in part["statuses"].items()]
    return (
        f"{run['rate']:g}", f"{run['seconds']:g}", route["number"], route["p50"], route["p95"],
        route["p99"], event["p99"], ", ".join(failed) or "none", run["server_cores"],
        run.get("reader_cores", 0.0), run["client_cores"],
    )  # fmt: skip


def _statuses(run: dict[str, Any]) -> str:
    """What routes and events were answered with."""
    parts = []
    for kind, fine in (("route", "200"), ("event", "202")):
        seen = {fine: run[kind]["number"] - run[kind]["errors"], **run[kind]["statuses"]}
        parts.append(f"{kind}s " + ", ".join(f"{n:,} × {s}" for s, n in seen.items()))
    return "; ".join(parts)
