"""The scripts that keep the tables of benchmarks/results/."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from atpgraph.graph.edgelist import write_edgelist
from atpgraph.graph.generators import noisy_hierarchy

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("linkpred", "linkpred_summary"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import linkpred
    import linkpred_summary

    for module in (linkpred, linkpred_summary):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    graph = tmp_path / "wiki-vote.txt"
    write_edgelist(noisy_hierarchy(100, 500, 30, random_state=0).graph, graph)

    def run(methods: str) -> dict[str, object]:
        typed = ["linkpred.py", str(graph), "--methods", methods, "--seeds", "2"]
        monkeypatch.setattr(sys, "argv", typed)
        linkpred.main()
        linkpred_summary.main()
        return json.loads((tmp_path / "results" / "linkpred-wiki-vote.json").read_text())

    yield run
    for name in ("linkpred", "linkpred_summary"):
        sys.modules.pop(name, None)


def test_rows_are_kept_and_replaced(script, tmp_path: Path) -> None:
    first = script("degree-product,preferential")
    assert list(first["methods"]) == ["degree-product", "preferential"]
    again = script("levels")
    assert list(again["methods"]) == ["levels", "degree-product", "preferential"]  # table order
    assert again["methods"]["preferential"] == first["methods"]["preferential"]
    row = again["methods"]["levels"]
    assert "--methods levels --seeds 2" in row["command"]
    assert row["seeds"] == 2
    assert row["date"]
    assert row["version"]
    table = (tmp_path / "results" / "linkpred-wiki-vote.md").read_text()
    assert table.count("**") == 2 * 4  # one best row for each protocol
    reversed_auc = row["protocols"]["reversed"]["auc"]["mean"]
    assert f"{reversed_auc:.4f}" in table
    summary = (tmp_path / "results" / "linkpred.md").read_text()
    assert "*0.9481*" in summary  # the paper's, marked as theirs
    assert f"levels {reversed_auc:.4f}" in summary
