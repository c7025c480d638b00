"""The script that keeps the tables of routing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from atpgraph_qa import Site, ingest, simulate_community, write_dump
from atpgraph_qa.evaluation.evaluation import evaluate_routing

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_tables_say_what_the_json_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "routing", raising=False)
    import routing

    monkeypatch.setattr(routing, "RESULTS", tmp_path)
    write_dump(simulate_community(60, 200, n_topics=3, random_state=1), tmp_path / "dump")
    ingest(tmp_path / "dump", tmp_path / "site")
    found = evaluate_routing(
        Site(tmp_path / "site"),
        protocols=["time"],
        methods=["accepted-answers", "random"],
        truth=tmp_path / "dump" / "truth.npz",
    ).to_dict()
    run = {
        "command": "atp qa evaluate site",
        "version": "0",
        "date": "2000-01-01",
        "seed": 0,
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "peak_mb": 1,
        "load": 0.0,
    }
    protocols = {name: {"run": run, **result} for name, result in found.items()}
    file = tmp_path / "routing-small.json"
    kept = {"site": "small", "machine": "here", "protocols": protocols}
    file.write_text(json.dumps(kept), encoding="utf-8")
    routing.write_table(file)
    routing.write_summary()
    table = file.with_suffix(".md").read_text(encoding="utf-8")
    summary = (tmp_path / "routing.md").read_text(encoding="utf-8")
    assert table.count("atp qa evaluate site") == 1
    for name, result in found.items():
        assert f"## {name}" in table
        assert f"{name} ({result['questions']:,})" in summary
        for method, row in result["methods"].items():
            assert f"| {method} | {row['mrr']['mean']:.3f} (" in table
            assert f"{row['mrr']['mean']:.3f}" in summary
    sys.modules.pop("routing", None)
