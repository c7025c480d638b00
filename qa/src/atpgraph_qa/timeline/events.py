"""Events on a site while a model is in use, and newcomers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atpgraph.errors import InputError
from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import NOBODY


@dataclass(frozen=True)
class Asked:
    """Somebody asked a question.

    Attributes
    ----------
    id : int
        Id of the question on the site.
    title, body : str
        Text; the body may be HTML, both may be empty.
    tags : sequence of str
        Names; new ones are welcome, repeats do not count.
    asker : int
        User id, −1 for somebody unknown.
    at_ms : int
        When, in milliseconds since 1970.
    """

    id: int
    title: str = ""
    body: str = ""
    tags: Sequence[str] = ()
    asker: int = NOBODY
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check(self, "id", "asker", "at_ms")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise InputError(f"tags must be a list of names, not {self.tags!r}.")
        if not isinstance(self.title, str) or not isinstance(self.body, str):
            raise InputError(f"Title and body of question {self.id} must be text.")
        object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))


@dataclass(frozen=True)
class Answered:
    """A question was answered; `question` is its id, and `user` is −1 if unknown."""

    id: int
    question: int
    user: int = NOBODY
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check(self, "id", "question", "user", "at_ms")


@dataclass(frozen=True)
class Accepted:
    """An answer was accepted; both are named by id."""

    question: int
    answer: int
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check(self, "question", "answer", "at_ms")


@dataclass(frozen=True)
class Voted:
    """A vote for an answer, +1 or −1; a withdrawn vote is a vote of the opposite sign."""

    answer: int
    value: int
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check(self, "answer", "value", "at_ms")
        if self.value not in (1, -1):
            raise InputError(f"A vote must be 1 or -1, not {self.value!r}.")


@dataclass(frozen=True)
class Forgotten:
    """A person is forgotten: their posts stay, without their name."""

    user: int

    def __post_init__(self) -> None:
        _check(self, "user")


Event = Asked | Answered | Accepted | Voted | Forgotten
_MAY_BE_NEGATIVE = ("asker", "at_ms", "value")


def _check(event: Event, *numbers: str) -> None:
    """Check that attributes are whole numbers, and ids from 0."""
    kind = type(event).__name__
    for name in numbers:
        value = getattr(event, name)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**62:
            raise InputError(f"{name} of {kind} must be a number, not {value!r}.")
        unknown = isinstance(event, Answered) and name == "user"
        if value < 0 and not unknown and name not in _MAY_BE_NEGATIVE:
            raise InputError(f"{name} of {kind} must be an id from 0, not {value}.")


@dataclass(frozen=True)
class Newcomer:
    """A newcomer: the topics they declare, or their first answers.

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
    """A newcomer, and the positions of the questions that represent their knowledge."""

    newcomer: Newcomer
    questions: Int64Array
