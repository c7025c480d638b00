"""Draw the figures of the documentation into docs/images/.

    python docs/figures/make.py

What they show is computed by atpgraph; nothing is placed by hand but the frames.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pipeline
import svg

from atpgraph import ATP, DiGraph, agony, levels, noisy_hierarchy
from atpgraph.closure import closure_forest, kernel_table
from atpgraph.cycles.agony import largest_circulation
from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.util.palette import BLUE, GREEN, INK, LINE, MUTED, ORANGE, PALE_BLUE, QUIET, RED, WASH

DOCS = Path(__file__).resolve().parent.parent
COURSES = DOCS / "figures" / "courses.csv"


def hierarchy() -> str:
    """Both pictures of the courses side by side, for the README."""
    parts = [*_levels_of_courses(0), *_scores_of_courses(526)]
    return svg.picture(1000, 430, parts, "A directed graph, its hierarchy, and its embedding")


def levels_of_courses() -> str:
    """A graph drawn by levels, with the removed edges."""
    return svg.picture(516, 430, _levels_of_courses(0), "A directed graph and its hierarchy")


def scores_of_courses() -> str:
    """The scores of all pairs as a heat map."""
    return svg.picture(516, 430, _scores_of_courses(16), "The embedding of the graph: all scores")


@cache
def _courses() -> ATP:
    return ATP(8).fit(COURSES)


def _levels_of_courses(shift: float) -> list[str]:
    model = _courses()
    names, level_of, at = _placed(model)
    parts = [
        svg.text(
            shift + 24, 28, "The graph: levels as rows, edges that closed cycles in red",
            anchor="start", bold=True,
        ),
    ]  # fmt: skip
    for level in range(1, max(level_of.values()) + 1):
        y = next(at[name][1] for name in names if level_of[name] == level)
        parts.append(f'<path d="M56 {y:g}H500" stroke="{WASH}" stroke-width="30"/>')
        parts.append(svg.text(24, y + 4, str(level), anchor="start", color=QUIET, size=12))
    drawn = ((model.dag_.edges(), QUIET, False), (model.removed_edges_, RED, True))
    for edges, color, dashed in drawn:
        for u, v in edges:
            inward = 0.08 if at[v][0] > at[u][0] else -0.2
            parts.append(
                svg.arrow(
                    at[u],
                    at[v],
                    color=color,
                    dashed=dashed,
                    widths=(svg.pill_width(u), svg.pill_width(v)),
                    bend=inward if dashed else 0.0,
                    width=1.8 if dashed else 1.3,
                )
            )
    return parts + [svg.node(at[name], name) for name in names]


def _placed(model: ATP) -> tuple[list[str], dict[str, int], dict[str, svg.Point]]:
    """Nodes, their levels, and where they stand."""
    names: list[str] = model.labels_.tolist()
    level_of = dict(zip(names, model.levels_.tolist(), strict=True))
    return names, level_of, svg.layered(level_of, list(model.dag_.edges()), 66, 500, 388, 62)


def _scores_of_courses(shift: float) -> list[str]:
    model = _courses()
    names, level_of, at = _placed(model)
    order = sorted(names, key=lambda name: (level_of[name], at[name][0]))
    codes = model.graph_.codes(order)
    scores = model.source_[codes].astype(np.float32) @ model.target_[codes].astype(np.float32).T
    highest = scores[~np.eye(len(order), dtype=bool)].max()  # the diagonal is not drawn
    left, top, cell = shift + 138, 122, 27
    parts = [
        svg.text(
            shift + 24, 28, "Its vectors: source of u times target of v", anchor="start", bold=True
        )
    ]
    for i, name in enumerate(order):
        middle = top + cell * i + cell / 2
        parts.append(svg.text(left - 8, middle + 4, name, anchor="end", size=12))
        x = left + cell * i + cell / 2
        parts.append(svg.text(x + 4, top - 8, name, anchor="start", size=12, turn=-48))
        for j in range(len(order)):
            if i == j:
                continue
            # Tenths, so that the last bits of a processor do not change the picture.
            share = round(float(np.clip(scores[i, j] / highest, 0.0, 1.0)), 1)
            parts.append(
                f'<rect x="{left + cell * j:g}" y="{top + cell * i}" width="{cell - 2}" '
                f'height="{cell - 2}" rx="3" fill="{_blend(share)}"/>'
            )
    note = "dark: above 0, a path from u (row) to v (column)"
    below = top + cell * len(order) + 16
    return [*parts, svg.text(left, below, note, anchor="start", color=QUIET, size=12)]


def _blend(share: float) -> str:
    light, dark = (0xEE, 0xF1, 0xF4), (0x1D, 0x4F, 0x96)
    mixed = (round(a + (b - a) * share) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def forest() -> str:
    """A DAG, and the same reachable pairs as parents and extras."""
    edges = [
        ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("c", "e"), ("d", "f"), ("e", "g"),
        ("f", "h"), ("g", "h"), ("b", "i"), ("i", "f"),
    ]  # fmt: skip
    graph = DiGraph.from_edges(edges)
    made = closure_forest(graph)
    names = graph.labels.tolist()
    level_of = dict(zip(names, levels(graph).tolist(), strict=True))
    parts = []
    for shift, title in ((0, "All edges"), (440, "The closure forest")):
        at = svg.layered(level_of, edges, 20 + shift, 300 + shift, 320, 70)
        parts.append(svg.text(24 + shift, 30, title, anchor="start", bold=True))
        for u, v in edges:
            code, to = graph.codes([u, v])
            tree = made.parent[code] == to
            thick = shift > 0 and tree
            parts.append(
                svg.arrow(at[u], at[v], color=BLUE if thick else MUTED if shift else QUIET,
                          width=2.2 if thick else 1.2)
            )  # fmt: skip
        for code, name in enumerate(names):
            parts.append(svg.node(at[name], name))
            x, y = at[name]
            if shift:
                mine = made.extras[made.extras_indptr[code] : made.extras_indptr[code + 1]]
                if len(mine):
                    extra = "+ " + ", ".join(sorted(names[other] for other in mine.tolist()))
                    parts.append(svg.text(x + 18, y + 4, extra, anchor="start", color=ORANGE))
            elif made.sizes[code]:
                parts.append(svg.text(x + 18, y + 4, str(made.sizes[code]),
                                      anchor="start", color=QUIET, size=12))  # fmt: skip
    parts += [
        svg.text(24, 362, f"{made.n_pairs} reachable pairs; numbers: how many a node reaches",
                 anchor="start"),
        svg.text(464, 362, f"{sum(made.parent >= 0)} parents (blue), {made.n_extras} extras "
                 "(orange)", anchor="start"),
    ]  # fmt: skip
    return svg.picture(800, 384, parts, "A closure forest stores what is new at each node")


def offline() -> str:
    """Divide and conquer over arrival times: each edge in one subproblem per level."""
    arrivals = [
        ("a", "b"), ("b", "c"), ("c", "d"), ("c", "a"), ("d", "e"), ("e", "c"), ("e", "f"),
        ("f", "a"),
    ]  # fmt: skip
    graph = DiGraph.from_edges(arrivals)
    pairs = [tuple(graph.codes(list(edge)).tolist()) for edge in arrivals]
    u, v = (np.array(side) for side in zip(*pairs, strict=True))
    closes = closes_in_order(graph.n_nodes, u, v, np.arange(len(u)))
    rows = _subproblems(graph.n_nodes, pairs)
    left, width, top, height = 170, 78, 78, 34
    parts = [
        svg.text(24, 30, "Edges in the order of their scores; each level halves the time",
                 anchor="start", bold=True),
    ]  # fmt: skip
    for t, (tail, head) in enumerate(arrivals):
        x = left + width * t + width / 2
        parts.append(svg.text(x, top - 14, f"{tail} → {head}"))
    for depth, row in enumerate(rows):
        y = top + height * depth
        parts.append(svg.text(24, y + 21, f"level {depth}", anchor="start", color=QUIET))
        for edge, (begin, end) in enumerate(row):
            settled = end - begin == 1
            fill = PALE_BLUE if settled else WASH
            when = f"t = {begin + 1}" if settled else f"{begin + 1} – {end}"
            x = left + width * edge
            parts.append(svg.box(x + 2, y + 2, width - 4, height - 4, fill=fill))
            parts.append(svg.text(x + width / 2, y + 21, when, size=12))
    y = top + height * len(rows) + 8
    parts.append(svg.text(24, y + 21, "closes a cycle", anchor="start"))
    for edge, yes in enumerate(closes.tolist()):
        x = left + width * edge + width / 2
        parts.append(
            svg.text(x, y + 21, "remove" if yes else "keep", color=RED if yes else INK, bold=yes)
        )
    parts.append(
        svg.text(24, y + 52, "A cell holds the times between which the ends of the edge fall into "
                 "one component. Where that is its own time, it closes a cycle.",
                 anchor="start", color=QUIET, size=12)
    )  # fmt: skip
    return svg.picture(820, y + 70, parts, "Offline incremental strongly connected components")


def _subproblems(n: int, pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """For each level of the recursion, the span of times of every edge's subproblem."""

    def joined(t: int, edge: tuple[int, int]) -> bool:
        """Whether the ends of an edge are in one SCC once the edges up to time t are there."""
        reach = np.eye(n, dtype=bool)
        for a, b in pairs[: t + 1]:
            reach[a, b] = True
        for middle in range(n):
            reach |= reach[:, [middle]] & reach[[middle], :]
        return bool(reach[edge[0], edge[1]] and reach[edge[1], edge[0]])

    rows = [[(0, len(pairs))] * len(pairs)]
    while any(end - begin > 1 for begin, end in rows[-1]):
        following = []
        for edge, (begin, end) in zip(pairs, rows[-1], strict=True):
            middle = (begin + end) // 2
            first = end - begin > 1 and joined(middle - 1, edge)
            later = (middle, end) if end - begin > 1 else (begin, end)
            following.append((begin, middle) if first else later)
        rows.append(following)
    return rows


