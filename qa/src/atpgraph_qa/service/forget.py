"""Forget a person or a deleted question, in every table and in the advisor."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, Text, case, func, or_, select, type_coerce, update

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service import tables as db
from atpgraph_qa.service.database import serialize
from atpgraph_qa.service.events import ForgottenPeople
from atpgraph_qa.timeline.corpus import Corpus, words
from atpgraph_qa.timeline.events import Forgotten
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Memo

GONE = "@removed"
_AT_ONCE = 500  # values in one query
_FEW = 20  # questions
_RANKINGS = ("ranking", "decisions", "baseline")  # of a suggestion


def forget_rows(
    connection: Connection, forgotten: ForgottenPeople, user: int, handle: str,
    asked: Collection[int], now_ms: int,
) -> dict[str, int]:  # fmt: skip
    """Remove a person from every table; return how many rows of each were removed or changed.

    Their answers stay without an owner. Their questions lose title and text but keep the tags,
    which show the topics of others' answers. `asked` are the ids of their questions in the model.
    """
    serialize(connection)  # with who appends events or changes the person
    mine = db.events.c.person == user
    theirs = select(db.events.c.question).where(mine, db.events.c.kind == "asked")
    titles = set(asked) | set(connection.execute(theirs).scalars())
    rows = db.find(connection, select(db.events).where(mine))
    for row in rows:
        row["payload"] |= {"asker" if row["kind"] == "asked" else "user": NOBODY}
    db.change_each(connection, db.events, rows, "payload")
    report = {"events": len(rows), **erase_texts(connection, titles, user)}
    report["settings"] = db.remove(connection, db.people, user)
    report["asks"] = db.remove(connection, db.asks, db.asks.c.person == user)
    db.change(connection, db.feedback, db.feedback.c.person == user, note="")
    for column in _columns(db.WHO):
        changed = db.change(connection, column.table, column == user, **{column.name: None})
        report.setdefault(column.table.name, changed)
    waiting = db.find(connection, select(db.topic_parts))
    gone = [row["topic"] for row in waiting if row["payload"].get("asker") == user]
    db.remove(connection, db.topic_parts, db.topic_parts.c.topic.in_(gone))
    report["mentions"] = _mentions(connection, handle) if handle else 0
    forgotten.add(connection, user, now_ms)
    return report


def erase_texts(
    connection: Connection, asked: Collection[int], user: int = NOBODY
) -> dict[str, int]:
    """Remove texts of questions, and texts that quote them or name a user; return the counts."""
    about, quoted = set[int](), set(asked)
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
        rows = db.find(connection, select(db.events).where(texts))
        for row in rows:
            row |= {"payload": {**row["payload"], "title": "", "body": ""}, "origin": {}}
        db.change_each(connection, db.events, rows, "payload", "origin")
    return {
        "messages": _empty_messages(connection, user, about),
        "suggestions": _erase_lists(connection, user, quoted, about),
    }


def _empty_messages(connection: Connection, user: int, about: set[int]) -> int:
    """Empty and cancel the messages that name a user, or belong to suggestions; return how many."""
    t, text = db.outbox.c, type_coerce(db.outbox.c.payload, Text)
    empty = {"payload": {}, "state": case((t.state == "waiting", "cancelled"), else_=t.state)}
    changed = db.change(connection, db.outbox, text.contains(f'"user": {user},'), **empty)
    for part in _chunks(about):
        theirs = t.suggestion.in_(part) & (text != "{}")
        changed += db.change(connection, db.outbox, theirs, **empty)
    return changed


def _erase_lists(connection: Connection, user: int, quoted: set[int], about: set[int]) -> int:
    """Remove a user, and reasons that quote some questions, from suggestions; return how many.

    Rankings keep their places, with NOBODY in the user's. Thousands of suggestions may rank a user,
    so the database replaces the id in the text of the JSON. That is safe because the JSON is always
    formatted alike, and quotes within strings are escaped.
    """
    t = db.suggestions.c
    text = {name: type_coerce(t[name], Text) for name in ("people", "notes", *_RANKINGS)}
    new: dict[str, Any] = {name: text[name] for name in _RANKINGS}
    for name, before, after in (
        ("ranking", '"person": ', ","), ("decisions", '"person": ', ","),
        *(("baseline", before, after) for before in "[ " for after in ",]"),
    ):  # fmt: skip
        gone = f"{before}{NOBODY}{after}"
        new[name] = func.replace(new[name], f"{before}{user}{after}", gone)
    ranked = update(db.suggestions).where(or_(*(text[name] != new[name] for name in _RANKINGS)))
    changed = set(connection.execute(ranked.values(new).returning(t.id)).scalars())
    mine, noted = f'{{"user": {user},', f"User {user} "
    named = text["people"].contains(mine) | text["notes"].contains(noted)
    wanted = [named, *(t.id.in_(part) for part in _chunks(about))]
    for which in wanted:
        rows = db.find(connection, select(t.id, t.people, t.notes).where(which))
        for row in rows:
            row["people"] = [person for person in row["people"] if person["user"] != user]
            row["notes"] = [note for note in row["notes"] if noted not in note]
            for person in row["people"]:
                kept = [r for r in person["reasons"] if not quoted.intersection(r["questions"])]
                person["reasons"] = kept
        db.change_each(connection, db.suggestions, rows, "people", "notes")
        changed |= {row["id"] for row in rows}
    return len(changed)


def _mentions(connection: Connection, handle: str) -> int:
    """Remove ``@handle`` from texts of others and their quotations; return how many changed."""
    pattern, changed = mention(handle), 0
    prefix = "@" + re.split(r"[^\x20-\x7e]", handle)[0]
    for column in _columns(db.WORDS, db.JSON_WORDS):
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
    """Return a pattern for ``@handle`` in any letter case, in plain text and in JSON."""
    forms = {re.escape(handle), re.escape(json.dumps(handle)[1:-1])}
    return re.compile(f"@(?:{'|'.join(sorted(forms))})(?![\\w-])", re.IGNORECASE)


def _columns(*kinds: Any) -> list[Any]:
    """Return the columns of some types, of all tables."""
    every = (column for table in db.METADATA.sorted_tables for column in table.c)
    return [column for column in every if any(column.type is kind for kind in kinds)]


def _chunks(ids: Iterable[Any]) -> Iterator[list[Any]]:
    wanted = sorted(ids)
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def asked_by(advisor: Advisor, user: int) -> list[int]:
    """Return the ids of the questions that a person asked."""
    records = advisor.history.records
    code = int(records.codes([user])[0])
    found: list[int] = records.questions.id[records.questions.asker == code].tolist()
    return found if code >= 0 else []


def forget_in_history(advisor: Advisor, user: int, handle: str = "") -> Advisor:
    """Return an advisor that does not know a person.

    Their posts stay without an owner, because posts of others refer to them. Titles, words and
    vectors of their questions are deleted, and ``@handle`` in other titles.
    """
    records, none = advisor.history.records, np.zeros(0, np.int64)
    code = int(records.codes([user])[0])
    if code < 0:
        return erase_questions(advisor, none, handle) if handle else advisor
    asked = np.flatnonzero(records.questions.asker == code)
    return erase_questions(advisor.observe([Forgotten(user)]), asked, handle)


def erase_questions(advisor: Advisor, places: Int64Array, handle: str = "") -> Advisor:
    """Return an advisor without the texts of some questions, and without ``@handle`` in titles."""
    records = advisor.history.records.settled()
    titles, meaning = list(records.titles), records.meaning
    if handle:
        named = mention(handle)
        titles = [named.sub(GONE, title) if "@" in title else title for title in titles]
    for place in places.tolist():
        titles[place] = ""
    if meaning is not None and len(places):  # the vector of an empty text
        vectors = meaning.vectors.copy()
        vectors[places] = 0
        meaning = replace(meaning, vectors=vectors, recent=Memo())
    corpus = _without_words(records.corpus, places, words(handle, "", ()))
    records = replace(records, titles=titles, bodies=(), corpus=corpus, meaning=meaning)
    history = History(records, advisor.history.now)
    return replace(advisor, history=history)


def _without_words(corpus: Corpus, places: Int64Array, names: Sequence[str]) -> Corpus:
    """Return a corpus without the words of some questions, and without words that only they had.

    Also remove `names` that occur in few questions; a name that many questions use is an ordinary
    word.
    """
    counts = corpus.counts.tocsc(copy=True)
    column = np.repeat(np.arange(counts.shape[1]), np.diff(counts.indptr))
    gone = np.isin(counts.indices, places)
    uses = np.bincount(column[~gone], minlength=counts.shape[1])
    rare = [code for code in map(corpus.vocabulary.get, names) if code is not None]
    gone |= np.isin(column, [code for code in rare if code < len(uses) and uses[code] <= _FEW])
    counts.data[gone] = 0.0
    counts.eliminate_zeros()
    # Words are numbered by first use, which may have been in these questions.
    left = np.flatnonzero(np.diff(counts.indptr))
    order = left[np.argsort(counts.indices[counts.indptr[left]], kind="stable")]
    number = {code: place for place, code in enumerate(order.tolist())}
    kept = {word: number[code] for word, code in corpus.vocabulary.items() if code in number}
    return Corpus(kept, counts[:, order])
