"""ATP and its levels under the interface of the laboratory."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.cycles import CycleBreaker
from atpgraph.embedding import ATP
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.method import EmbeddingMethod, check_components


class LevelDifference(EmbeddingMethod):
    """level(v) − level(u) in the graph with its cycles broken: steps 1 and 2 of ATP alone.

    Written as an inner product, (−level(u), 1) · (1, level(v)).

    Parameters
    ----------
    method : str
        How cycles are broken; see :func:`atpgraph.cycles.break_cycles`.
    random_state : int

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 0], 4).without_edges([2])
    >>> LevelDifference().fit(chain).score(np.array([0, 2]), np.array([2, 0])).tolist()
    [2.0, -2.0]
    """

    name = "difference of levels"

    def __init__(self, method: str = "h-voting", random_state: int = 0) -> None:
        self.method = method
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles and find the levels."""
        dag = CycleBreaker(graph, self.random_state).run(self.method).dag
        level = levels(dag).astype(np.float64)
        one = np.ones(len(level))
        self.source_ = np.column_stack([-level, one])
        self.target_ = np.column_stack([one, level])
        return self


class PlainATP(EmbeddingMethod):
    """:class:`atpgraph.ATP` for links, under the interface of the laboratory.

    Parameters
    ----------
    n_components : int
    kernel : str
        f, the weight of a reachable pair.
    random_state : int

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> atp = PlainATP(4, "harmonic").fit(chain)
    >>> there, back = atp.score(np.array([0, 3]), np.array([3, 0]))
    >>> bool(there > 1.0 > 0.1 > back)
    True
    """

    def __init__(
        self,
        n_components: int = 64,
        kernel: str = "log",
        random_state: int = 0,
    ) -> None:
        self.n_components = check_components(n_components)
        self.kernel = kernel
        self.random_state = random_state
        self.name = f"ATP-{kernel}"

    def fit(self, graph: DiGraph) -> Self:
        """Run the four steps of ATP."""
        atp = ATP(
            self.n_components,
            purpose="paper",
            kernel=self.kernel,
            zero_weight="auto",
            random_state=self.random_state,
        ).fit(graph)
        self.source_, self.target_ = atp.source_, atp.target_
        return self
