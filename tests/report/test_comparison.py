"""The page of a benchmark."""

from __future__ import annotations

import re

import pytest

from atpgraph.graph import DiGraph
from atpgraph.graph.generators import noisy_hierarchy
from atpgraph.linkpred import EmbeddingMethod
from atpgraph.linkpred.benchmark import BenchmarkResult, run
from atpgraph.linkpred.registry import Row
from atpgraph.report import write_index
from atpgraph.report.comparison import render
from tests.linkpred.helpers import formula, hierarchy


@pytest.fixture(scope="module")
def result() -> BenchmarkResult:
    methods = "trivial,nrp,hope-katz"
    return run(hierarchy(), methods, dim=[8, 4], seeds=3, name="a <graph>")


def test_page_is_self_contained_and_escaped(result: BenchmarkResult, tmp_path) -> None:
    html = render(result, "atp links compare <x>")
    written = write_index(tmp_path / "new" / "folder", html)
    html = written.read_text(encoding="utf-8")
    assert "a &lt;graph&gt;" in html
    assert "a <graph>" not in html
    assert not re.search(r"https?://|<script|src=|@import|url\(", html)
    for kind, number in [("bars", 6), ("lines", 4 + 6 + 6)]:
        assert html.count(f'class="chart {kind}"') == number
    assert html.count("<b>") >= 5


def test_failures_and_missing_protocols_are_told() -> None:
    class Broken(EmbeddingMethod):
        name = "broken"

        def fit(self, graph: DiGraph) -> Broken:
            raise MemoryError("too large")

    made = [
        Row("broken", "ours", lambda k, seed: Broken(), False),
        Row("fine", "ours", lambda k, seed: formula("degree-product"), False),
    ]
    assert "too large" in render(run(hierarchy(), made, seeds=1))
    n = 40
    ring = DiGraph.from_codes(
        list(range(n)) * 3, [(i + d) % n for d in (1, 2, 5) for i in range(n)], n
    )
    assert "not run" in render(run(ring, "degree-product", ["paper", "random"], seeds=1))


def test_the_table_says_that_weights_are_per_protocol() -> None:
    graph = noisy_hierarchy(150, 900, 40, random_state=3).graph
    found = run(graph, "links,degree-product", ["random"], dim=4, seeds=1)
    assert "one linear model for each" in found.to_json()["methods"]["links"]["note"]
    assert "note" not in found.to_json()["methods"]["degree-product"]
    assert "one linear model for each" in render(found)
