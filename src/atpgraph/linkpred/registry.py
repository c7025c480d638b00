"""The rows of the table: names under which methods are asked for, and how to make each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from atpgraph.linkpred.atp import LevelDifference, PlainATP
from atpgraph.linkpred.baselines import (
    APP,
    HOPE,
    LINE,
    NRP,
    SVDM,
    AdjacencySVD,
    AnyNeighbours,
    CommonNeighbours,
    DegreeProduct,
    ItemCosine,
    PreferentialAttachment,
    Proximity,
    ThreeSteps,
)
from atpgraph.linkpred.learned import LearnedLinks
from atpgraph.linkpred.method import Method
from atpgraph.util.registry import Registry

Make = Callable[[int, int], Method]


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes
    ----------
    key : str
        What a user types.
    group : {"ours", "rival", "trivial"}
    make : function of (dimension, seed)
    has_dimension : bool
        Whether the dimension changes anything.
    """

    key: str
    group: Literal["ours", "rival", "trivial"]
    make: Make
    has_dimension: bool = True


def _atp(kernel: str) -> Make:
    return lambda k, seed: PlainATP(k, kernel, random_state=seed)


def _svdm(kernel: str) -> Make:
    return lambda k, seed: SVDM(k, kernel, random_state=seed)


def _hope(proximity: str) -> Make:
    return lambda k, seed: HOPE(k, proximity, random_state=seed)


ROWS = Registry(
    "method",
    {
        row.key: row
        for row in [
            Row("atp-log", "ours", _atp("log")),
            Row("atp-harmonic", "ours", _atp("harmonic")),
            Row("atp-linear", "ours", _atp("linear")),
            Row("atp-constant", "ours", _atp("constant")),
            Row("links", "ours", lambda k, seed: LearnedLinks(k, random_state=seed)),
            Row("svdm-log", "rival", _svdm("log")),
            Row("svdm-harmonic", "rival", _svdm("harmonic")),
            Row("line", "rival", lambda k, seed: LINE(k, random_state=seed)),
            Row("app", "rival", lambda k, seed: APP(k, random_state=seed)),
            Row("nrp", "rival", lambda k, seed: NRP(k, random_state=seed)),
            Row("hope-katz", "rival", _hope("katz")),
            Row("hope-cn", "rival", _hope("common-neighbours")),
            Row("hope-aa", "rival", _hope("adamic-adar")),
            Row("hope-rpr", "rival", _hope("rooted-pagerank")),
            Row("levels", "trivial", lambda k, seed: LevelDifference(random_state=seed), False),
            Row("svd", "trivial", lambda k, seed: AdjacencySVD(k, random_state=seed)),
            Row("common-neighbours", "trivial", lambda k, seed: CommonNeighbours(), False),
            Row("common-neighbours-any", "trivial", lambda k, seed: AnyNeighbours(), False),
            Row("paths", "trivial", lambda k, seed: ThreeSteps(), False),
            Row("item-cosine", "trivial", lambda k, seed: ItemCosine(), False),
            Row("ppr", "trivial", lambda k, seed: Proximity(), False),
            Row("ppr-degree", "trivial", lambda k, seed: Proximity(by_degree=True), False),
            Row("degree-product", "trivial", lambda k, seed: DegreeProduct(), False),
            Row("preferential", "trivial", lambda k, seed: PreferentialAttachment(), False),
        ]
    },
)


def choose(names: str | Sequence[str] = "all") -> list[Row]:
    """The rows named, in the order of the table; "all", or names separated by commas.

    A group (``ours``, ``rival``, ``trivial``) stands for its rows.

    Examples
    --------
    >>> [row.key for row in choose("nrp,line")]
    ['line', 'nrp']
    """
    wanted = (
        [part.strip().lower() for part in names.split(",")] if isinstance(names, str) else names
    )
    groups = {row.group for row in ROWS.values()} | {"all"}
    for name in wanted:
        if name not in groups:
            ROWS[name]  # an unknown name is refused
    return [row for row in ROWS.values() if {"all", row.group, row.key} & set(wanted)]
