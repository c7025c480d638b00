"""Pictures: what is in them, that they are the same every time, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from typer.testing import CliRunner, Result

from atpgraph import ATP, DiGraph, InputError, break_cycles, levels, noisy_hierarchy, write_edgelist
from atpgraph.cli._app import app
from atpgraph.plot import (
    MAX_NODES,
    plot,
    plot_hierarchy,
    plot_levels,
    plot_map,
    plot_objective,
    save,
)
from atpgraph.plot.figures import projection
from atpgraph.util.palette import RED

SVG = "{http://www.w3.org/2000/svg}"


def atp(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def graph() -> DiGraph:
    return noisy_hierarchy(40, 90, 12, random_state=3).graph


@pytest.fixture(scope="module")
def model(graph: DiGraph) -> ATP:
    return ATP(n_components=5).fit(graph)


def drawn(figure: object, tmp_path: Path) -> ET.Element:
    return ET.parse(save(figure, tmp_path / "picture.svg")).getroot()


def named(root: ET.Element, prefix: str) -> dict[int, ET.Element]:
    """Groups called prefix-NUMBER."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        match = re.fullmatch(rf"{prefix}-(\d+)", group.get("id", ""))
        if match:
            found[int(match[1])] = group
    return found


def centre(group: ET.Element) -> tuple[float, float]:
    path = next(group.iter(f"{SVG}path")).get("d", "")
    numbers = np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2)
    return tuple((numbers.min(axis=0) + numbers.max(axis=0)) / 2)


@pytest.mark.parametrize("of_model", [False, True])
def test_hierarchy_has_every_node_edge_and_row(graph, model, tmp_path, of_model) -> None:
    broken = break_cycles(graph)
    level = levels(broken.dag)
    root = drawn(plot_hierarchy(model if of_model else graph), tmp_path)
    assert sorted(named(root, "node")) == list(range(graph.n_nodes))
    assert sorted(named(root, "removed")) == broken.removed.tolist()
    everything = set(named(root, "edge")) | set(named(root, "removed"))
    assert everything == set(range(graph.n_edges))
    rows = re.findall(r'id="row-0-(\d+)-0"', ET.tostring(root, encoding="unicode"))
    assert sorted(map(int, rows)) == list(range(1, level.max() + 1))
    # Nodes of a level stand on its row, and a higher level is higher up (smaller y).
    height = {at: [] for at in range(1, level.max() + 1)}
    for node, group in named(root, "node").items():
        height[int(level[node])].append(centre(group)[1])
    means = [np.mean(ys) for ys in height.values()]
    assert all(np.ptp(ys) < 0.01 for ys in height.values())
    assert np.all(np.diff(means) < 0)
    # Removed edges, and only they, are red.
    red = [group for group in root.iter(f"{SVG}path") if RED in group.get("style", "")]
    assert len(red) >= len(broken.removed)
    for group in named(root, "edge").values():
        assert RED not in ET.tostring(group, encoding="unicode")
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert f"{len(broken.removed)} removed to break cycles" in texts
    assert {str(label) for label in graph.labels.tolist()} <= set(texts)


def test_labels_self_loops_and_single_nodes(tmp_path) -> None:
    odd = DiGraph.from_edges(
        [("a $x$ <&>", "b\nc"), ("b\nc", "b\nc"), ("b\nc", "a $x$ <&>")], nodes=["alone" * 9]
    )
    root = drawn(plot_hierarchy(odd), tmp_path)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a $x$ <&>", "b�c", "alonealonealone…"} <= set(texts)
    assert len(named(root, "removed")) == 2
    one = drawn(plot_hierarchy(DiGraph.from_edges([], nodes=["only"])), tmp_path)
    assert len(named(one, "node")) == 1


def test_letters_without_a_font_are_one_note(tmp_path) -> None:
    file = tmp_path / "graph.txt"
    file.write_text("日本 b\nb 語\n", encoding="utf-8")
    for ending, quiet, note in (("png", [], True), ("png", ["-q"], False), ("svg", [], False)):
        output = str(tmp_path / f"graph.{ending}")
        result = CliRunner().invoke(app, ["plot", str(file), "-o", output, *quiet])
        assert result.exit_code == 0, result.output
        assert result.stderr.count("letters that no font has") == note
        assert "UserWarning" not in result.stderr


def test_map_has_two_panels_colored_by_level(model, tmp_path) -> None:
    figure = plot_map(model)
    left, right = figure.axes[:2]
    for axes, points in ((left, projection(model)[0]), (right, projection(model)[1])):
        (dots,) = axes.collections
        order = np.argsort(-np.bincount(model.levels_)[model.levels_], kind="stable")
        assert np.asarray(dots.get_offsets()) == pytest.approx(points[order])
        assert dots.get_array().tolist() == model.levels_[order].tolist()
    root = drawn(figure, tmp_path)
    for gid in ("sources", "targets"):
        group = next(g for g in root.iter(f"{SVG}g") if g.get("id") == gid)
        assert len(list(group.iter(f"{SVG}use"))) == model.graph_.n_nodes


