"""What simulated people write: English from a small grammar, about things people know.

The word lists and sentences are in ``grammar.toml``. A question is set in one part of its topic and
draws a scene there (a thing, its trouble, a task, tools, a setting), which its title, its body and
the answers to it share, so that they read as one conversation. Words say which topic a question is
of, and nothing else: neither its difficulty nor who will answer it.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np

from atpgraph.util.arrays import Int64Array

_TWO_PARTS = 0.2  # share of the questions that touch on two parts of their topic
_MOST_DRAWS = 40  # that any post takes
_BLOCK = 10_000

Scene = dict[str, str]
Part = dict[str, list[str]]  # things, troubles, tasks and tools of a part of a topic
_T = TypeVar("_T")


@dataclass(frozen=True)
class Topic:
    """A topic: its tag, the words that all its questions share, and its parts."""

    tag: str
    person: str
    hobby: str
    settings: list[str]
    terms: list[str]
    parts: dict[str, Part]  # by tag

    @property
    def tags(self) -> list[str]:
        """The tag of the topic, then those of its parts."""
        return [self.tag, *self.parts]


@dataclass(frozen=True)
class Texts:
    """Titles, HTML bodies and tags of questions, and HTML bodies of answers."""

    titles: list[str]
    bodies: list[str]
    tags: list[list[str]]
    answers: list[str]


@cache
def _grammar() -> dict[str, Any]:
    source = files("atpgraph_qa.simulation") / "grammar.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))


def make_topics(count: int) -> list[Topic]:
    """Return `count` different topics: the areas as they are, then the same in other milieus.

    Examples
    --------
    >>> [topic.tag for topic in make_topics(14)][::6]
    ['gardening', 'woodworking', 'gardening-boats']
    >>> make_topics(1)[0].tags
    ['gardening', 'tomatoes', 'compost', 'pruning', 'pests']
    """
    areas = _grammar()["areas"]
    rounds = ((name, variant) for variant in itertools.count() for name in areas)
    return [_topic(name, variant) for name, variant in itertools.islice(rounds, count)]


def _topic(name: str, variant: int) -> Topic:
    area, milieus = _grammar()["areas"][name], _grammar()["milieus"]
    chosen = []
    while variant:  # bijective numeration: no two variants have the same milieus in the same order
        variant, digit = divmod(variant - 1, len(milieus))
        chosen.append(list(milieus)[digit])
    own_terms = area["terms"][: len(area["terms"]) // (2 if chosen else 1)]
    return Topic(
        "-".join([name, *chosen]),
        area["person"],
        area["hobby"],
        [x for key in chosen for x in milieus[key]["settings"]] or area["settings"],
        [x for key in chosen for x in milieus[key]["terms"]] + own_terms,
        {"-".join([tag, *chosen]): words for tag, words in area["parts"].items()},
    )


class _Draws:
    """Choices by a row of uniform numbers; early items of a list are slightly more common."""

    def __init__(self, uniform: Sequence[float]) -> None:
        self._uniform = iter(uniform)

    def chance(self, share: float) -> bool:
        """Return True with probability `share`."""
        return next(self._uniform) < share

    def one(self, options: Sequence[_T]) -> _T:
        """Choose an option."""
        return options[self._index(len(options))]

    def several(self, options: Sequence[_T], count: int) -> list[_T]:
        """Choose different options."""
        rest = list(options)
        return [rest.pop(self._index(len(rest))) for _ in range(count)]

    def say(self, scene: Scene, *kinds: Sequence[str]) -> str:
        """Choose one sentence of every kind and fill in the scene."""
        sentences = [self.one(kind).format_map(scene) for kind in kinds]
        return " ".join(text[0].upper() + text[1:] for text in sentences)

    def _index(self, length: int) -> int:
        return int(length * next(self._uniform) ** 1.5)


def write_texts(
    rng: np.random.Generator,
    topics: Sequence[Topic],
    question_topic: Int64Array,
    answer_question: Int64Array,
) -> Texts:
    """Write the questions and answers of a community.

    `question_topic` has the index of the topic of every question, `answer_question` that of the
    question of every answer.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> texts = write_texts(rng, make_topics(3), np.array([0, 1, 2]), np.array([2]))
    >>> print(texts.titles[0])
    Can I renew a neglected hedge in a small city garden with long-handled loppers?
    >>> texts.tags[0]
    ['gardening', 'pruning']
    """
    texts = Texts([], [], [], [])
    scenes: list[tuple[Topic, Part, Scene]] = []
    for number, draws in _draws(rng, question_topic):
        scenes.append(_write_question(draws, topics[number], texts))
    answer = _grammar()["answer"]
    for number, draws in _draws(rng, answer_question):
        topic, part, scene = scenes[number]
        own = scene | _remedy(draws, topic, part)
        said = draws.say(own, answer["diagnoses"], answer["advice"], answer["closings"])
        texts.answers.append(f"<p>{said}</p>\n")
    return texts


def _draws(rng: np.random.Generator, posts: Int64Array) -> Iterator[tuple[int, _Draws]]:
    """Yield each post with a fixed count of random numbers, enough to write the longest."""
    for start in range(0, len(posts), _BLOCK):
        block = posts[start : start + _BLOCK]
        rows = rng.random((len(block), _MOST_DRAWS)).tolist()
        yield from zip(block.tolist(), map(_Draws, rows), strict=True)


def _write_question(draws: _Draws, topic: Topic, texts: Texts) -> tuple[Topic, Part, Scene]:
    """Add a question to the texts and return its subject, for the answers."""
    tag, other = draws.several(list(topic.parts), 2)
    scene = _scene(draws, topic, topic.parts[tag])
    sentences = _grammar()["question"]
    kind = _grammar()["trouble" if draws.chance(0.5) else "task"]
    texts.titles.append(draws.say(scene, kind["titles"]))
    texts.tags.append([topic.tag, tag])
    body = [
        draws.say(scene, sentences["introductions"], kind["openings"]),
        draws.say(scene, sentences["details"], sentences["attempts"]),
        draws.say(scene, sentences["asks"]),
    ]
    if draws.chance(_TWO_PARTS):
        texts.tags[-1].append(other)
        body.insert(2, draws.say(_scene(draws, topic, topic.parts[other]), sentences["asides"]))
    texts.bodies.append(f"<p>{' '.join(body)}</p>\n")
    return topic, topic.parts[tag], scene


def _scene(draws: _Draws, topic: Topic, part: Part) -> Scene:
    """Return the subject of a question; the keys are the fields of the sentences."""
    setting, other = draws.several(topic.settings, 2)
    return {
        "person": topic.person,
        "hobby": topic.hobby,
        "thing": draws.one(part["things"]),
        "trouble": draws.one(part["troubles"]),
        "setting": setting,
        "other_setting": other,
        "when": draws.one(_grammar()["question"]["whens"]),
        **_remedy(draws, topic, part),
    }


def _remedy(draws: _Draws, topic: Topic, part: Part) -> Scene:
    """Return what the writer suggests to do about it."""
    scene: Scene = {}
    scene["task"], scene["other_task"] = draws.several(part["tasks"], 2)
    scene["tool"], scene["other_tool"] = draws.several(part["tools"], 2)
    terms = ("term", "other_term", "third_term", "fourth_term", "fifth_term")
    scene.update(zip(terms, draws.several(topic.terms, len(terms)), strict=True))
    return scene
