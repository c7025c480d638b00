"""Run `atp qa evaluate` on a site and keep the table of benchmarks/results/.

    python benchmarks/routing.py travel SITE
    python benchmarks/routing.py simulated SITE --truth DUMP/truth.npz
    python benchmarks/routing.py travel SITE --protocol time    # replaces these protocols
    python benchmarks/routing.py travel SITE --protocol none    # rewrites the Markdown only

Also rewrites routing.md, the MRR of every row on every site that was measured.

Every family of protocols runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _common import cpu_model, markdown

import atpgraph

RESULTS = Path(__file__).resolve().parent / "results"
ORDER = ("paper-existing", "paper-new", "time-own", "time-all", "time-newcomers")


def main() -> None:
    """Run the protocols asked for, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="what the results are called")
    parser.add_argument("site", type=Path, help="folder made by 'atp qa ingest'")
    parser.add_argument("--protocol", default="paper,time")
    parser.add_argument("--truth", type=Path, help="truth.npz of a simulated community")
    parser.add_argument("--text", default="static", help="text model of the routers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    file = RESULTS / f"routing-{options.name}.json"
    file.parent.mkdir(exist_ok=True)
    for family in [] if options.protocol == "none" else options.protocol.split(","):
        run_family(file, options, family)
    write_table(file)
    write_summary()


def write_summary() -> None:
    """MRR of all rows on all sites; an asterisk where the router is above at 95 %."""
    parts = ["# Routing: MRR", NOTE]
    for file in sorted(RESULTS.glob("routing-*.json")):
        kept = json.loads(file.read_text())
        found = {name: r for name, r in kept["protocols"].items() if r["questions"]}
        methods = {m for r in found.values() for m in r["methods"]}

        def order(method: str, found: dict[str, Any] = found) -> float:
            last = list(found.values())[-1]["methods"]
            return -last[method]["mrr"]["mean"] if method in last else 0.0

        rows = []
        for method in sorted(methods, key=order):
            cells = [method]
            for result in found.values():
                others = (row for name, row in result["methods"].items() if name != "oracle")
                best = max(row["mrr"]["mean"] for row in others)
                row = result["methods"].get(method)
                if row is None:
                    cells.append("")
                    continue
                text = f"{row['mrr']['mean']:.3f}"
                above = row.get("router_above")
                star = "*" if above and above["low"] > 0 else ""
                cells.append((f"**{text}**" if row["mrr"]["mean"] == best else text) + star)
            rows.append(cells)
        columns = [f"{name} ({r['questions']:,})" for name, r in found.items()]
        parts += [f"## {kept['site']}", markdown(["row", *columns], rows)]
    (RESULTS / "routing.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


NOTE = (
    "Made by `benchmarks/routing.py` from the files beside it, which have intervals, commands and "
    "times. Numbers of test questions in parentheses; the best but the oracle in bold; an asterisk "
    "where the 95 % interval of the router's paired lead over the row is above 0."
)


def run_family(file: Path, options: argparse.Namespace, family: str) -> None:
    """Measure one family of protocols and put it into the file."""
    typed = ["qa", "evaluate", str(options.site), "--protocol", family, "--seed"]
    typed += [str(options.seed), "--text", options.text]
    if options.truth is not None:
        typed += ["--truth", str(options.truth)]
    typed += ["--json"]
    # What is written down names files, not the folders of the machine they lay on.
    shown = [Path(word).name if "/" in word else word for word in typed]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "atpgraph", *typed, "--quiet"], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"atp {shlex.join(typed)} ended with status {done.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = {
        "command": f"atp {shlex.join(shown)}",
        "version": atpgraph.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seed": options.seed,
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)),
        "load": round(os.getloadavg()[0], 1),
    }
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"protocols": {}}
    kept["site"] = options.name
    kept["machine"] = f"{os.cpu_count()} cores ({cpu_model()}), Python {platform.python_version()}"
    for name, result in json.loads(done.stdout).items():
        kept["protocols"][name] = {"run": run, **result}
    kept["protocols"] = {
        name: kept["protocols"][name] for name in ORDER if name in kept["protocols"]
    }
    waiting = file.with_suffix(".part")
    waiting.write_text(json.dumps(kept, indent=1) + "\n")
    waiting.replace(file)


def write_table(file: Path) -> None:
    """The Markdown beside the JSON."""
    kept = json.loads(file.read_text())
    parts = [f"# Routing on {kept['site']}", f"{kept['machine']}."]
    runs: list[dict[str, Any]] = []
    for result in kept["protocols"].values():
        if result["run"] not in runs:
            runs.append(result["run"])
    parts += [
        f"`{run['command']}`, atpgraph {run['version']}, {run['date']}, seed {run['seed']}: "
        f"{run['seconds']:.0f} s ({run['cpu_seconds']:.0f} s of processor time, load "
        f"{run['load']} at the end), {run['peak_mb']:,} MB at most."
        for run in runs
    ]
    for name, result in kept["protocols"].items():
        parts.append(
            f"## {name}\n\n{result['questions']:,} questions, {result['candidates_mean']:.1f} "
            f"candidates each; the accepted answerer is one of them for {result['reachable']:,}."
        )
        if not result["questions"]:
            continue
        rows = []
        for method, row in sorted(
            result["methods"].items(), key=lambda item: -item[1]["mrr"]["mean"]
        ):
            mrr, above = row["mrr"], row.get("router_above")
            gap = ["", ""]
            if above:
                gap = [
                    f"{above['mean']:+.3f} ({above['low']:+.3f} to {above['high']:+.3f})",
                    f"{above['p']:.4f}",
                ]
            rows.append(
                [
                    method,
                    f"{mrr['mean']:.3f} ({mrr['low']:.3f} to {mrr['high']:.3f})",
                    *(f"{row[m]:.3f}" for m in ("p@1", "p@3", "accuracy", "ndcg", "hits@10")),
                    *gap,
                    f"{row['seconds']:.1f}",
                ]
            )
        columns = ["row", "MRR", "P@1", "P@3", "accuracy", "NDCG", "Hits@10"]
        parts.append(markdown([*columns, "router above by", "p", "seconds"], rows))
        found = result.get("calibration")
        if found and found["bins"]:
            parts.append(
                f"The router's confidence in its first choice: expected calibration error "
                f"{found['error']:.3f}, Brier score {found['brier']:.3f} "
                f"({found['brier_constant']:.3f} for stating the mean)."
            )
            bins = [
                [b["questions"], f"{b['stated']:.3f}", f"{b['right']:.3f}"] for b in found["bins"]
            ]
            parts.append(markdown(["questions", "stated", "right"], bins))
            rows = [
                [f"{a['least']:.2f}", f"{a['answered']:.3f}", f"{a['right']:.3f}"]
                for a in found["abstention"]
            ]
            parts.append(markdown(["abstain below", "share answered", "of these right"], rows))
    parts.append(
        "MRR with 95 % bootstrap intervals over questions. The router's lead over a row is paired "
        "by question; p is the share of resamples in which it is not above the row."
    )
    file.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
