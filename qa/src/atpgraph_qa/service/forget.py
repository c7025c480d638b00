"""Forget a person, or a deleted question: in every table, and in the advisor."""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, Text, delete, func, or_, select, type_coerce, update

from atpgraph.embedding.estimator import ATP
from atpgraph.util.arrays import Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.expertise import Expertise
from atpgraph_qa.service import tables as db
from atpgraph_qa.service.events import ForgottenPeople
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.corpus import Corpus, words
from atpgraph_qa.timeline.events import Forgotten
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.tables import TextTable

GONE = "@removed"
_AT_ONCE = 500  # values in one query
_FEW = 20  # questions


def forget_rows(
    connection: Connection, forgotten: ForgottenPeople, user: int, handle: str,
    asked: Collection[int], now_ms: int,
) -> dict[str, int]:  # fmt: skip
    """Remove a person from every table; return how many rows of each were removed or changed.

    Their answers stay without an owner. Of their questions the tags stay, so that the answers of
    others keep their place; title and text go. `asked` are the ids of their questions, those that
    came with the model as well.
    """
    mine = db.events.c.person == user
    theirs = select(db.events.c.question).where(mine, db.events.c.kind == "asked")
    titles = set(asked) | set(connection.execute(theirs).scalars())
    rows = db.find(connection, select(db.events).where(mine))
    for row in rows:
        name = "asker" if row["kind"] == "asked" else "user"
        payload = {**row["payload"], name: NOBODY}
        db.change(connection, db.events, row["seq"], person=None, payload=payload)
    # Somebody else may have been asked in their place.
    touched = _has(connection, db.suggestions.c.people, f'"user": {user},')
    touched = select(db.suggestions.c.id).where(touched).union(
        *(select(t.c.suggestion).where(t.c.person == user) for t in (db.feedback, db.asks))
    )  # fmt: skip
    named = [number for number in connection.execute(touched).scalars() if number is not None]
    report = {"events": len(rows), **_erase_texts(connection, user, titles, named)}
    report["rankings"] = _blank_rankings(connection, user)
    report["settings"] = db.remove(connection, db.people, user)
    report["asks"] = db.remove(connection, db.asks, db.asks.c.person == user)
    db.change(connection, db.feedback, db.feedback.c.person == user, note="")
    for column in _columns(db.Who):
        changed = db.change(connection, column.table, column == user, **{column.name: None})
        report.setdefault(column.table.name, changed)
    waiting = db.find(connection, select(db.topic_parts))
    gone = [row["topic"] for row in waiting if row["payload"].get("asker") == user]
    db.remove(connection, db.topic_parts, db.topic_parts.c.topic.in_(gone))
    connection.execute(delete(db.idempotency))  # answers kept for repetitions may tell of anybody
    report["mentions"] = _mentions(connection, handle) if handle else 0
    forgotten.add(connection, user, now_ms)
    return report


def erase_question_rows(connection: Connection, question: int) -> None:
    """Remove title and text of a question that was deleted, and what quotes it."""
    _erase_texts(connection, NOBODY, [question], [])


def _erase_texts(
    connection: Connection, user: int, asked: Collection[int], touched: Collection[int]
) -> dict[str, int]:
    """Remove the texts of questions, and of what quotes them; return how many rows quoted them.

    Of the suggestions `touched`, and of messages about them, the person goes as well.
    """
    about, quoted = set(touched), set(asked)
    for part in _chunks(asked):
        mine = db.suggestions.c.question.in_(part)
        about |= set(connection.execute(select(db.suggestions.c.id).where(mine)).scalars())
        quoting = db.quotes.c.question.in_(part)
        about |= set(connection.execute(select(db.quotes.c.suggestion).where(quoting)).scalars())
        db.remove(connection, db.quotes, quoting)
        db.change(
            connection, db.questions, db.questions.c.id.in_(part), title="", body="", origin={}
        )
        texts = db.events.c.kind.in_(("asked", "edited")) & db.events.c.question.in_(part)
        for row in db.find(connection, select(db.events).where(texts)):
            payload = {**row["payload"], "title": "", "body": ""}
            db.change(connection, db.events, row["seq"], payload=payload, origin={})
    report = {"messages": 0, "suggestions": 0}
    for part in _chunks(about):
        for row in db.find(connection, select(db.outbox).where(db.outbox.c.suggestion.in_(part))):
            data = row["payload"].get("data", {})
            listed, subject = data.get("people", ()), data.get("question", {}).get("id")
            if subject in quoted or any(_tells(person, user, quoted) for person in listed):
                state = "cancelled" if row["state"] == "waiting" else row["state"]
                db.change(connection, db.outbox, row["id"], payload={}, state=state)
                report["messages"] += 1
        for row in db.find(connection, select(db.suggestions).where(db.suggestions.c.id.in_(part))):
            kept = [_without_quotes(person, quoted) for person in row["people"]]
            kept = [person for person in kept if person["user"] != user]
            notes = [note for note in row["notes"] if f"User {user} " not in note]
            if kept != row["people"] or notes != row["notes"]:
                db.change(connection, db.suggestions, row["id"], people=kept, notes=notes)
                report["suggestions"] += 1
    return report


def _without_quotes(person: Row, quoted: set[int]) -> Row:
    reasons = [each for each in person["reasons"] if not quoted.intersection(each["questions"])]
    return {**person, "reasons": reasons}


def _tells(person: Row, user: int, quoted: set[int]) -> bool:
    """Return whether an entry of a message is about a user or quotes one of some questions."""
    cited = {q for reason in person["reasons"] for q in reason.get("questions", ())}
    return person["user"] == user or bool(cited & quoted)


