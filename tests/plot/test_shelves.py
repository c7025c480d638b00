"""Whole drawings: parts do not overlap, edges point up, and the page keeps a sensible shape."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph import DiGraph, levels, random_dag
from atpgraph.plot import plot_hierarchy
from atpgraph.plot._layout import GAP, PAGES, Sheet, arranged

few = settings(max_examples=25)  # a drawing takes its time, and has up to 60 nodes
HEIGHT = 0.27  # of a node's box
BEND = 0.4 * GAP  # the room of an edge that passes a row


def sheet_of(dag: DiGraph, width: np.ndarray) -> tuple[np.ndarray, Sheet]:
    level = levels(dag).astype(np.int64)
    sources, targets = dag.sources.astype(np.int64), dag.targets.astype(np.int64)
    return level, arranged(level, sources, targets, width)


@st.composite
def drawings(draw) -> tuple[DiGraph, np.ndarray, np.ndarray, Sheet]:
    n = draw(st.integers(1, 60))
    m = draw(st.integers(0, min(90, n * (n - 1) // 2)))
    seed = draw(st.integers(0, 1000))
    dag = random_dag(n, m, random_state=seed)
    width = np.random.default_rng(seed).uniform(0.3, draw(st.sampled_from([0.5, 2.0])), n)
    return dag, width, *sheet_of(dag, width)


@few
@given(drawings())
def test_boxes_do_not_overlap(drawing) -> None:
    dag, width, _, sheet = drawing
    for u, v in itertools.combinations(range(dag.n_nodes), 2):
        beside = abs(sheet.x[u] - sheet.x[v]) >= (width[u] + width[v]) / 2 - 1e-9
        above = abs(sheet.y[u] - sheet.y[v]) > HEIGHT
        assert beside or above, (u, v)


@few
@given(drawings())
def test_parts_without_an_edge_between_them_keep_apart(drawing) -> None:
    dag, width, _, sheet = drawing
    graph = nx.Graph(list(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True)))
    graph.add_nodes_from(range(dag.n_nodes))
    boxes = []
    for part in nx.connected_components(graph):
        nodes = np.array(sorted(part))
        inside = np.isin(dag.sources, nodes)
        routes = [route for route, here in zip(sheet.routes, inside, strict=True) if here]
        ends = [sheet.x[nodes] - width[nodes] / 2, sheet.x[nodes] + width[nodes] / 2]
        x = np.concatenate([*ends, *(route[:, 0] for route in routes)])
        y = np.concatenate([sheet.y[nodes], *(route[:, 1] for route in routes)])
        boxes.append((x.min(), x.max(), y.min() - HEIGHT / 2, y.max() + HEIGHT / 2))
    for a, b in itertools.combinations(boxes, 2):
        beside = a[1] < b[0] or b[1] < a[0]
        above = a[3] < b[2] or b[3] < a[2]
        assert beside or above


@few
@given(drawings())
def test_edges_point_up_and_join_their_ends(drawing) -> None:
    dag, _, _, sheet = drawing
    for u, v, route in zip(dag.sources, dag.targets, sheet.routes, strict=True):
        assert route[0].tolist() == [sheet.x[u], sheet.y[u]]
        assert route[-1].tolist() == [sheet.x[v], sheet.y[v]]
        assert np.all(np.diff(route[:, 1]) > 0)


@few
@given(drawings())
def test_nodes_stand_on_the_rows_of_their_level(drawing) -> None:
    _, _, level, sheet = drawing
    of_row = {float(y): row for row in sheet.rows for y in row.heights}
    assert len(of_row) == sum(len(row.heights) for row in sheet.rows)
    assert [of_row[float(y)].level for y in sheet.y] == level.tolist()
    for shelf in {row.shelf for row in sheet.rows}:
        rows = [row for row in sheet.rows if row.shelf == shelf]
        rows.sort(key=lambda row: row.level)
        assert [row.level for row in rows] == list(range(1, len(rows) + 1))
        assert np.all(np.diff(np.concatenate([row.heights for row in rows])) > HEIGHT)


@few
@given(drawings())
def test_the_page_is_bounded(drawing) -> None:
    dag, _, _, sheet = drawing
    assert sheet.width <= PAGES[-1] + BEND * dag.n_edges
    if sheet.width > PAGES[0] + BEND * dag.n_edges:
        # A wider page was taken because a narrower one would have been too tall, so it is not flat.
        assert sheet.height >= sheet.width / 4


def test_shelves_are_filled() -> None:
    width = np.random.default_rng(0).uniform(0.4, 1.6, 100)
    _, sheet = sheet_of(DiGraph.from_codes(np.zeros(0, int), np.zeros(0, int), 100), width)
    shelf_of = np.array(sorted(set(sheet.y.tolist()))).searchsorted(sheet.y)
    right = [float((sheet.x + width / 2)[shelf_of == shelf].max()) for shelf in set(shelf_of)]
    # No shelf but the last, at the bottom, has room for one more.
    assert all(PAGES[0] - 2.2 < used <= PAGES[0] for used in right[1:])


def size(graph: object) -> np.ndarray:
    return plot_hierarchy(graph).get_size_inches()


def test_what_used_to_be_a_ribbon_is_a_page() -> None:
    rng = np.random.default_rng(0)
    parents = [(f"term {i:04d}", f"term {rng.integers(0, i):04d}") for i in range(1, 150)]
    ontology = [parents[at] for at in rng.choice(len(parents), 60, replace=False)]
    star = [(f"leaf {i}", "the root") for i in range(60)]
    alone = DiGraph.from_edges([], nodes=[f"node {i}" for i in range(60)])
    for graph, most in ((ontology, 1.6), (star, 4), (alone, 2.5)):
        across, down = size(graph)
        assert across < 17
        assert across / down < most


def test_a_small_graph_stays_on_one_shelf() -> None:
    level = np.array([1, 2, 3, 1, 2])
    sheet = arranged(level, np.array([0, 1, 3]), np.array([1, 2, 4]), np.ones(5))
    assert {row.shelf for row in sheet.rows} == {0}
    assert sheet.y[0] == sheet.y[3] < sheet.y[1] == sheet.y[4] < sheet.y[2]
