"""The reports: what they say, and how they look in a browser on a phone and a desk."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from atpgraph import DiGraph, noisy_hierarchy, write_edgelist
from atpgraph.cli._app import app
from atpgraph.linkpred.benchmark import run
from atpgraph.report import comparison, write_index
from atpgraph_qa import (
    Site,
    evaluate_routing,
    ingest,
    reports,
    simulate_community,
    write_dump,
)
from tests.report.browser import Browser, browser, find_chromium


def text_of(page: Path) -> str:
    """What a reader sees: no tags, no style."""
    body = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(html.unescape(body).split())


@pytest.fixture(scope="module")
def planted() -> tuple[DiGraph, np.ndarray]:
    return noisy_hierarchy(150, 700, 60, random_state=5)


@pytest.fixture(scope="module")
def pages(planted, tmp_path_factory) -> dict[str, Path]:
    """Every report of both distributions, small."""
    graph, _ = planted
    root = tmp_path_factory.mktemp("reports")
    lab = run(graph, "trivial,nrp,hope-katz,svd", dim=[8, 4], seeds=2, name="a graph")
    community = simulate_community(120, 600, n_topics=4, bounty_share=0.2, random_state=3)
    write_dump(community, root / "dump")
    ingest(root / "dump", root / "site")
    site = Site(root / "site")
    routed = evaluate_routing(site, protocols=["time"], methods=["answers", "bm25", "random"])
    html = {
        "linkpred": comparison.render(lab, "atp links compare"),
        "routing": reports.render(routed, "atp qa evaluate"),
    }
    return {name: write_index(root / name, page) for name, page in html.items()}


def test_a_method_keeps_its_color_in_every_panel(pages) -> None:
    for name in ("linkpred", "routing"):
        source = pages[name].read_text(encoding="utf-8")
        seen: dict[str, set[str]] = {}
        marks = [
            (r'class="bar"[^>]* fill="([^"]*)"><title>([^<:]*)', (2, 1)),
            (r'<circle[^>]* fill="([^"]*)"><title>([^<:]*)', (2, 1)),
            (r'class="line"[^>]* stroke="([^"]*)"[^>]*><title>([^<]*)', (2, 1)),
        ]
        for pattern, (label, color) in marks:
            for mark in re.finditer(pattern, source):
                seen.setdefault(mark[label], set()).add(mark[color])
        assert len(seen) >= 3
        assert all(len(colors) == 1 for colors in seen.values()), seen
        colored = [colors for colors in seen.values() if colors != {"var(--muted)"}]
        assert len(colored) == len(set(map(frozenset, colored))), "two methods share a color"


def test_pages_are_self_contained(pages) -> None:
    for page in pages.values():
        source = page.read_text(encoding="utf-8")
        assert not re.search(r"https?://|<script|src=|@import|url\(", source)
        assert source.count("<html") == source.count("</html>") == 1


def test_a_command_writes_its_report(planted, tmp_path) -> None:
    write_edgelist(planted[0], tmp_path / "g.txt")
    runner = CliRunner()
    typed = ["links", "compare", str(tmp_path / "g.txt"), "--methods", "levels", "--seeds", "1"]
    done = runner.invoke(app, [*typed, "--report", str(tmp_path / "a" / "b"), "--json"])
    assert done.exit_code == 0, done.stderr
    assert "report written to" in done.stderr
    page = Path(json.loads(done.stdout)["report"])
    assert page == tmp_path / "a" / "b" / "index.html"
    assert "Link prediction on g.txt" in text_of(page)
    done = runner.invoke(app, ["cycles", typed[2], "--report", str(tmp_path / "c"), "--json"])
    page = Path(json.loads(done.stdout)["report"])
    assert "removed edges, most certain first" in text_of(page)
    (tmp_path / "file").write_text("")
    done = runner.invoke(app, [*typed, "--report", str(tmp_path / "file" / "x"), "-q"])
    assert done.exit_code == 2
    assert "Cannot create the folder" in done.stderr


_MEASURE = """(() => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  const charts = [...document.querySelectorAll("svg.chart")];
  const drawn = charts.filter(s => {
    const box = s.getBoundingClientRect(), ink = s.getBBox();
    const marks = [...s.querySelectorAll(".bar, .line, .point")];
    const inside = marks.every(m => {
      const b = m.getBBox(); return Number.isFinite(b.x + b.y) && b.x >= -1 && b.y >= -1; });
    return box.width > 50 && box.height > 30 && ink.width > 0 && marks.length && inside; });
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const lum = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = element => {
    for (let e = element; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let contrast = 21, smallest = 100, cut = 0;
  const view = document.documentElement.clientWidth;
  for (const e of document.body.querySelectorAll("*")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    if (e.tagName === "title" || e.tagName === "SCRIPT") continue;
    const style = getComputedStyle(e), svg = e.closest("svg");
    const [a, b] = [lum(rgb(svg ? style.fill : style.color)), lum(paper(e))].sort((x, y) => x - y);
    contrast = Math.min(contrast, (b + 0.05) / (a + 0.05));
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    smallest = Math.min(smallest, parseFloat(style.fontSize) * scale);
    const box = e.getBoundingClientRect();
    if (svg) {
      const frame = svg.getBoundingClientRect();
      if (box.left < frame.left - 2 || box.right > frame.right + 2) cut += 1;
    } else if (!e.closest(".scroll") && box.right > view + 1) cut += 1;
  }
  const tables = [...document.querySelectorAll("table")].every(t => {
    const box = t.parentElement.getBoundingClientRect();
    return t.parentElement.className === "scroll" && box.right <= view + 1; });
  return {charts: charts.length, drawn: drawn.length, contrast, smallest, cut, tables,
          wide: document.documentElement.scrollWidth - view};
})()"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Iterator[Browser]:
    if find_chromium() is None:
        pytest.skip("no Chromium on this machine")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_measurement_notices_what_is_wrong(tmp_path_factory, tmp_path) -> None:
    if find_chromium() is None:
        pytest.skip("no Chromium on this machine")
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<meta name="viewport" content="width=device-width">'
        '<body><p style="width:900px;color:#999;font-size:8px">wide, pale and small</p>'
        '<table><tr><td>x</td></tr></table><svg class="chart" viewBox="0 0 9 9"></svg>'
        "<script>console.error('oh')</script>"
    )
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(bad.as_uri(), 390, "light")
        found = opened.evaluate(_MEASURE)
        assert found["wide"] > 0
        assert found["cut"] == 1
        assert found["contrast"] < 4.5
        assert found["smallest"] == 8
        assert (found["charts"], found["drawn"], found["tables"]) == (1, 0, False)
        assert len(opened.messages) == 1
        assert "oh" in opened.messages[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_in_a_browser(pages, chromium, tmp_path, width, scheme) -> None:
    for name, page in pages.items():
        chromium.open(page.as_uri(), width, scheme)
        found = chromium.evaluate(_MEASURE)
        assert found["wide"] <= 0, f"{name} scrolls sideways"
        assert found["tables"], f"{name}: a table leaves its box"
        assert found["cut"] == 0, f"{name}: text is cut off"
        assert found["charts"] == found["drawn"] > 0, f"{name}: a chart is empty"
        assert found["contrast"] >= 4.5, name
        assert found["smallest"] >= 9, f"{name}: text too small to read"
        paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(253, 253, 252)" if scheme == "light" else "rgb(22, 24, 27)")
        chromium.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 10_000
    assert chromium.messages == []
