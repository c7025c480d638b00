"""Difficulty of questions and expertise of users on one scale, from ATP vectors.

ATP turns the competition graph of a site into a source and a target vector of every question and
user. The paper compares two questions by ⟨s_i, t_j⟩ against ⟨s_j, t_i⟩, which says something only
if a path joins them; two questions are rarely joined. Here every node gets one number instead, in
two steps.

Mean score
    How strongly the rest of the site points at a node, minus how strongly the node points at the
    rest: mean over x of ⟨s_x, t_v⟩ − ⟨s_v, t_x⟩. This potential fits the antisymmetric matrix of
    these differences best, in least squares over all pairs, and takes two matrix products to
    compute.
Position
    The mean score follows the longest paths, so one lucky answer lifts a user. The position is
    pulled toward it and fitted to the single edges as well: x minimizes Σ over edges (x_v − x_u −
    1)² + α Σ (x_v − z_v)², where z is the standardized mean score.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from atpgraph.embedding import ATP
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.checks import renamed_top
from atpgraph.util.progress import stage
from atpgraph_qa.competition import Competition, Ega, Posts, at_nodes, competition_graph
from atpgraph_qa.data.site import Site

ANCHOR = 0.2
"""α: how strongly a position is pulled toward the mean score."""
DEFAULT_EGA: Ega = "consecutive"
_TAG_ANCHOR = 1.0


@dataclass(frozen=True, eq=False)
class Expertise:
    """An ATP model of a competition graph, with one number for every question and user.

    Attributes
    ----------
    model : ATP
        The fitted model; its labels are ``"user:42"`` and ``"question:17"``.
    competition : Competition
        The graph of the model, with lookups by id.
    """

    model: ATP
    competition: Competition

    @classmethod
    def fit(
        cls,
        site: Site | Posts,
        *,
        ega: Ega = DEFAULT_EGA,
        tau_days: float = 30.0,
        exclude: npt.ArrayLike = (),
        **params: Any,
    ) -> Self:
        """Embed the competition graph of a site.

        Parameters
        ----------
        site : Site or Posts
            The site, or its posts as they were known at a moment.
        ega, tau_days, exclude
            See :func:`~atpgraph_qa.competition.competition_graph`.
        **params
            Of :class:`~atpgraph.ATP`; by default the paper's method with 64
            components and ``zero_weight="auto"``.
        """
        made = competition_graph(site, ega=ega, tau_days=tau_days, exclude=exclude)
        usual: dict[str, Any] = {"n_components": 64, "purpose": "paper", "zero_weight": "auto"}
        return cls(ATP(**usual | params).fit(made.graph), made)

    @classmethod
    def from_model(cls, model: ATP) -> Self:
        """Take a fitted model whose labels name users and questions."""
        return cls(model, Competition.from_graph(model.graph_))

    @cached_property
    def pointed_at(self) -> Float64Array:
        """Mean over x of ⟨s_x, t_v⟩ for every node v."""
        return _mean_product(self.model.target_, self.model.source_)

    @cached_property
    def mean_score(self) -> Float64Array:
        """Mean over x of ⟨s_x, t_v⟩ − ⟨s_v, t_x⟩ for every node v."""
        return self.pointed_at - _mean_product(self.model.source_, self.model.target_)

    @cached_property
    def position(self) -> Float64Array:
        """Difficulty or expertise of every node: the mean score, fitted to the edges as well."""
        score = self.mean_score
        spread = float(score.std()) if len(score) else 0.0
        anchor = (score - score.mean()) / spread if spread > 0 else np.zeros(len(score))
        with stage("positions"):
            return pooled(self.model.graph_, anchor, ANCHOR)

    def difficulty(self, questions: npt.ArrayLike) -> Float64Array:
        """Return positions of questions by id, NaN for those that are not in the graph."""
        return at_nodes(self.position, self.competition.question_nodes(questions))

    def expertise(self, users: npt.ArrayLike) -> Float64Array:
        """Return positions of users by id, NaN for those that are not in the graph."""
        return at_nodes(self.position, self.competition.user_nodes(users))

    def harder(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.int8]:
        """Compare two questions by id: 1 if the first is harder, −1 if the second, 0 if unknown."""
        difference = self.difficulty(first) - self.difficulty(second)
        return np.sign(np.nan_to_num(difference)).astype(np.int8)

    def experts(self, k: int = 20, *, top: int | None = None) -> tuple[Int64Array, Float64Array]:
        """Return the k users with the highest positions, and the positions."""
        return _best_users(self.competition, self.position, renamed_top(k, top))

    def tag_experts(
        self, site: Site | Posts, tag: str, k: int = 20, *, top: int | None = None
    ) -> tuple[Int64Array, Float64Array]:
        """Return the k users with the highest expertise in a tag, among those who posted in it.

        The positions are fitted again to the edges that come from the tag's questions, and pulled
        toward the overall positions: with little evidence in the tag, a user keeps the overall one.
        """
        questions = site.tags.questions(tag)
        if not site.tags.names:
            raise InputError("The dump of this site has no tags.")
        if not len(questions):
            near = get_close_matches(tag, site.tags.names, n=5)
            close = near or [name for name in site.tags.names if tag.lower() in name.lower()][:5]
            hint = f"; there are {', '.join(close)}" if close else ""
            raise InputError(f"No question has the tag {tag!r}{hint}.")
        part = competition_graph(site, exclude=np.delete(site.questions.id, questions))
        nodes = np.where(
            part.is_question,
            self.competition.question_nodes(part.ids),
            self.competition.user_nodes(part.ids),
        )
        anchor = np.nan_to_num(at_nodes(self.position, nodes), nan=float(np.mean(self.position)))
        return _best_users(part, pooled(part.graph, anchor, _TAG_ANCHOR), renamed_top(k, top))


def _mean_product(rows: npt.NDArray[Any], others: npt.NDArray[Any]) -> Float64Array:
    """Return the mean product of each of the rows with the other vectors."""
    if not len(others):
        return np.zeros(0)
    result: Float64Array = rows.astype(np.float64) @ others.astype(np.float64).mean(axis=0)
    return result


def pooled(graph: DiGraph, anchor: Float64Array, strength: float) -> Float64Array:
    """Return positions close to the anchor, in which each edge climbs by about 1 (least squares).

    Examples
    --------
    >>> chain = DiGraph.from_edges([("a", "b"), ("b", "c")])
    >>> np.round(pooled(chain, np.zeros(3), 1e-6), 3)
    array([-1.,  0.,  1.])
    """
    from scipy import sparse
    from scipy.sparse.linalg import cg

    n = graph.n_nodes
    sources, targets = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    real = sources != targets
    sources, targets = sources[real], targets[real]
    incoming = np.bincount(targets, minlength=n)
    outgoing = np.bincount(sources, minlength=n)
    ones = np.ones(len(sources))
    joined = sparse.csr_array((ones, (sources, targets)), shape=(n, n))
    diagonal = incoming + outgoing + strength
    matrix = sparse.diags_array(diagonal.astype(np.float64)) - joined - joined.T
    wanted = incoming - outgoing + strength * anchor
    preconditioner = sparse.diags_array(1.0 / diagonal)
    found, _ = cg(matrix, wanted, x0=anchor, rtol=1e-8, maxiter=2000, M=preconditioner)
    return np.asarray(found, dtype=np.float64)


def _best_users(
    competition: Competition, scores: Float64Array, k: int
) -> tuple[Int64Array, Float64Array]:
    if k < 1:
        raise InputError(f"k is {k}; it must be at least 1.")
    users = np.flatnonzero(~competition.is_question)
    order = users[np.lexsort((competition.ids[users], -scores[users]))[:k]]
    return competition.ids[order], scores[order]
