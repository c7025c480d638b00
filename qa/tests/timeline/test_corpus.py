from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.timeline.corpus import Corpus, words
from atpgraph_qa.timeline.records import Records


def slow_bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """From the definition, document by document."""
    mean = max(np.mean([len(text) for text in texts]), 1e-9)
    scores = []
    for text in texts:
        score = 0.0
        for word in sorted(set(query)):
            used = sum(word in other for other in texts)
            if word in text:
                rarity = np.log1p((len(texts) - used + 0.5) / (used + 0.5))
                tf = text.count(word)
                damped = tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * len(text) / mean))
                score += rarity * np.sqrt(query.count(word)) * damped
        scores.append(score)
    return scores


@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=8),
    st.lists(st.sampled_from("abcdz"), max_size=5),
    st.data(),
)
def test_bm25_of_any_prefix(
    letters: list[list[str]], asked: list[str], data: st.DataObject
) -> None:
    texts = [[letter * 3 for letter in text] for text in letters]
    corpus = Corpus.of([" ".join(text) for text in texts], [""] * len(texts), [[]] * len(texts))
    n = data.draw(st.integers(1, len(texts)))
    hidden = data.draw(st.integers(-1, n - 1))
    present = np.arange(n) != hidden
    terms = corpus.query(" ".join(letter * 3 for letter in asked), "", ())
    seen = [text for text, there in zip(texts[:n], present, strict=True) if there]
    found = corpus.bm25(terms, present)
    expected = slow_bm25(seen, [letter * 3 for letter in asked]) if seen else []
    np.testing.assert_allclose(found[present], expected, rtol=1e-5)
    assert not found[~present].any()
    first = corpus.first(n)
    same = first.query(" ".join(letter * 3 for letter in asked), "", ())
    np.testing.assert_allclose(first.bm25(same, present), found, rtol=1e-5)


@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=2, max_size=12),
    st.lists(st.sampled_from("abcdz"), max_size=5),
    st.data(),
)
def test_a_corpus_that_grew_is_one_made_at_once(
    letters: list[list[str]], asked: list[str], data: st.DataObject
) -> None:
    titles = [" ".join(letter * 3 for letter in text) for text in letters]
    at_once = Corpus.of(titles, [""] * len(titles), [[]] * len(titles))
    n = data.draw(st.integers(1, len(titles) - 1))
    corpus = Corpus.of(titles[:n], [""] * n, [[]] * n)
    for title in titles[n:]:
        corpus = corpus.grown([(title, "", ())])
    assert corpus.late is not None
    known = data.draw(st.integers(1, len(titles)))
    present = np.arange(known) != data.draw(st.integers(-1, known - 1))
    terms, same = (
        made.query(" ".join(letter * 3 for letter in asked), "", ()) for made in (corpus, at_once)
    )
    np.testing.assert_array_equal(corpus.worth(terms, present), at_once.worth(same, present))
    np.testing.assert_array_equal(corpus.bm25(terms, present), at_once.bm25(same, present))


def test_words_are_numbered_by_first_use(records: Records) -> None:
    corpus = records.corpus
    first = corpus.counts.indices[corpus.counts.indptr[:-1]]
    assert (np.diff(first) >= 0).all()
    for n in (1, 50, 300):
        used = set()
        for q in range(n):
            text = records.titles[q], records.bodies[q], records.tags.of(q)
            used |= set(words(*text))
        assert used == {
            word for word, code in corpus.vocabulary.items() if code < corpus.n_words(n)
        }


def test_no_words_at_all() -> None:
    corpus = Corpus.of(["", "?"], ["", ""], [[], []])
    assert corpus.n_words(2) == 0
    assert corpus.bm25(corpus.query("anything", "", ()), np.ones(2, np.bool_)).tolist() == [0, 0]


def test_the_words_of_a_large_corpus_are_not_summed_for_every_later_question() -> None:
    grown = Corpus.of(["old trains"], [""], [["rail"]]).grown([("new trains", "", ["rail"])])
    assert grown.tail is grown.late
