"""The service: load on loopback, kills, a database that goes away, Schemathesis.

    python benchmarks/serve.py load [--folder DIR] [--past 30000] [--trial 30] [--seconds 600]
    python benchmarks/serve.py stages [--folder DIR]
    python benchmarks/serve.py kills [--kills 100] [--database sqlite] [--readers 2]
    python benchmarks/serve.py outage [--seconds 60]
    python benchmarks/serve.py requests [--requests 5000]
    python benchmarks/serve.py reports [--suggestions 20000]
    python benchmarks/serve.py replay [--site opendata.stackexchange.com] [--text static]

Each replaces its section of benchmarks/results/serve.json and writes serve.md anew.

Load: the site of benchmarks/route.py, kept in DIR. Rates of routes are tried for a while each, with
50 events a second beside them: twice as high until one does not keep the 99th percentile below
100 ms or has an error, then between the last two. Four fifths of the best one then have to hold for
the whole time. At the end far more comes than can be answered. Requests are sent at their times
whether or not earlier ones have been answered, and a request's time counts from when it should have
been sent, so that a slow service cannot slow its own load down. The client shares the cores.
Replay: a year of a site of ../shared, sent in order in approve mode, with the person who answered
in the end as the moderator's choice. The rest runs on a small simulated site, so that a hundred
starts take minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx
from _common import ROOT, cpu_model
from _faults import kills, outage, tell_kills, tell_outage
from _load import LEAST, load, tell_load
from _replay import replay, tell_replay
from _reports import reports, tell_reports
from _service import service, small_model
from _stages import stages, tell_stages

RESULTS = ROOT / "benchmarks" / "results"


def fuzz(given: argparse.Namespace) -> dict[str, Any]:
    """Schemathesis, found on the PATH: no answer of 500 or above but 503."""
    with tempfile.TemporaryDirectory() as place:
        model = given.model or small_model(Path(place))
        with service(model, Path(place) / "work") as (_, url, token):
            headers = {"Authorization": f"Bearer {token}"}
            document = httpx.get(
                f"{url}/openapi.json", headers=headers, timeout=60, trust_env=False
            ).json()
            count = sum(len(path) for path in document["paths"].values())
            command = [
                shutil.which("schemathesis") or "schemathesis", "run", f"{url}/openapi.json",
                "-H", f"Authorization: Bearer {token}", "--checks", "not_a_server_error", "-n",
                str(-(-given.requests // count)), "--phases", "examples,fuzzing",
                "--suppress-health-check", "all", "--seed", str(given.seed),
                "--exclude-path-regex", "^/v1/tokens",
            ]  # fmt: skip
            # Not the tokens: it would revoke its own, and see nothing but refusals from then on.
            done = subprocess.run(command, check=False, cwd=place)
            for _ in range(60):  # an event that cannot be applied would hold up all later ones
                told = httpx.get(f"{url}/metrics", headers=headers, timeout=60, trust_env=False)
                text = told.raise_for_status().text
                waiting = float(text.partition("\natp_events_waiting ")[2].split()[0])
                if not waiting:
                    break
                time.sleep(0.5)
    statuses: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("atp_request_seconds_count{"):
            statuses[line.partition('status="')[2][:3]] += round(float(line.rpartition(" ")[2]))
    return {"statuses": dict(sorted(statuses.items())), "exit": done.returncode,
            "operations": count, "waiting": waiting, "seed": given.seed}  # fmt: skip


def tell_fuzz(found: dict[str, Any]) -> str:
    """The section of the table."""
    statuses = found["statuses"]
    bad = sum(count for status, count in statuses.items() if status >= "500")
    seen = ", ".join(f"{count:,} × {status}" for status, count in statuses.items())
    return (
        f"{sum(statuses.values()):,} requests counted by the service over {found['operations']} "
        f"operations (all but those on tokens: it would revoke its own), seed {found['seed']}: "
        f"{seen}; {bad} of 500 or above. Events that could not be applied: "
        f"{found.get('waiting', 0):.0f}. Schemathesis exits with {found['exit']}."
    )


SECTIONS: dict[str, tuple[str, Callable[..., dict[str, Any]], Callable[..., str]]] = {
    "load-static": ("Load on loopback, static text", load, tell_load),
    "load-dense": ("Load on loopback, MiniLM", load, tell_load),
    "stages-static": ("Where the time of a route goes, static text", stages, tell_stages),
    "stages-dense": ("Where the time of a route goes, MiniLM", stages, tell_stages),
    "kills-sqlite": ("`kill -9` at random moments, SQLite", kills, tell_kills),
    "kills-postgresql": ("`kill -9` at random moments, PostgreSQL", kills, tell_kills),
    "outage": ("The database goes away", outage, tell_outage),
    "requests": ("Schemathesis on the OpenAPI document", fuzz, tell_fuzz),
    "reports": ("Pages with figures, and forgetting somebody", reports, tell_reports),
    "replay": ("A year of a real site in approve mode", replay, tell_replay),
}
CHOICES = ("load", "stages", "kills", "outage", "requests", "reports", "replay")


def _typed(arguments: list[str]) -> list[str]:
    """What was typed, without the folders of this machine."""
    places = {"--folder": "DIR", "--model": "MODEL"}
    before = ["", *arguments]
    return [places.get(last, given) for last, given in zip(before, arguments, strict=False)]


def keep(name: str, found: dict[str, Any], results: Path) -> None:
    """Replace a section of the results, and write the page."""
    file = results / "serve.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    known[name] = {
        "command": f"python benchmarks/serve.py {' '.join(_typed(sys.argv[1:]))}",
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": os.getloadavg()[0],
        **found,
    }
    file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    parts = [
        "# The service under load and faults",
        f"Made by `benchmarks/serve.py`; Python {platform.python_version()}, {os.cpu_count()} "
        f"cores ({cpu_model()}), everything on loopback. Each section has its command; load "
        "averages are those at the end of a section, its own load included.",
    ]
    for section, (title, _, tell) in SECTIONS.items():
        if section in known:
            one = known[section]
            said = f"`{one['command']}`, {one['at']}, load average {one['load']:.1f}."
            parts += [f"## {title}", said, tell(one)]
    page = "\n\n".join(parts) + "\n"
    (results / "serve.md").write_text(page, encoding="utf-8")
    print(SECTIONS[name][2](found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("section", choices=CHOICES)
    parser.add_argument("--folder", type=Path, help="keep the large site here, or find it")
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--text", default="static", choices=("static", "dense"))
    parser.add_argument("--trials", type=int, default=8, help="at most so many rates are tried")
    parser.add_argument("--trial", type=float, default=30, help="seconds of a trial")
    parser.add_argument("--start", type=float, default=LEAST, help="rate of the first trial")
    parser.add_argument("--readers", type=int, help="processes that rank (2; for kills, 0)")
    parser.add_argument("--routes", type=float, help="rate of the long run, not the best trial")
    parser.add_argument("--seconds", type=float, help="of the long run (600), of the outage (60)")
    parser.add_argument("--events", type=float, default=50)
    parser.add_argument("--past", type=int, default=0, help="events before the load begins")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--suggestions", type=int, default=20_000)
    parser.add_argument("--site", default="opendata.stackexchange.com", help="for the replay")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, help="a small trained model, to save time")
    given = parser.parse_args()
    given.seconds = given.seconds or {"load": 600.0, "outage": 60.0}.get(given.section, 0.0)
    if given.readers is None:
        given.readers = 0 if given.section == "kills" else 2
    kinds = {"kills": given.database, "load": given.text, "stages": given.text}
    name = "-".join(filter(None, (given.section, kinds.get(given.section))))
    keep(name, SECTIONS[name][1](given), RESULTS)


if __name__ == "__main__":
    main()
