"""Tasks of the implicit matrix."""

from __future__ import annotations

import itertools

from atpgraph.closure import closure_forests
from atpgraph.factorization.nnls import ImplicitMatrix
from atpgraph.hierarchy import levels
from tests.dags import chain, random_dag, star


def test_tasks_cover_every_place_once() -> None:
    for dag in (random_dag(3000, 9000, 0), chain(20_000), star(5000), random_dag(2000, 100, 1)):
        for matrix in ImplicitMatrix.both(closure_forests(dag), levels(dag)):
            tasks = matrix.tasks(64)
            assert tasks[0][0] == 0
            assert tasks[-1][1] == dag.n_nodes
            assert all(a[1] == b[0] and a[0] < a[1] for a, b in itertools.pairwise(tasks))
