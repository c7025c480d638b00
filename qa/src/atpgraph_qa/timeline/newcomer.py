"""People of whom a site has no record yet."""

from __future__ import annotations

from dataclasses import dataclass

from atpgraph.util.arrays import Int64Array


@dataclass(frozen=True)
class Newcomer:
    """Somebody new: what they say they know about, or their first answers.

    Attributes
    ----------
    user : int
        User id.
    tags : tuple of str
        Tags they say they know about.
    text : str
        The same in words.
    answered : tuple of int
        Ids of the questions they have answered.
    accepted : tuple of int
        Those of them where their answer was accepted.
    """

    user: int
    tags: tuple[str, ...] = ()
    text: str = ""
    answered: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Arrival:
    """A newcomer and the evidence for them.

    Attributes
    ----------
    newcomer : Newcomer
    questions : int64 array
        Positions of the questions that stand for what they know; none if nothing matches.
    """

    newcomer: Newcomer
    questions: Int64Array
