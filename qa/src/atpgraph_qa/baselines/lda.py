"""Latent Dirichlet allocation, by online variational Bayes (Hoffman, Blei and Bach, 2010).

λ, the Dirichlet parameters of words in topics, moves with every batch of documents towards what the
batch says; γ, those of topics in a document, is found by fixed-point iteration. One compiled loop
over the words of a batch does both; the twin in the tests is scikit-learn's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atpgraph.util.arrays import Float64Array, Int32Array
from atpgraph.util.jit import kernel

PASSES, BATCH = 5, 512
OFFSET, DECAY = 10.0, 0.7  # the step after t batches is (OFFSET + t) ** −DECAY
_ROUNDS, _CHANGE = 100, 1e-3
_SHAPE = 100.0  # of the gamma distribution, with mean 1, that λ and γ start from


@dataclass(frozen=True, eq=False)
class Lda:
    """Topics of documents.

    Attributes
    ----------
    strength : float64 array of shape (words, topics)
        λ.
    likely : float64 array of the same shape
        exp E log β: what a word is worth for each topic.
    """

    strength: Float64Array
    likely: Float64Array

    @classmethod
    def fit(cls, counts: Any, n_topics: int, rng: np.random.Generator) -> Self:
        """Learn topics from counts of words in compressed rows, one per document."""
        n_documents, n_words = counts.shape
        prior = 1.0 / n_topics
        strength = rng.gamma(_SHAPE, 1.0 / _SHAPE, (n_topics, n_words)).T.copy()
        starts = list(range(0, n_documents, BATCH)) * PASSES
        for step, start in enumerate(starts, start=1):
            batch = counts[start : start + BATCH]
            words, local = np.unique(batch.indices, return_inverse=True)
            likely = _likely(strength[words], strength.sum(axis=0))
            mix = rng.gamma(_SHAPE, 1.0 / _SHAPE, (batch.shape[0], n_topics))
            found = np.zeros_like(likely)
            infer(batch.indptr, local.astype(np.int32), batch.data, likely, prior, mix, found)
            weight = (OFFSET + step) ** -DECAY
            strength *= 1.0 - weight
            strength += weight * prior
            strength[words] += weight * (n_documents / batch.shape[0]) * found * likely
        return cls(strength, _likely(strength, strength.sum(axis=0)))

    def topics(self, counts: Any) -> Float64Array:
        """Shares of topics in documents, a row each."""
        n_topics = self.strength.shape[1]
        mix, nowhere = np.ones((counts.shape[0], n_topics)), np.zeros((0, n_topics))
        given = counts.indptr, counts.indices.astype(np.int32, copy=False), counts.data
        infer(*given, self.likely, 1.0 / n_topics, mix, nowhere)
        return np.asarray(mix / mix.sum(axis=1, keepdims=True))


def _likely(strength: Float64Array, total: Float64Array) -> Float64Array:
    """exp E log β of some words; `total` is that of all words, topic by topic."""
    from scipy.special import psi

    return np.asarray(np.exp(psi(strength) - psi(total)))


@kernel
def digamma(x: float) -> float:
    """ψ(x) of a positive number, to about eleven digits: upwards to 9, then the series there."""
    result = 0.0
    while x < 9.0:
        result -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    tail = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return float(result + np.log(x) - 0.5 / x - tail)


@kernel
def infer(
    indptr: Int32Array,
    word: Int32Array,
    count: Float64Array,
    likely: Float64Array,
    prior: float,
    mix: Float64Array,
    found: Float64Array,
) -> None:
    """Find γ of every document, from what is in `mix`; add what it says of words to `found`.

    Nothing is added if `found` is empty.
    """
    n_topics = mix.shape[1]
    share, total = np.empty(n_topics), np.empty(n_topics)
    for document in range(len(mix)):
        first, last = indptr[document], indptr[document + 1]
        gamma = mix[document]
        settle(gamma, share)
        for _ in range(_ROUNDS):
            total[:] = 0.0
            for at in range(first, last):
                worth = likely[word[at]]
                norm = 1e-16
                for topic in range(n_topics):
                    norm += share[topic] * worth[topic]
                for topic in range(n_topics):
                    total[topic] += count[at] / norm * worth[topic]
            change = 0.0
            for topic in range(n_topics):
                fresh = share[topic] * total[topic] + prior
                change += abs(fresh - gamma[topic])
                gamma[topic] = fresh
            settle(gamma, share)
            if change < _CHANGE * n_topics:
                break
        for at in range(first, last if len(found) else first):
            worth = likely[word[at]]
            norm = 1e-16
            for topic in range(n_topics):
                norm += share[topic] * worth[topic]
            for topic in range(n_topics):
                found[word[at], topic] += share[topic] * count[at] / norm


@kernel
def settle(gamma: Float64Array, share: Float64Array) -> None:
    """exp E log θ of a document into `share`."""
    total = 0.0
    for topic in range(len(gamma)):
        total += gamma[topic]
    whole = digamma(total)
    for topic in range(len(gamma)):
        share[topic] = np.exp(digamma(gamma[topic]) - whole)