def test_levels_and_objective(graph, model, tmp_path) -> None:
    count = np.bincount(model.levels_)[1:]
    axes = plot_levels(graph).axes[0]
    assert [bar.get_height() for bar in axes.patches] == count.tolist()
    assert len(named(drawn(plot_levels(model), tmp_path), "level")) == len(count)
    star = DiGraph.from_edges([(i, 1000) for i in range(900)] + [(1000, 1001), (1001, 1002)])
    assert plot_levels(star).axes[0].get_yscale() == "log"
    (line,) = plot_objective(model).axes[0].lines
    assert line.get_ydata().tolist() == model.objective_.tolist()
    assert line.get_xdata().tolist() == list(range(1, model.n_iter_ + 1))
    assert plot_objective(ATP(n_components=2, max_iter=1).fit(graph)).axes


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("kind", ["hierarchy", "map", "levels", "objective"])
def test_same_picture_same_bytes(model, tmp_path, kind, ending) -> None:
    first, again = (
        save(plot(model, kind), tmp_path / f"{name}.{ending}").read_bytes() for name in "ab"
    )
    assert first == again
    assert first.startswith(b"\x89PNG" if ending == "png" else b"<?xml")


def test_python_refuses_with_a_sentence(graph, model, tmp_path) -> None:
    big = noisy_hierarchy(MAX_NODES + 1, 150, 5, random_state=0).graph
    with pytest.raises(InputError, match=r"101 nodes and .* edges; .* levels, or map"):
        plot_hierarchy(big)
    with pytest.raises(InputError, match="embed it first"):
        plot_map(graph)
    with pytest.raises(InputError, match="embed the graph first"):
        plot_objective(graph)
    with pytest.raises(InputError, match="no objective curve"):
        plot_objective(ATP(n_components=2).fit(DiGraph.from_edges([], nodes=[1])))
    with pytest.raises(InputError, match="not fitted"):
        plot_map(ATP())
    with pytest.raises(InputError, match="no kind of picture 'pie'"):
        plot(model, "pie")
    with pytest.raises(InputError, match=r"neither \.png nor \.svg"):
        save(plot_levels(graph), tmp_path / "picture.pdf")
    for empty in (plot_hierarchy, plot_levels):
        with pytest.raises(InputError, match="no nodes"):
            empty(DiGraph.from_edges([]))


@pytest.fixture(scope="module")
def folder(graph, model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plot")
    write_edgelist(graph, path / "g.txt")
    model.save(path / "m.npz")
    return path


def test_command(folder, tmp_path) -> None:
    result = atp("plot", folder / "g.txt", "-o", tmp_path / "g.svg", "--json", "-q")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["kind"] == "hierarchy"
    assert len(named(ET.parse(tmp_path / "g.svg").getroot(), "node")) == 40
    for kind in ("map", "levels", "objective"):
        done = atp("plot", folder / "m.npz", "--kind", kind, "-o", tmp_path / f"{kind}.PNG")
        assert done.exit_code == 0, done.stderr
        assert "other kinds: hierarchy" in done.stdout
        assert (tmp_path / f"{kind}.PNG").read_bytes().startswith(b"\x89PNG")


def test_what_is_too_large_is_drawn_otherwise_unless_asked(tmp_path) -> None:
    big = noisy_hierarchy(300, 900, 30, random_state=0).graph
    write_edgelist(big, tmp_path / "g.txt")
    ATP(n_components=3).fit(big).save(tmp_path / "m.npz")
    for file, kind in (("g.txt", "levels"), ("m.npz", "map")):
        done = atp("plot", tmp_path / file, "-o", tmp_path / "p.png", "--json", "-q")
        assert json.loads(done.stdout)["kind"] == kind
    done = atp("plot", tmp_path / "g.txt", "-o", tmp_path / "h.png", "-k", "hierarchy", "-q")
    assert done.exit_code == 2
    assert "stays readable up to" in done.stderr
    assert not (tmp_path / "h.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{d}/g.txt", "-o", "{t}/x.pdf"], "neither .png nor .svg"),
        (["{d}/g.txt", "-o", "{t}/none/x.png"], "does not exist"),
        (["{d}/nothing.txt", "-o", "{t}/x.png"], "nothing.txt"),
        (["{d}/g.txt", "-o", "{t}/x.png", "-k", "map"], "embed it first"),
        (["{d}/g.txt", "-o", "{t}/x.png", "-k", "pie"], "no kind of picture 'pie'"),
        (["{d}/cut.npz", "-o", "{t}/x.png"], "damaged"),
    ],
)
def test_bad_input_is_one_sentence(folder, tmp_path, arguments, sentence) -> None:
    (folder / "cut.npz").write_bytes((folder / "m.npz").read_bytes()[:2000])
    typed = [part.format(d=folder, t=tmp_path) for part in arguments]
    done = atp("plot", *typed, "-q")
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_a_sentence_says_what_to_install(folder, tmp_path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from atpgraph.cli import main; main()"
    )
    typed = ["plot", str(folder / "g.txt"), "-o", str(tmp_path / "x.png")]
    command = [sys.executable, "-c", code, *typed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'atpgraph[plot]'" in done.stderr


def test_figures_display_themselves_in_a_notebook(graph: DiGraph, model: ATP) -> None:
    # What IPython calls for the last line of a cell where no backend has been chosen.
    for figure in (plot_hierarchy(graph), plot_levels(graph), plot_map(model)):
        assert figure._repr_png_().startswith(b"\x89PNG\r\n\x1a\n")
