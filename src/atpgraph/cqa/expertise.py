"""Difficulty of questions and expertise of users on one scale, from ATP vectors.

ATP turns the competition graph of a site into a source and a target vector of every question and
user. The paper compares two questions by ⟨s_i, t_j⟩ against ⟨s_j, t_i⟩, which says something only
where a path joins them; two questions are rarely joined. Here every node gets one number instead,
in two steps.

Mean score
    How strongly the rest of the site points at a node, less how strongly the node points at the
    rest: mean over x of ⟨s_x, t_v⟩ − ⟨s_v, t_x⟩. It is the potential that fits the antisymmetric
    matrix of these differences best in least squares over all pairs, and costs two products.
Position
    The mean score follows the longest paths, so one lucky answer lifts a user. The position is
    pulled towards it and fitted to the single edges as well: x minimises
    Σ over edges (x_v − x_u − 1)² + α Σ (x_v − z_v)², where z is the standardised mean score.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from atpgraph._files import atomic_path
from atpgraph._progress import stage
from atpgraph.cqa.competition import Competition, Ega, competition_graph
from atpgraph.cqa.difficulty import BountyTruth
from atpgraph.cqa.site import NOBODY, Int64, Site
from atpgraph.cqa.store import is_site
from atpgraph.embedding import ATP
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph

Floats = npt.NDArray[np.float64]

ANCHOR = 0.2
"""α: how strongly a position is held at the mean score."""
DEFAULT_EGA: Ega = "consecutive"
_TAG_ANCHOR = 1.0


@dataclass(frozen=True, eq=False)
class Expertise:
    """An ATP model of a competition graph, with one number for every question and user.

    Attributes
    ----------
    model : ATP
        The fitted model; its labels are ``"user:42"`` and ``"question:17"``.
    ids : int64 array
        Id of the user or question of every node.
    is_question : boolean array
        True for questions.
    """

    model: ATP
    ids: Int64
    is_question: npt.NDArray[np.bool_]

    @classmethod
    def fit(
        cls,
        site: Site,
        *,
        ega: Ega = DEFAULT_EGA,
        tau_days: float = 30.0,
        exclude: npt.ArrayLike = (),
        **params: Any,
    ) -> Self:
        """Embed the competition graph of a site.

        Parameters
        ----------
        site : Site
            The site.
        ega, tau_days, exclude
            See :func:`~atpgraph.cqa.competition.competition_graph`.
        **params
            Of :class:`~atpgraph.ATP`.
        """
        made = competition_graph(site, ega=ega, tau_days=tau_days, exclude=exclude)
        return cls.from_model(ATP(**params).fit(made.graph))

    @classmethod
    def from_model(cls, model: ATP) -> Self:
        """Of a fitted model whose labels name users and questions."""
        labels = [str(label) for label in model.labels_.tolist()]
        kinds, _, numbers = np.array(
            [label.partition(":") for label in labels] or np.zeros((0, 3)), dtype=object
        ).T
        is_question = kinds == "question"
        try:
            if not np.all(is_question | (kinds == "user")):
                raise ValueError
            ids = numbers.astype(np.int64)
        except ValueError:
            raise InputError(
                "The model is not of a competition graph: its nodes are not named like user:42 and "
                "question:17. Make one with 'atp cqa train'."
            ) from None
        return cls(model, ids, is_question.astype(np.bool_))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that 'atp cqa train' wrote."""
        return cls.from_model(ATP.load(path))

    @cached_property
    def competition(self) -> Competition:
        """The graph of the model, with lookups by id."""
        return Competition(self.model.graph_, self.ids, self.is_question, {})

    @cached_property
    def mean_score(self) -> Floats:
        """Mean over x of ⟨s_x, t_v⟩ − ⟨s_v, t_x⟩ for every node v."""
        source = self.model.source_.astype(np.float64)
        target = self.model.target_.astype(np.float64)
        if not len(source):
            return np.zeros(0)
        result: Floats = target @ source.mean(axis=0) - source @ target.mean(axis=0)
        return result

    @cached_property
    def pointed_at(self) -> Floats:
        """Mean over x of ⟨s_x, t_v⟩ for every node v."""
        source = self.model.source_.astype(np.float64)
        if not len(source):
            return np.zeros(0)
        result: Floats = self.model.target_.astype(np.float64) @ source.mean(axis=0)
        return result

    @cached_property
    def position(self) -> Floats:
        """Difficulty or expertise of every node: the mean score, fitted to the edges as well."""
        with stage("positions"):
            return pooled(self.model.graph_, standardised(self.mean_score), ANCHOR)

    def difficulty(self, questions: npt.ArrayLike) -> Floats:
        """Positions of questions by id, NaN for those that are not in the graph."""
        return at(self.position, self.competition.question_nodes(questions))

    def expertise(self, users: npt.ArrayLike) -> Floats:
        """Positions of users by id, NaN for those that are not in the graph."""
        return at(self.position, self.competition.user_nodes(users))

    def harder(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.int8]:
        """Which of two questions is harder, by id: 1 the first, −1 the second, 0 unknown."""
        difference = self.difficulty(first) - self.difficulty(second)
        return np.sign(np.nan_to_num(difference)).astype(np.int8)

    def experts(self, top: int = 20) -> tuple[Int64, Floats]:
        """Users with the highest positions, and the positions."""
        nodes = np.flatnonzero(~self.is_question)
        return _best(self.ids[nodes], self.position[nodes], top)

    def tag_experts(self, site: Site, tag: str, top: int = 20) -> tuple[Int64, Floats]:
        """Users with the highest expertise in a tag, among those who posted in it.

        The positions are fitted again to the edges that come from the tag's questions, and held
        at the overall positions: with little evidence in the tag a user keeps the overall one.
        """
        questions = site.tags.questions(tag)
        if not len(questions):
            close = [name for name in site.tags.names if tag.lower() in name.lower()][:5]
            hint = f"; there are {', '.join(close)}" if close else ""
            raise InputError(
                f"No question has the tag {tag!r}{hint}."
                if site.tags.names
                else "The dump of this site has no tags."
            )
        outside = np.ones(len(site.questions), dtype=np.bool_)
        outside[questions] = False
        part = competition_graph(site, exclude=site.questions.id[outside])
        nodes = np.where(
            part.is_question,
            self.competition.question_nodes(part.ids),
            self.competition.user_nodes(part.ids),
        )
        anchor = np.nan_to_num(at(self.position, nodes), nan=float(np.mean(self.position)))
        scores = pooled(part.graph, anchor, _TAG_ANCHOR)
        people = ~part.is_question
        return _best(part.ids[people], scores[people], top)

    def save(self, path: str | os.PathLike[str], about: dict[str, Any] | None = None) -> None:
        """Write the model file, and beside it what it was made from, as ``NAME.site.json``."""
        self.model.save(path)
        with atomic_path(about_path(path)) as temporary:
            temporary.write_text(json.dumps(about or {}, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, eq=False)
class PathRule:
    """The paper's judge: j is harder than i where σ(⟨s_i, t_j⟩) > σ(⟨s_j, t_i⟩).

    Attributes
    ----------
    source, target : arrays
        Vectors of the questions compared; zeros for those not in the graph, so a tie.
    """

    source: npt.NDArray[np.float32]
    target: npt.NDArray[np.float32]

    @classmethod
    def of(cls, site: Site, truth: BountyTruth, expertise: Expertise) -> Self:
        """The judge of the questions of `truth`."""
        nodes = expertise.competition.question_nodes(site.questions.id[truth.question])
        known = nodes != NOBODY
        vectors = []
        for side in (expertise.model.source_, expertise.model.target_):
            mine = np.zeros((len(nodes), side.shape[1]), dtype=np.float32)
            mine[known] = side[nodes[known]]
            vectors.append(mine)
        return cls(*vectors)

    def harder(self, rows: Int64) -> npt.NDArray[np.int8]:
        """Compare the scores of the two directions; σ keeps their order."""
        to_row = self.target[rows] @ self.source.T
        from_row = self.source[rows] @ self.target.T
        return np.sign(to_row - from_row).astype(np.int8)


def about_path(model: str | os.PathLike[str]) -> Path:
    """Where the description beside a model file stands."""
    return Path(model).with_suffix(".site.json")


def site_of(model: str | os.PathLike[str]) -> Site:
    """The site that a model was trained on."""
    path = about_path(model)
    try:
        said = json.loads(path.read_text(encoding="utf-8"))["site"]
        where = Path(said)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} does not say which site {model} is of; name the site's folder instead."
        ) from None
    # Written relative to the model, so that both can move together.
    beside = where if where.is_absolute() else path.parent / where
    found = [folder for folder in (beside, path.parent / where.name) if is_site(folder)]
    if not found:
        raise InputError(
            f"The site {said} that {model} was trained on is no longer where it was; put it there "
            f"or beside the model, or name the site's folder instead."
        )
    return Site(found[0])


