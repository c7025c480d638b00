"""Run `atp links compare` row by row and keep the tables of benchmarks/results/.

Every row runs in a process of its own, so that its peak memory is its own, and is written as soon
as it is done. Splits depend on the seed alone, so rows run at different times saw the same ones.

    python benchmarks/linkpred.py wiki-vote --seeds 5
    python benchmarks/linkpred.py wiki-vote --methods atp-log,nrp    # replaces these rows
    python benchmarks/linkpred.py wiki-vote --methods none           # rewrites the Markdown only
    python benchmarks/linkpred.py wiki-vote --protocol dirlinkbench  # adds to rows of this version
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import atpgraph
from atpgraph.evaluation.intervals import compare
from atpgraph.linkpred.registry import PUBLISHED, ROWS, choose

RESULTS = Path(__file__).resolve().parent / "results"
HEADLINE = {
    "paper": "auc",
    "random": "auc",
    "reversed": "auc",
    "ranking": "mrr",
    "dirlinkbench": "hits@100",
}


def main() -> None:
    """Run the rows asked for, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", help="an edge list, or a name of 'atp data list'")
    parser.add_argument("--methods", default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--protocol", default="paper,random,reversed,ranking")
    options = parser.parse_args()
    suffix = "" if options.dim == 64 else f"-k{options.dim}"
    file = RESULTS / f"linkpred-{Path(options.graph).stem.lower()}{suffix}.json"
    file.parent.mkdir(exist_ok=True)
    chosen = [] if options.methods == "none" else choose(options.methods)
    for row in chosen:
        run_row(file, options, row.key)
    write_table(file)


def run_row(file: Path, options: argparse.Namespace, key: str) -> None:
    """Measure one row and put it into the file."""
    typed = ["links", "compare", options.graph, "--methods", key, "--seeds", str(options.seeds)]
    typed += ["--dim", str(options.dim), "--protocol", options.protocol, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "atpgraph", *typed, "--quiet"], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"atp {shlex.join(typed)} ended with status {done.returncode}")
    found = json.loads(done.stdout)
    entry = found.pop("methods")[key]
    found = {name: found[name] for name in ("graph", "nodes", "edges", "test_edges", "dims")}
    entry |= {
        "command": f"atp {shlex.join(typed)}".replace(options.graph, Path(options.graph).name),
        "version": atpgraph.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seeds": options.seeds,
    }
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"methods": {}}
    before = kept["methods"].get(key, {})
    if all(before.get(name) == entry[name] for name in ("version", "seeds")):
        entry["protocols"] = before["protocols"] | entry["protocols"]
    kept |= found
    kept["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python " + (
        platform.python_version()
    )
    kept["methods"][key] = entry
    kept["methods"] = {name: kept["methods"][name] for name in ROWS if name in kept["methods"]}
    waiting = file.with_suffix(".part")
    waiting.write_text(json.dumps(kept, indent=1) + "\n")
    waiting.replace(file)
    print(f"{options.graph} {key}: done", flush=True)


def write_table(file: Path) -> None:
    """The Markdown beside the JSON."""
    data = json.loads(file.read_text())
    methods = {key: row for key, row in data["methods"].items() if "failure" not in row}
    protocols = [p for p in HEADLINE if any(p in row["protocols"] for row in methods.values())]
    best = {
        p: max(
            (key for key in methods if p in methods[key]["protocols"]),
            key=lambda key: methods[key]["protocols"][p][HEADLINE[p]]["mean"],
        )
        for p in protocols
    }
    seeds = sorted({row["seeds"] for row in methods.values()})
    dates = sorted({row["date"] for row in methods.values()})
    versions = sorted({row["version"] for row in methods.values()})
    lines = [
        f"# Link prediction on {data['graph']}, dimension {data['dims'][0]}",
        "",
        f"{data['nodes']:,} nodes, {data['edges']:,} edges, {data['test_edges']:,} test edges; "
        f"seeds: {' or '.join(map(str, seeds))}; mean ± half of the "
        "95 % interval over the seeds.",
        f"Made by `python benchmarks/linkpred.py {file.stem.split('-k')[0][9:]}`, which runs, row "
        "by row, "
        f"`atp links compare {data['graph'].lower()} --methods ROW --seeds {seeds[-1]} "
        f"--dim {data['dims'][0]} --json`;",
        f"atpgraph {', '.join(versions)}, {' and '.join(dates)}, {data['machine']}; the machine "
        "was shared, so times are upper bounds.",
        "Bold: the best mean. ≈: the difference to the best is not significant (paired t-test over "
        "the seeds, p ≥ 0.05). Memory: the largest rise during a fit.",
        "",
        "| row | group | "
        + " | ".join(f"{p} {HEADLINE[p].upper()}" for p in protocols)
        + " | fit, s | memory, MB |",
        "|---|---|" + "---:|" * (len(protocols) + 2),
    ]
    for key, row in methods.items():
        cells = [cell(methods, key, p, best[p]) for p in protocols]
        seconds = next(iter(row["protocols"].values()))["seconds"]["mean"]
        memory = row["peak_memory_bytes"]
        lines.append(
            f"| {row['name']} (`{key}`) | {row['group']} | {' | '.join(cells)} | {seconds:.2f} | "
            f"{'' if memory is None else f'{memory / 1e6:,.0f}'} |"
        )
    notes = [f"{row['name']}: {row['note']}." for row in methods.values() if "note" in row]
    lines += ["", *notes] if notes else []
    failed = [(key, row["failure"]) for key, row in data["methods"].items() if "failure" in row]
    lines += ["", *(f"`{key}` has no result: {why}" for key, why in failed)] if failed else []
    lines += pooled(methods, PUBLISHED.get(data["graph"], {}))
    file.with_suffix(".md").write_text("\n".join(lines) + "\n")


def pooled(methods: dict[str, Any], published: dict[str, float]) -> list[str]:
    """Every metric of DirLinkBench, for the rows that have them; and what others published."""
    rows = {key: row["protocols"].get("dirlinkbench") for key, row in methods.items()}
    names = ("hits@20", "hits@50", "hits@100", "mrr", "auc", "ap")
    table = [
        f"| `{key}` | "
        + " | ".join(
            f"{row[name]['mean']:.3f} ±{row[name]['high'] - row[name]['mean']:.3f}"
            for name in names
        )
        + " |"
        for key, row in rows.items()
        if row and row["auc"]["high"] is not None
    ]
    if not table:
        return []
    head = ["", "All metrics of `dirlinkbench`, pooled over the test pairs:", ""]
    head += ["| row | Hits@20 | Hits@50 | Hits@100 | MRR | AUC | AP |", "|---|" + "---:|" * 6]
    theirs = [
        f"| *{name}, as published* | | | *{v / 100:.3f}* | | | |" for name, v in published.items()
    ]
    return head + table + theirs


def cell(methods: dict[str, Any], key: str, protocol: str, best: str) -> str:
    """Mean ± half the interval, marked if it is the best or level with it."""
    if protocol not in methods[key]["protocols"]:
        return "–"
    value = methods[key]["protocols"][protocol][HEADLINE[protocol]]
    text = f"{value['mean']:.4f}"
    if value["high"] is not None:
        text += f" ±{value['high'] - value['mean']:.4f}"
    if key == best:
        return f"**{text}**"
    top = methods[best]["protocols"][protocol][HEADLINE[protocol]]["values"]
    both = min(len(top), len(value["values"]))
    if both > 1 and compare(value["values"][:both], top[:both]).p_value >= 0.05:
        return f"≈ {text}"
    return text


if __name__ == "__main__":
    main()
