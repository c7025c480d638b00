"""The router with words, static and dense vectors, against the router of an earlier version.

    python benchmarks/meaning.py NAME SITE --texts dense,static,bm25 --before OLD.npz
    PYTHONPATH=OLD/src python benchmarks/meaning.py NAME SITE --keep OLD.npz    # of that version

Writes benchmarks/results/meaning-NAME.json and meaning.md with all sites measured. Differences are
paired by question, with 95 % intervals (bootstrap).
"""

from __future__ import annotations

import argparse
import datetime
import inspect
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import markdown

import atpgraph
from atpgraph_qa import Site

try:
    from atpgraph.evaluation.resampling import paired_bootstrap
    from atpgraph_qa import evaluate_routing
except ImportError:  # 0.1.0, with --keep
    from atpgraph_qa.evaluation import evaluate_routing

RESULTS = Path(__file__).resolve().parent / "results"
PROTOCOLS = ("time-all", "time-own", "time-newcomers")
OLD, ROUTER = "router 0.1.0", "router"
ROWS = (
    "router",
    "router-newcomers",
    "topic-activity",
    "similar-activity",
    "recent-activity",
    "accepted-answers",
    "bm25",
)


def main() -> None:
    """Measure a site, or keep the ranks of the version that is imported."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="what the results are called")
    parser.add_argument("site", type=Path, help="folder made by 'atp qa ingest'")
    parser.add_argument("--texts", default="dense,static,bm25")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--before", type=Path, help="ranks of an earlier version")
    parser.add_argument("--keep", type=Path, help="write the router's ranks here, nothing else")
    options = parser.parse_args()
    if options.keep is not None:
        found = evaluate_routing(Site(options.site), protocols=PROTOCOLS[:2], methods=[ROUTER])
        kept = {name: r.ranks[ROUTER].rank for name, r in found.results.items()}
        np.savez(options.keep, **kept)
        return
    file = RESULTS / f"meaning-{options.name}.json"
    measured = json.loads(file.read_text()) if file.exists() else {}
    for text in options.texts.split(","):
        wanted = options.protocols.split(",")
        found = measure(options.site, text, wanted, options.before)
        measured[text] = measured.get(text, {}) | found
        file.write_text(json.dumps(measured, indent=1) + "\n")
    write_tables()


def measure(site: Path, text: str, protocols: list[str], before: Path | None) -> dict[str, Any]:
    """All protocols with one text model."""
    assert "text" in inspect.signature(evaluate_routing).parameters
    started = time.process_time()
    found = evaluate_routing(Site(site), protocols=protocols, methods=ROWS, text=text)
    result: dict[str, Any] = {
        "version": atpgraph.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    for name, got in found.results.items():
        ranks = {row: each.rank for row, each in got.ranks.items()}
        if before is not None and name in (old := np.load(before)):
            assert len(old[name]) == len(got.candidates)
            ranks[OLD] = old[name]
        result[name] = {
            "questions": len(got.candidates),
            "reachable": got.reachable,
            "rows": {row: row_of(row, ranks, got.activity) for row in ranks},
            "calibration_error": got.to_dict()["calibration"]["error"],
        }
    return result


def row_of(row: str, ranks: dict[str, Any], activity: Any) -> dict[str, Any]:
    """MRR, that of people with few answers, and the router's lead."""
    each = 1.0 / ranks[row]
    few = (activity >= 1) & (activity <= 10)
    made: dict[str, Any] = {
        "mrr": float(each.mean()) if len(each) else None,
        "few": float(each[few].mean()) if few.any() else None,
        "few_questions": int(few.sum()),
        "by_answers": [
            [least, int(((activity >= least) & (activity <= most)).sum()),
             mean(each[(activity >= least) & (activity <= most)])]
            for least, most in ((0, 0), (1, 3), (4, 10), (11, 100), (101, 10**9))
        ],
    }  # fmt: skip
    if row != ROUTER and len(each):
        gap = paired_bootstrap(1.0 / ranks[ROUTER], each)
        made["router_above"] = {**gap.difference.to_json(), "p": gap.p_value}
    return made


def mean(values: Any) -> float | None:
    """The mean, None of nothing."""
    return float(values.mean()) if len(values) else None


def write_tables() -> None:
    """One table per site and protocol."""
    parts = ["# Routing by meaning", NOTE]
    for file in sorted(RESULTS.glob("meaning-*.json")):
        measured = json.loads(file.read_text())
        for protocol in PROTOCOLS:
            rows = []
            first = next((each[protocol] for each in measured.values() if protocol in each), None)
            if first is None:
                continue
            for text, result in measured.items():
                if protocol not in result:
                    continue
                for row, got in sorted(
                    result[protocol]["rows"].items(), key=lambda item: -(item[1]["mrr"] or 0)
                ):
                    above = got.get("router_above")
                    rows.append(
                        [
                            text,
                            row,
                            shown(got["mrr"]),
                            f"{above['mean']:+.3f} ({above['low']:+.3f} to {above['high']:+.3f})"
                            if above
                            else "",
                            *(shown(value) for _, _, value in got["by_answers"][1:]),
                        ]
                    )
            counts = next(iter(first["rows"].values()))["by_answers"]
            groups = ("1-3", "4-10", "11-100", "101+")
            header = ["text", "row", "MRR", "router above by"]
            header += [f"{g} ({n})" for g, (_, n, _) in zip(groups, counts[1:], strict=True)]
            never = f"{counts[0][1]} had never answered"
            parts += [
                f"## {file.stem.removeprefix('meaning-')}, {protocol}",
                f"{first['questions']:,} questions; {first['reachable']:,} accepted answerers were "
                f"candidates, {never}.",
                markdown(header, rows),
            ]
    (RESULTS / "meaning.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def shown(value: float | None) -> str:
    """Three digits, or nothing."""
    return "" if value is None else f"{value:.3f}"


NOTE = (
    "Made by `benchmarks/meaning.py` (its first lines have the commands). MRR; the router's lead "
    "over a row, paired by question, with its 95 % interval; MRR by how many answers the accepted "
    "answerer had given before (numbers of questions in the header)."
)


if __name__ == "__main__":
    main()