def flow() -> str:
    """Agony: optimal ranks, and the circulation that proves them optimal."""
    edges = [
        ("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "c"), ("b", "d"), ("c", "e"),
        ("d", "b"), ("e", "c"), ("f", "b"), ("f", "d"),
    ]  # fmt: skip
    graph = DiGraph.from_edges(edges)
    found = agony(graph)
    on, _ = largest_circulation(graph)
    names = graph.labels.tolist()
    rank = dict(zip(names, found.lowest.tolist(), strict=True))
    at = svg.layered({name: value + 1 for name, value in rank.items()}, edges, 70, 420, 320, 80)
    parts = [svg.text(24, 30, "Least agony, and the largest circulation",
                      anchor="start", bold=True)]  # fmt: skip
    for level in sorted(set(rank.values())):
        y = next(at[name][1] for name in names if rank[name] == level)
        parts.append(f'<path d="M60 {y:g}H430" stroke="{WASH}" stroke-width="30"/>')
        parts.append(svg.text(24, y + 4, f"r = {level}", anchor="start", color=QUIET, size=12))
    listed = []
    for (u, v), around in zip(graph.edges(), on.tolist(), strict=True):
        pain = max(rank[u] - rank[v] + 1, 0)
        parts.append(
            svg.arrow(at[u], at[v], color=ORANGE if around else QUIET,
                      width=2.4 if around else 1.3, bend=0.16 if rank[u] >= rank[v] else 0.05)
        )  # fmt: skip
        listed.append((f"{u} → {v}", pain, around))
    parts += [svg.node(at[name], name) for name in names]
    parts.append(svg.text(470, 62, "edge", anchor="start", color=QUIET, size=12))
    parts.append(svg.text(700, 62, "max(r(u) − r(v) + 1, 0)", anchor="end", color=QUIET, size=12))
    for row, (label, pain, around) in enumerate(listed):
        y = 84 + 22 * row
        color = ORANGE if around else INK
        parts.append(svg.text(470, y, label, anchor="start", color=color, bold=around))
        parts.append(svg.text(700, y, str(pain), anchor="end", color=color, bold=around))
    total, around = sum(pain for _, pain, _ in listed), int(on.sum())
    parts.append(
        svg.text(470, 84 + 22 * len(listed) + 8, f"sum {total} = {around} edges in orange: "
                 "optimal", anchor="start", bold=True)
    )  # fmt: skip
    if total != around or total != found.value:
        raise SystemExit("the duality of agony and circulation does not hold: a bug")
    return svg.picture(740, 370, parts, "Social agony as a circulation")


def kernels() -> str:
    """The four kernels over the difference of levels."""
    left, right, bottom, top, most = 60, 560, 290, 50, 12
    parts = [svg.text(24, 28, "Weight of a reachable pair by difference of levels Δ",
                      anchor="start", bold=True)]  # fmt: skip
    highest = 6.0

    def at(delta: float, value: float) -> tuple[float, float]:
        return (
            left + (right - left) * (delta - 1) / (most - 1),
            bottom - (bottom - top) * value / highest,
        )

    for value in range(7):
        y = at(1, value)[1]
        parts.append(f'<path d="M{left} {y:g}H{right}" stroke="{LINE}" stroke-width=".7"/>')
        parts.append(svg.text(left - 10, y + 4, str(value), anchor="end", color=QUIET, size=12))
    for delta in range(1, most + 1):
        x = at(delta, 0)[0]
        parts.append(svg.text(x, bottom + 20, str(delta), color=QUIET, size=12))
    for name, color in (
        ("linear", ORANGE), ("harmonic", GREEN), ("log", BLUE), ("constant", QUIET),
    ):  # fmt: skip
        values = kernel_table(name, most + 1)[1:]  # type: ignore[arg-type]
        shown = [at(d, v) for d, v in enumerate(values.tolist(), start=1) if v <= highest]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in shown)
        parts.append(f'<path d="M{line}" fill="none" stroke="{color}" stroke-width="2.2"/>')
        x, y = shown[-1]
        parts.append(svg.text(x + 8, y + 4, name, anchor="start", color=color, bold=True))
    return svg.picture(650, 326, parts, "The kernels constant, linear, harmonic and log")


