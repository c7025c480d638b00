from __future__ import annotations

import re
import string
from collections import Counter

import numpy as np
import pytest

from atpgraph_qa.simulation.texts import _Draws, _grammar, _scene, make_topics, write_texts

GRAMMAR = _grammar()
SENTENCES = [
    sentence
    for section in ("trouble", "task", "question", "answer")
    for name, kind in GRAMMAR[section].items()
    if name != "whens"
    for sentence in kind
]


def test_sentences_use_only_what_a_scene_has():
    topic = make_topics(1)[0]
    scene = _scene(_Draws([0.5] * 40), topic, next(iter(topic.parts.values())))
    for sentence in SENTENCES:
        fields = [field for _, field, _, _ in string.Formatter().parse(sentence) if field]
        assert set(fields) <= set(scene), sentence
        assert sentence[-1] in ".?", sentence


@pytest.mark.parametrize("area", GRAMMAR["areas"].values(), ids=GRAMMAR["areas"])
def test_phrases_fit_into_sentences(area):
    assert len(area["parts"]) == 4
    lists = [area["settings"], area["terms"]]
    lists += [phrases for part in area["parts"].values() for phrases in part.values()]
    for phrases in lists:
        assert len(phrases) == len(set(phrases)) >= 5
        assert all(re.fullmatch(r"[\w'][\w' -]*\w", phrase) for phrase in phrases)
    for part in area["parts"].values():
        assert all(re.search(r"ing\b", trouble.split()[0]) for trouble in part["troubles"])


def test_any_number_of_topics_and_no_tag_twice():
    topics = make_topics(600)
    tags = Counter(tag for topic in topics for tag in topic.tags)
    assert len(tags) == 5 * 600
    assert all(re.fullmatch(r"[a-z-]+", tag) for tag in tags)
    rng = np.random.default_rng(1)
    texts = write_texts(rng, topics, np.arange(600), np.arange(600))
    assert len(set(texts.titles)) == 600
    for topic, title, body, tags_ in zip(
        topics, texts.titles, texts.bodies, texts.tags, strict=True
    ):
        assert title[0].isupper()
        assert title.endswith("?")
        assert not re.search(r"[{}]|  |\bthe the\b", title + body)
        assert tags_[0] == topic.tag
        assert set(tags_) <= set(topic.tags)


def test_same_state_same_texts():
    topics, topic, question = make_topics(5), np.arange(5).repeat(20), np.arange(100)
    one, two, three = (
        write_texts(np.random.default_rng(seed), topics, topic, question) for seed in (1, 1, 2)
    )
    assert one == two
    assert one.titles != three.titles


def test_words_say_the_topic():
    """Naive Bayes on titles alone, learnt from some questions, names the topic of others."""
    n_topics = 8
    topic = np.tile(np.arange(n_topics), 100)
    texts = write_texts(np.random.default_rng(3), make_topics(n_topics), topic, np.zeros(0, int))
    words = [re.findall(r"\w+", title.lower()) for title in texts.titles]
    learnt = [Counter() for _ in range(n_topics)]
    for number, title in zip(topic[:400].tolist(), words[:400], strict=True):
        learnt[number].update(title)
    sizes = [counts.total() for counts in learnt]

    def guess(title: list[str]) -> int:
        odds = [
            sum(np.log((counts[word] + 0.1) / size) for word in title)
            for counts, size in zip(learnt, sizes, strict=True)
        ]
        return int(np.argmax(odds))

    right = [guess(title) == number for number, title in zip(topic[400:], words[400:], strict=True)]
    assert np.mean(right) > 0.95