def _blank_rankings(connection: Connection, user: int) -> int:
    """Put nobody in the place of a person in rankings and decisions; return how many rows.

    The database does it: thousands of suggestions may rank somebody. Places stay as they were.
    Lists are JSON in one form, so a person is found by what surrounds their id.
    """
    t = db.suggestions.c
    forms = [(column, '"person": ', ",") for column in (t.ranking, t.decisions)]
    forms += [(t.baseline, before, after) for before in ("[", " ") for after in (",", "]")]
    named = [_has(connection, column, f"{a}{user}{b}") for column, a, b in forms]
    ids = connection.execute(select(t.id).where(or_(t.outcome == user, *named))).scalars().all()
    for part in _chunks(ids):
        for column, a, b in forms:
            text = type_coerce(column, Text)
            new = func.replace(text, f"{a}{user}{b}", f"{a}{NOBODY}{b}")
            db.change(connection, db.suggestions, t.id.in_(part), **{column.name: new})
    return len(ids)


def _mentions(connection: Connection, handle: str) -> int:
    """Take ``@handle`` out of what others wrote, and out of what quotes it; return how many rows.

    The database looks for the first letters, in any case; here the rest is compared.
    """
    pattern, changed = mention(handle), 0
    prefix = "@" + re.split(r"[^\x20-\x7e]", handle)[0]
    for column in _columns(db.Words, db.JsonWords):
        key, text = next(iter(column.table.primary_key)), type_coerce(column, Text)
        query = select(key, text).where(text.icontains(prefix, autoescape=True))
        for number, old in connection.execute(query).all():
            new = pattern.sub(GONE, old)
            if new != old:
                connection.execute(
                    update(column.table).where(key == number).values({column.name: new})
                )
                changed += 1
    return changed


def mention(handle: str) -> re.Pattern[str]:
    """Return a pattern of ``@handle`` in any letter case, as text and as JSON has it."""
    forms = {re.escape(handle), re.escape(json.dumps(handle)[1:-1])}
    return re.compile(f"@(?:{'|'.join(sorted(forms))})(?![\\w-])", re.IGNORECASE)


def _columns(*kinds: type) -> list[Any]:
    """Return the columns of all tables that hold something."""
    return [c for table in db.METADATA.sorted_tables for c in table.c if isinstance(c.type, kinds)]


def _has(connection: Connection, column: Any, text: str) -> Any:
    find_in = func.instr if connection.dialect.name == "sqlite" else func.strpos
    return find_in(column, text) > 0


def _chunks(ids: Collection[int]) -> Iterator[list[int]]:
    wanted = sorted(ids)
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def asked_by(advisor: Advisor, user: int) -> list[int]:
    """Return the ids of the questions that somebody asked."""
    records = advisor.history.records
    code = int(records.codes([user])[0])
    found: list[int] = records.questions.id[records.questions.asker == code].tolist()
    return found if code >= 0 else []


def forget_in_history(advisor: Advisor, user: int, handle: str = "") -> Advisor:
    """Return an advisor that does not know a person.

    Their posts stay without an owner, so that the actions of others keep their meaning; titles,
    words and vectors of their questions are deleted, and ``@handle`` in the titles of others. In
    the embedded graph their node stays under a number drawn at random.
    """
    records = advisor.history.records
    code = int(records.codes([user])[0])
    if code < 0 and not handle:
        return advisor
    asked, made, fitted = np.zeros(0, np.int64), advisor, advisor.fitted
    if code >= 0:
        asked = np.flatnonzero(records.questions.asker == code)
        made = advisor.observe([Forgotten(user)])
    if fitted is not None:
        fitted = Expertise.from_model(_renamed(fitted.model, user))
    return replace(erase_questions(made, asked, handle), fitted=fitted)


def erase_questions(advisor: Advisor, places: Int64Array, handle: str = "") -> Advisor:
    """Return an advisor without title, words and vectors of some questions (their positions).

    With a handle, also without ``@handle`` in the titles of others.
    """
    records = advisor.history.records.settled()
    titles, meaning = list(records.texts.titles), records.meaning
    if handle:
        named = mention(handle)
        titles = [named.sub(GONE, title) if "@" in title else title for title in titles]
    for place in places.tolist():
        titles[place] = ""
    if meaning is not None and len(places):  # as if these questions had no text
        vectors = meaning.vectors.copy()
        vectors[places] = 0
        meaning = replace(meaning, vectors=vectors, recent=Memo())
    corpus = _without_words(records.corpus, places, words(handle, "", ()))
    texts = TextTable(titles, [""] * len(titles))
    records = replace(records, texts=texts, corpus=corpus, meaning=meaning)
    history = History(records, advisor.history.now)
    return replace(advisor, history=history)


def _without_words(corpus: Corpus, places: Int64Array, names: Sequence[str]) -> Corpus:
    """Return a corpus in which some questions have no words; words that only they had are gone.

    So are `names` that few questions have: what many use is a word, and tells of nobody.
    """
    counts = corpus.counts.tocsc()
    keep = ~np.isin(counts.indices, places)
    column = np.repeat(np.arange(counts.shape[1]), np.diff(counts.indptr))
    uses = np.bincount(column[keep], minlength=counts.shape[1])
    rare = [code for code in map(corpus.vocabulary.get, names) if code is not None]
    rare = [code for code in rare if code < len(uses) and uses[code] <= _FEW]
    keep &= ~np.isin(column, rare)
    uses[rare] = 0
    cleaned = counts.copy()
    cleaned.data = np.where(keep, counts.data, 0.0)
    cleaned.eliminate_zeros()
    left = np.flatnonzero(uses > 0)
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
    labels = model.graph_.labels.copy()
    labels[labels == f"user:{user}"] = f"user:{2**61 + secrets.randbelow(2**60)}"
    made = copy.copy(model)
    made.graph_ = replace(model.graph_, labels=labels)
    return made
