"""The service under load on loopback: routes and events together, times, errors, memory.

    python benchmarks/serve.py [--people 105195] [--seconds 600] [--routes 200] [--events 50]
    python benchmarks/serve.py --kills 100        # kill -9 at random moments instead
    python benchmarks/serve.py --requests 5000    # Schemathesis on the OpenAPI document instead

The site is a simulated community. Requests are sent at their times whether or not earlier ones have
been answered, so that a slow service cannot slow its own load down; a request's time counts from
when it should have been sent. The client is a process of its own on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from _common import ROOT, markdown

sys.path.append(str(ROOT))
NOW_S = time.time()


def start(model: Path, folder: Path) -> tuple[subprocess.Popen[str], str, str]:
    """The service as a process; its address and admin token."""
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "src"), "ATP_SERVE_LIMITS_PER_SECOND": "1000000",
        "ATP_SERVE_LIMITS_BURST": "1000000", "ATP_SERVE_POLICY_INACTIVE_DAYS": "100000",
        "ATP_SERVE_LOG_LEVEL": "warning",
    }  # fmt: skip
    command = [sys.executable, "-m", "atpgraph", "serve", str(model), "--folder", str(folder),
               "--port", "0", "--json", "--quiet"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    return process, said["url"], said["token"]


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def load(url: str, token: str, seconds: float, routes: float, events: float, texts: list):
    """Send on schedule; (kind, seconds it took, status) of every request."""
    found: list[tuple[str, float, int]] = []
    rng = np.random.default_rng(0)
    headers = {"authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=60, limits=limits, trust_env=False
    ) as client:
        began = time.perf_counter()

        async def send(kind: str, due: float, path: str, body: dict) -> None:
            await asyncio.sleep(max(0.0, due - (time.perf_counter() - began)))
            try:
                status = (await client.post(path, json=body)).status_code
            except httpx.HTTPError:
                status = 0
            found.append((kind, time.perf_counter() - began - due, status))

        tasks = []
        for number in range(int(seconds * routes)):
            title, tags = texts[int(rng.integers(len(texts)))]
            body = {"title": title, "tags": tags}
            tasks.append(send("route", number / routes, "/v1/route", body))
        for number in range(int(seconds * events)):
            title, tags = texts[int(rng.integers(len(texts)))]
            due, at = number / events, NOW_S + number / events
            if number % 3 == 0:
                body = {"id": 10**9 + number, "title": title, "tags": tags, "at": at}
                tasks.append(send("event", due, "/v1/questions", body))
            else:
                body = {"id": 2 * 10**9 + number, "question": 10**9 + number // 3 * 3,
                        "user": int(rng.integers(10**5)), "at": at}  # fmt: skip
                tasks.append(send("event", due, "/v1/answers", body))
        await asyncio.gather(*tasks)
    return found


def measure(given: argparse.Namespace) -> None:
    """Load, and the same questions asked of the advisor directly."""
    from atpgraph.cqa import Advisor, Question

    with tempfile.TemporaryDirectory() as place:
        model = given.model or small_model(Path(place), given.people)
        advisor = Advisor.open(model)
        advisor.warm_up()
        titles = list(advisor.history.records.texts.titles)[-500:]
        texts = [(title[:400] or "x", []) for title in titles]
        times = []
        for title, _ in texts[:200]:
            began = time.perf_counter()
            advisor.ask(Question(title), top=2)
            times.append(time.perf_counter() - began)
        direct = float(np.median(times))
        people = int((advisor.history.n_given > 0).sum())
        del advisor
        process, url, token = start(model, Path(place) / "work")
        try:
            asyncio.run(load(url, token, 3, 10, 5, texts))  # compile and fill caches
            before = memory_mb(process.pid)
            found = asyncio.run(load(url, token, given.seconds, given.routes, given.events, texts))
            after = memory_mb(process.pid)
        finally:
            process.terminate()
            process.wait()
    rows = []
    for kind in ("route", "event"):
        took = np.array([seconds for name, seconds, _ in found if name == kind])
        bad = sum(1 for name, _, status in found if name == kind and status not in (200, 202))
        p50, p99 = (1000 * float(np.percentile(took, q)) for q in (50, 99))
        rows.append((kind, len(took), bad, p50, p99))
    print(f"{people} people who answered, {given.seconds:g} s, {given.routes:g} routes/s and "
          f"{given.events:g} events/s\n")  # fmt: skip
    print(markdown(("request", "number", "errors", "p50 ms", "p99 ms"), rows))
    print(f"\n`Advisor.ask` by itself: {1000 * direct:.2f} ms (median); a route by the service "
          f"takes {rows[0][3] / 1000 / direct:.1f} times as long. Memory {before:.0f} MB before, "
          f"{after:.0f} MB after.")  # fmt: skip


def small_model(folder: Path, people: int) -> Path:
    """A simulated community of about so many people who answered."""
    from atpgraph.cqa import Advisor, Site, ingest, simulate_community, write_dump

    users = round(people * 1.1)
    community = simulate_community(users, users * 5, n_topics=12, years=2.0, random_state=0)
    write_dump(community, folder / "dump", random_state=0)
    ingest(folder / "dump", folder / "site")
    return Advisor.train(Site(folder / "site")).save(folder / "model")


def kills(given: argparse.Namespace) -> None:
    """The long form of tests/serve/test_restart.py."""
    from tests.serve.test_restart import check_crash, crash

    with tempfile.TemporaryDirectory() as place:
        model = given.model or small_model(Path(place), 60)
        found = crash(Path(place) / "work", model, given.kills, per_life=40)
        check_crash(found)
        twice = len(found["ids"]) - len(set(found["ids"]))
        print(f"{given.kills} kills, {len(found['taken'])} events acknowledged, none lost; "
              f"{len(found['suggestions'])} suggestions, {len(set(found['ids']))} messages "
              f"received, {twice} of them again under the same id; slowest start "
              f"{found['longest']:.1f} s.")  # fmt: skip


def fuzz(given: argparse.Namespace) -> None:
    """Schemathesis: no answer of 500 or above but 503."""
    with tempfile.TemporaryDirectory() as place:
        model = given.model or small_model(Path(place), 60)
        process, url, token = start(model, Path(place) / "work")
        try:
            headers = {"Authorization": f"Bearer {token}"}
            document = httpx.get(f"{url}/openapi.json", headers=headers, trust_env=False).json()
            count = sum(len(path) for path in document["paths"].values())
            examples = -(-given.requests // count)
            command = [
                "schemathesis", "run", f"{url}/openapi.json", "-H",
                f"Authorization: Bearer {token}", "--checks", "not_a_server_error", "-n",
                str(examples), "--phases", "examples,fuzzing", "--suppress-health-check", "all",
                "--seed", "0", "--exclude-path-regex", "^/v1/tokens",
            ]  # fmt: skip
            # Not the tokens: it would revoke its own, and see nothing but refusals from then on.
            done = subprocess.run(command, check=False)
            told = httpx.get(f"{url}/metrics", headers=headers, trust_env=False)
            text = told.raise_for_status().text
        finally:
            process.terminate()
            process.wait()
    lines = [line for line in text.splitlines() if line.startswith("atp_requests_total{")]
    total = sum(int(line.rpartition(" ")[2]) for line in lines)
    bad = sum(int(line.rpartition(" ")[2]) for line in lines if 'status="5' in line)
    print(f"{total} requests, {bad} answered with 5xx; schemathesis exits with {done.returncode}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=105_195)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--routes", type=float, default=200)
    parser.add_argument("--events", type=float, default=50)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--model", type=Path, help="a trained model instead of a simulated one")
    chosen = parser.parse_args()
    (kills if chosen.kills else fuzz if chosen.requests else measure)(chosen)
