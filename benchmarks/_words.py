"""Invented, pronounceable words: vocabularies of topics that exist nowhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array

_ONSETS = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"]
_ONSETS += ["br", "dr", "fl", "gr", "kl", "pl", "st", "tr", "sh", "ch"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ei", "ou"]
_CODAS = ["", "", "", "n", "l", "r", "s", "m", "k"]


def invent_words(rng: np.random.Generator, count: int, syllables: int = 2) -> list[str]:
    """Distinct words of about so many syllables.

    Examples
    --------
    >>> words = invent_words(np.random.default_rng(0), 50)
    >>> len(set(words)), all(word.isalpha() for word in words)
    (50, True)
    """
    words: dict[str, None] = {}
    while len(words) < count:
        length = syllables + int(rng.integers(0, 2))
        parts = [
            _ONSETS[rng.integers(len(_ONSETS))] + _VOWELS[rng.integers(len(_VOWELS))]
            for _ in range(length)
        ]
        words["".join(parts) + _CODAS[rng.integers(len(_CODAS))]] = None
    return list(words)


def zipf(count: int, exponent: float = 0.9) -> Float64Array:
    """Frequencies that fall with the rank, summing to 1."""
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    result: Float64Array = weights / weights.sum()
    return result


def write_texts(
    rng: np.random.Generator,
    topics: Int64Array,
    lengths: Int64Array,
    vocabularies: Sequence[Sequence[str]],
    common: Sequence[str],
    own_share: float = 0.45,
) -> list[str]:
    """One text per entry of `topics`: words of the topic among words everybody uses."""
    width = len(vocabularies[0])
    total = int(lengths.sum())
    topic = np.repeat(topics, lengths)
    own = rng.random(total) < own_share
    drawn = rng.choice(width, size=total, p=zipf(width))
    shared = rng.choice(len(common), size=total, p=zipf(len(common)))
    table = [word for vocabulary in vocabularies for word in vocabulary] + list(common)
    codes = np.where(own, topic * width + drawn, len(vocabularies) * width + shared)
    words = [table[code] for code in codes.tolist()]
    ends = np.cumsum(lengths).tolist()
    starts = [0, *ends[:-1]]
    return [" ".join(words[start:end]) for start, end in zip(starts, ends, strict=True)]
