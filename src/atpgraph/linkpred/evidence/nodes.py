"""Evidence of the two nodes alone: degrees, and levels in the hierarchy."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from atpgraph.cycles import break_cycles
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.util.arrays import Float64Array, IntArray

_DEGREES = ("out-degree of u", "in-degree of u", "out-degree of v", "in-degree of v")


class Degrees(Evidence):
    """log(1 + degree), out and in, of both ends.

    Terms are these four, their squares, the products across the pair, and whether a degree is 0.

    Examples
    --------
    >>> star = DiGraph.from_codes([0, 0], [1, 2], 3)
    >>> np.expm1(Degrees().fit(star).pairs(np.array([0]), np.array([1]))).round().tolist()
    [[2.0, 0.0, 0.0, 1.0]]
    """

    names = _DEGREES
    kinds = ("degrees",) * 4
    term_names = (
        *(f"log {name}" for name in _DEGREES),
        *(f"log² {name}" for name in _DEGREES),
        *(f"no {name}" for name in _DEGREES),
        *(f"{a}·{b}" for a in _DEGREES[:2] for b in _DEGREES[2:]),
    )

    def fit(self, graph: DiGraph) -> Self:
        """Count degrees."""
        self._out, self._in = np.log1p(graph.out_degree), np.log1p(graph.in_degree)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the four logarithms."""
        return np.column_stack([self._out[u], self._in[u], self._out[v], self._in[v]])

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the logarithms, their squares, zeros and products."""
        products = found[:, :2, None] * found[:, None, 2:]
        return np.concatenate(
            [found, found**2, found == 0, products.reshape(len(found), 4)], axis=1
        )


class Levels(Evidence):
    """Levels of u and v once cycles are broken: edges lead up.

    Terms are both levels, the difference, its sign and its signed logarithm.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> Levels().fit(chain).pairs(np.array([0]), np.array([2])).tolist()
    [[1.0, 3.0]]
    """

    names = ("level of u", "level of v")
    kinds = ("levels",) * 2
    term_names = (*names, "level difference", "sign of it", "signed log of it")

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles and find the levels."""
        dag = break_cycles(graph, "h-voting", random_state=self.random_state).dag
        return self.use(levels(dag))

    def use(self, level: IntArray | Float64Array) -> Self:
        """Take levels that were computed before."""
        self.level_ = np.asarray(level, dtype=np.float64)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return both levels."""
        return np.column_stack([self.level_[u], self.level_[v]])

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the levels, and the difference in three forms."""
        apart = found[:, 1] - found[:, 0]
        sign = np.sign(apart)
        return np.column_stack([found, apart, sign, sign * np.log1p(np.abs(apart))])

    def grown(self, new: NewNode) -> Levels:
        """Put the node one above its highest source, as peeling would; others stay."""
        here = 1 + self.level_[new.into].max(initial=0)
        return copy.copy(self).use(np.append(self.level_, here))