def standardised(values: Floats) -> Floats:
    """Values with mean 0 and deviation 1; all 0 where they are equal."""
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def pooled(graph: DiGraph, anchor: Floats, strength: float) -> Floats:
    """Positions that fit the edges, one step up each, and stay near the anchor.

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


def at(values: Floats, nodes: Int64) -> Floats:
    """Values of nodes by number, NaN for −1."""
    known = nodes != NOBODY
    result = np.full(len(nodes), np.nan)
    result[known] = values[nodes[known]]
    return result


def _best(ids: Int64, scores: Floats, top: int) -> tuple[Int64, Floats]:
    if top < 1:
        raise InputError(f"top is {top}; it must be at least 1.")
    order = np.lexsort((ids, -scores))[:top]
    return ids[order], scores[order]


def _seen_from(folder: Path, site: Path) -> str:
    """The way from a folder to a site; the whole path if they are on different drives."""
    try:
        return Path(os.path.relpath(site, folder)).as_posix()
    except ValueError:
        return str(site)


def train(
    site: Site,
    output: str | os.PathLike[str],
    *,
    ega: Ega = DEFAULT_EGA,
    tau_days: float = 30.0,
    exclude: Sequence[int] = (),
    **params: Any,
) -> Expertise:
    """Embed the competition graph of a site and write the model file."""
    made = Expertise.fit(site, ega=ega, tau_days=tau_days, exclude=exclude, **params)
    about = {
        "format": "atpgraph-site-model",
        "site": _seen_from(Path(output).resolve().parent, site.path.resolve()),
        "ega": ega,
        "tau_days": tau_days,
        "excluded_questions": len(exclude),
    }
    made.save(output, about)
    return made
