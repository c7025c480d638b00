from __future__ import annotations

import numpy as np
from hypothesis import given

from atpgraph.cycles.baselines import eades_position
from atpgraph.graph import DiGraph
from tests.strategies import digraphs


@given(digraphs(max_nodes=12, self_loops=False))
def test_eades_line_is_greedy_at_every_step(graph: DiGraph) -> None:
    """Replay the line: each node was a sink, or a source, or had the largest difference then."""
    back = graph.reverse()
    arrays = (graph.indptr, graph.targets, back.indptr, back.targets)
    position = eades_position(*arrays)
    # As Python, an index past the end of a bucket array raises.
    assert eades_position.py_func(*arrays).tolist() == position.tolist()
    assert sorted(position.tolist()) == list(range(graph.n_nodes))
    left = set(range(graph.n_nodes))
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    line = np.argsort(position).tolist()

    def degrees(v: int) -> tuple[int, int]:
        return (
            sum(u == v and w in left for u, w in edges),
            sum(w == v and u in left for u, w in edges),
        )

    while left:
        degree = {v: degrees(v) for v in left}
        if any(out == 0 for out, _ in degree.values()):
            chosen = line.pop()
            assert degree[chosen][0] == 0
        else:
            chosen = line.pop(0)
            if any(into == 0 for _, into in degree.values()):
                assert degree[chosen][1] == 0
            else:
                best = max(out - into for out, into in degree.values())
                assert degree[chosen][0] - degree[chosen][1] == best
        left.remove(chosen)
