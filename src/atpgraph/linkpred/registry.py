"""The rows of the table: names under which methods are asked for, and how to make each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from atpgraph.errors import InputError
from atpgraph.linkpred import ours
from atpgraph.linkpred.method import Method
from atpgraph.linkpred.rivals import (
    APP,
    HOPE,
    LINE,
    NRP,
    AdjacencySVD,
    CommonNeighbours,
    DegreeProduct,
    PreferentialAttachment,
)

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


def _rivals() -> list[Row]:
    return [
        Row("line", "rival", lambda k, seed: LINE(k, random_state=seed)),
        Row("app", "rival", lambda k, seed: APP(k, random_state=seed)),
        Row("nrp", "rival", lambda k, seed: NRP(k, random_state=seed)),
        Row("hope-katz", "rival", lambda k, seed: HOPE(k, "katz", random_state=seed)),
        Row("hope-cn", "rival", lambda k, seed: HOPE(k, "common-neighbours", random_state=seed)),
        Row("hope-aa", "rival", lambda k, seed: HOPE(k, "adamic-adar", random_state=seed)),
        Row("hope-rpr", "rival", lambda k, seed: HOPE(k, "rooted-pagerank", random_state=seed)),
        Row("svd", "trivial", lambda k, seed: AdjacencySVD(k, random_state=seed)),
        Row("common-neighbours", "trivial", lambda k, seed: CommonNeighbours(), False),
        Row("degree-product", "trivial", lambda k, seed: DegreeProduct(), False),
        Row("preferential", "trivial", lambda k, seed: PreferentialAttachment(), False),
    ]


def rows() -> dict[str, Row]:
    """All rows by key, in the order of the table: ours, rivals, trivial ones."""
    mine = [Row(*entry) for entry in ours.ROWS]
    group = {"ours": 0, "rival": 1, "trivial": 2}
    ordered = sorted(mine + _rivals(), key=lambda row: group[row.group])
    return {row.key: row for row in ordered}


def choose(names: str | Sequence[str] = "all") -> list[Row]:
    """The rows named, in the order of the table; "all", or names separated by commas.

    A group (``ours``, ``rival``, ``trivial``) stands for its rows.

    Examples
    --------
    >>> [row.key for row in choose("nrp,line")]
    ['line', 'nrp']
    """
    known = rows()
    wanted = (
        [part.strip().lower() for part in names.split(",")] if isinstance(names, str) else names
    )
    chosen: set[str] = set()
    for name in wanted:
        members = {row.key for row in known.values() if name in ("all", row.group, row.key)}
        if not members:
            raise InputError(f"No method is called {name!r}; there are {', '.join(known)}.")
        chosen |= members
    return [row for row in known.values() if row.key in chosen]