def plot_hierarchy() -> str:
    """The courses as ``atp plot`` draws them."""
    from atpgraph.plot import plot

    return _written(plot(COURSES, "hierarchy"))


def plot_map() -> str:
    """The vectors of the larger graph of the page about pictures."""
    from atpgraph.plot import plot

    graph = noisy_hierarchy(500, 3000, 100, random_state=0).graph
    return _written(plot(ATP(16).fit(graph), "map"))


def _written(figure: object) -> str:
    from atpgraph.plot import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save(figure, path)
        # Matplotlib ends some lines in a blank.
        lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


FIGURES: dict[str, Callable[[], str]] = {
    "hierarchy.svg": hierarchy,
    "courses-levels.svg": levels_of_courses,
    "courses-scores.svg": scores_of_courses,
    "closure-forest.svg": forest,
    "offline-scc.svg": offline,
    "agony-flow.svg": flow,
    "kernels.svg": kernels,
    "pipeline.svg": pipeline.draw,
}
# Drawn by Matplotlib, whose versions differ: the tests do not compare them.
PLOTS: dict[str, Callable[[], str]] = {
    "plot-hierarchy.svg": plot_hierarchy,
    "plot-map.svg": plot_map,
}
if importlib.util.find_spec("matplotlib"):
    FIGURES |= PLOTS


def main() -> None:
    """Draw all of them, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FIGURES), help="files to draw")
    parser.add_argument("--output", type=Path, default=DOCS / "images")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        (options.output / name).write_text(FIGURES[name](), encoding="utf-8")
        print(options.output / name)


if __name__ == "__main__":
    main()
