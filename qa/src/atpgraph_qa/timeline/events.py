"""What happens on a site while a model is in use, one event at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atpgraph.errors import InputError
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
        _check_ids(self, id=self.id)
        _check_numbers(self, asker=self.asker, at_ms=self.at_ms)
        if isinstance(self.tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise InputError(f"tags is a list of names, not {self.tags!r}.")
        if not isinstance(self.title, str) or not isinstance(self.body, str):
            raise InputError(f"Title and body of question {self.id} are text.")
        object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))


@dataclass(frozen=True)
class Answered:
    """Somebody answered a question; `question` is its id, `user` −1 for somebody unknown."""

    id: int
    question: int
    user: int = NOBODY
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check_ids(self, id=self.id, question=self.question)
        _check_numbers(self, user=self.user, at_ms=self.at_ms)


@dataclass(frozen=True)
class Accepted:
    """An answer was accepted; both are named by id."""

    question: int
    answer: int
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check_ids(self, question=self.question, answer=self.answer)
        _check_numbers(self, at_ms=self.at_ms)


@dataclass(frozen=True)
class Voted:
    """A vote for an answer, +1 or −1; a vote taken back is one of the other sign."""

    answer: int
    value: int
    at_ms: int = 0

    def __post_init__(self) -> None:
        _check_ids(self, answer=self.answer)
        _check_numbers(self, value=self.value, at_ms=self.at_ms)
        if self.value not in (1, -1):
            raise InputError(f"A vote is 1 or -1, not {self.value!r}.")


@dataclass(frozen=True)
class Forgotten:
    """Somebody is to be forgotten: their posts stay, without their name."""

    user: int

    def __post_init__(self) -> None:
        _check_ids(self, user=self.user)


Event = Asked | Answered | Accepted | Voted | Forgotten


def _check_ids(event: object, **ids: object) -> None:
    """Ids are numbers from 0."""
    _check_numbers(event, **ids)
    for name, value in ids.items():
        if isinstance(value, int) and value < 0:
            raise InputError(f"{name} of {type(event).__name__} is an id from 0, not {value}.")


def _check_numbers(event: object, **numbers: object) -> None:
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**62:
            raise InputError(f"{name} of {type(event).__name__} is a number, not {value!r}.")
