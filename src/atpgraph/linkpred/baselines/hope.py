"""HOPE: factor a high-order proximity matrix without ever forming it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from atpgraph.errors import AtpError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.linkpred.factor import Product, singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import Float64Array
from atpgraph.util.random import RandomState, generator
from atpgraph.util.registry import Registry

# Lanczos iterations need products as exact as those with a stored matrix, whatever the tolerance of
# the singular values: with series cut at 1e-7 they returned one singular vector several times.
_EXACT = 1e-14

PROXIMITIES = Registry(
    "proximity",
    {
        "katz": "Katz",
        "common-neighbours": "CN",
        "adamic-adar": "AA",
        "rooted-pagerank": "RPR",
    },
)


class HOPE(EmbeddingMethod):
    """High-order proximity preserved embedding: the truncated SVD of S = M_g⁻¹ M_l.

    ===================  ============  =============
    proximity            M_g           M_l
    ===================  ============  =============
    Katz                 I − βA        βA
    common neighbours    I             A²
    Adamic-Adar          I             A D A
    rooted PageRank      I − αP        (1 − α) I
    ===================  ============  =============

    D_ii = 1 / (out-degree + in-degree of i); P = (out-degree)⁻¹ A, so that row u of S is the
    distribution of a walk from u that goes on with probability α and ends where a node has no
    out-edge. The singular vectors come from products with S and Sᵀ; a product with M_g⁻¹ sums the
    series Σ (βA)ˡ x until its terms vanish, which they do since β is below 1 / radius. (The paper's
    generalised SVD of the pair M_l, M_g gives the same vectors.)

    Parameters
    ----------
    n_components : int
        Dimension of the source and of the target vectors.
    proximity : {"katz", "common-neighbours", "adamic-adar", "rooted-pagerank"}
    beta : float, optional
        Decay of Katz. The default, as in the authors' code, is 0.5 / spectral radius of A; the
        radius of a graph with a cycle is at least 1, and an acyclic one (radius 0, where every β
        converges) is treated as if it were 1.
    alpha : float
        Chance that the walk of rooted PageRank goes on.
    tolerance : float
        Relative accuracy of the singular values.
    max_terms : int
        Limit on the terms of the series.
    random_state : int, Generator or None
        Start vector of the iterative solver.

    Attributes
    ----------
    source_, target_ : arrays of shape (nodes, n_components)
    beta_ : float
        The decay used (Katz only).

    References
    ----------
    Ou, Cui, Pei, Zhang, Zhu: Asymmetric transitivity preserving graph embedding. KDD 2016.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> hope = HOPE(n_components=4, proximity="katz", beta=0.5).fit(graph)
    >>> a, b = graph.codes(["a", "b"])
    >>> round(float(hope.score(np.array([a]), np.array([b]))[0]), 4)  # 1/2 + 1/16 + 1/128 + …
    0.5714
    """

    def __init__(
        self,
        n_components: int = 64,
        proximity: str = "katz",
        *,
        beta: float | None = None,
        alpha: float = 0.5,
        tolerance: float = 1e-4,
        max_terms: int = 1000,
        random_state: RandomState = 0,
    ) -> None:
        self.name = f"HOPE-{PROXIMITIES[proximity]}"
        if not 0 <= alpha < 1:
            raise InputError(f"alpha is {alpha}; it must be in [0, 1).")
        self.n_components = check_components(n_components)
        self.proximity = proximity
        self.beta = beta
        self.alpha = alpha
        self.tolerance = tolerance
        self.max_terms = max_terms
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Factor the proximity of the graph."""
        rng = generator(self.random_state)
        product, transposed = self._products(graph, rng)
        self.source_, self.target_ = singular_factors(
            graph.n_nodes, self.n_components, product, transposed, rng, self.tolerance
        )
        return self

    def _products(self, graph: DiGraph, rng: np.random.Generator) -> tuple[Product, Product]:
        A = _csr(graph.to_scipy())
        At = _csr(A.T)
        if self.proximity == "common-neighbours":
            return lambda x: A @ (A @ x), lambda x: At @ (At @ x)
        if self.proximity == "adamic-adar":
            degree = (graph.out_degree + graph.in_degree).astype(np.float64)
            D = sp.diags_array(_reciprocal(degree))
            return lambda x: A @ (D @ (A @ x)), lambda x: At @ (D @ (At @ x))
        if self.proximity == "katz":
            beta = self.beta
            if beta is None:
                beta = 0.5 / max(spectral_radius(graph, rng), 1.0)
            self.beta_ = beta
            B, Bt = beta * A, beta * At
            return lambda x: self._solve(B, B @ x), lambda x: Bt @ self._solve(Bt, x)
        out = np.asarray(A.sum(axis=1)).reshape(-1)
        P = _csr(self.alpha * (sp.diags_array(_reciprocal(out)) @ A))
        Pt, stay = _csr(P.T), 1.0 - self.alpha
        return lambda x: stay * self._solve(P, x), lambda x: stay * self._solve(Pt, x)

    def _solve(self, matrix: Any, x: Float64Array) -> Float64Array:
        """(I − matrix)⁻¹ x as the sum of the series x + matrix x + matrix² x + …"""
        total, term = x.copy(), x
        with np.errstate(over="ignore", invalid="ignore"):  # seen below as a size not finite
            for _ in range(self.max_terms):
                term = matrix @ term
                total += term
                size = np.abs(term).max()
                if not np.isfinite(size):
                    break
                if size <= _EXACT * np.abs(total).max():
                    return total
        raise AtpError(
            f"{self.name}: the series of paths does not converge; choose a smaller beta."
        )


def spectral_radius(graph: DiGraph, rng: np.random.Generator) -> float:
    """Largest absolute eigenvalue of the adjacency matrix.

    Only edges inside strongly connected components matter: an acyclic part has eigenvalue 0 and
    would only slow the eigenvalue solver down.
    """
    A = graph.to_scipy()
    inner = cyclic_edges(graph)
    if not inner.any():
        return 0.0
    nodes = np.unique(graph.sources[inner])
    at = np.full(graph.n_nodes, -1)
    at[nodes] = np.arange(len(nodes))
    data = A.data[inner]
    pairs = (at[graph.sources[inner]], at[graph.targets[inner]])
    core = sp.coo_array((data, pairs), shape=(len(nodes), len(nodes))).tocsr()
    if len(nodes) <= 64:
        return float(np.abs(np.linalg.eigvals(core.toarray())).max())
    # A + I has the same order of eigenvalues by real part and one dominant one, also for a core
    # that is a single cycle, where A alone has many eigenvalues of equal size.
    shifted = core + sp.eye_array(len(nodes), format="csr")
    try:
        value = eigs(
            shifted, k=1, which="LR", v0=rng.random(len(nodes)) + 0.5, return_eigenvectors=False
        )
        return float(np.real(value[0]) - 1.0)
    except ArpackNoConvergence:
        # An upper bound is always safe: no eigenvalue exceeds the largest row sum.
        return float(np.asarray(core.sum(axis=1)).max())


def _csr(matrix: Any) -> Any:
    return sp.csr_array(matrix)


def _reciprocal(x: Float64Array) -> Float64Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)
