"""Forget a person in the advisor: their name, and the text of what they asked."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atpgraph.embedding.estimator import ATP
from atpgraph.util.arrays import Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.expertise import Expertise
from atpgraph_qa.service.forget import GONE, mention
from atpgraph_qa.timeline.corpus import Corpus, words
from atpgraph_qa.timeline.events import Forgotten
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import Meaning
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.tables import TextTable

_FEW = 20  # questions


def forget_in_history(advisor: Advisor, user: int, handle: str = "") -> Advisor:
    """An advisor that does not know a person.

    Their posts stay as posts of nobody, so that what others did keeps its meaning; titles, words
    and vectors of their questions go, and ``@handle`` from the titles of others. In the embedded
    graph their node stays under a number drawn at random.
    """
    records = advisor.history.records
    code = int(records.codes([user])[0])
    if code < 0 and not handle:
        return advisor
    known = code >= 0
    asked = np.flatnonzero(records.questions.asker == code) if known else np.zeros(0, np.int64)
    made = advisor.observe([Forgotten(user)]) if known else advisor
    fitted = advisor.fitted
    if fitted is not None:
        fitted = Expertise.from_model(_renamed(fitted.model, user))
    return replace(erase_questions(made, asked, handle), fitted=fitted)


def erase_questions(advisor: Advisor, questions: Int64Array, handle: str = "") -> Advisor:
    """Return an advisor without title, words and vectors of some questions (their positions).

    With a handle, also without ``@handle`` in the titles of others.
    """
    records = advisor.history.records.settled()
    titles = list(records.texts.titles)
    if handle:
        named = mention(handle)
        titles = [named.sub(GONE, title) if "@" in title else title for title in titles]
    for question in questions.tolist():
        titles[question] = ""
    records = replace(
        records,
        texts=TextTable(titles, [""] * len(titles)),
        corpus=without_words(records.corpus, questions, words(handle, "", ())),
        meaning=_without_vectors(records.meaning, questions),
    )
    history = History(records, advisor.history.now, advisor.history.shared)
    return replace(advisor, history=history)


def asked_by(advisor: Advisor, user: int) -> set[int]:
    """Return the ids of the questions that somebody asked."""
    questions = advisor.history.records.questions
    code = int(advisor.history.records.codes([user])[0])
    return set(questions.id[questions.asker == code].tolist()) if code >= 0 else set()


def _without_vectors(meaning: Meaning | None, questions: Int64Array) -> Meaning | None:
    """As if these questions had no text."""
    if meaning is None or not len(questions):
        return meaning
    vectors = meaning.vectors.copy()
    vectors[questions] = 0
    return replace(meaning, vectors=vectors, recent=Memo())


def without_words(corpus: Corpus, questions: Int64Array, names: Sequence[str] = ()) -> Corpus:
    """A corpus in which some questions have no words; words that only they had are gone.

    So are `names` that few questions have: what many use is a word, and tells of nobody.
    """
    counts = corpus.counts.tocsc()
    keep = ~np.isin(counts.indices, questions)
    column = np.repeat(np.arange(counts.shape[1]), np.diff(counts.indptr))
    uses = np.bincount(column[keep], minlength=counts.shape[1])
    rare = [code for code in map(corpus.vocabulary.get, names) if code is not None]
    rare = [code for code in rare if code < len(uses) and uses[code] <= _FEW]
    keep &= ~np.isin(column, rare)
    uses[rare] = 0
    used = uses > 0
    cleaned = counts.copy()
    cleaned.data = np.where(keep, counts.data, 0.0)
    cleaned.eliminate_zeros()
    left = np.flatnonzero(used)
    # Words come by first use, and the first use of some may have been in these questions.
    first = cleaned.indices[cleaned.indptr[left]]
    order = left[np.argsort(first, kind="stable")]
    number = np.full(counts.shape[1], -1, dtype=np.int64)
    number[order] = np.arange(len(order))
    vocabulary = {
        word: int(number[code])
        for word, code in corpus.vocabulary.items()
        if code < len(number) and number[code] >= 0
    }
    return Corpus(vocabulary, cleaned[:, order])


def _renamed(model: ATP, user: int) -> ATP:
    label = f"user:{user}"
    labels = model.graph_.labels.copy()
    labels[labels == label] = f"user:{2**61 + secrets.randbelow(2**60)}"
    made = copy.copy(model)
    made.graph_ = replace(model.graph_, labels=labels)
    return made
