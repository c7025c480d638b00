"""Write a simulated community as a data dump, with the ground truth beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from atpgraph._files import atomic_path
from atpgraph._random import RandomState, generator
from atpgraph.cqa._words import invent_words, write_texts
from atpgraph.cqa.community import Community
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import InputError

TRUTH = "truth.npz"
DESCRIPTION = "truth.json"
_FIRST_USER = 2  # 1 is left to nobody, −1 is Community
_TAGS_PER_TOPIC = 5
_TOPIC_WORDS = 150
_COMMON_WORDS = 300


@dataclass(frozen=True)
class DumpSummary:
    """What was written."""

    users: int
    questions: int
    answers: int
    bounties: int
    topics: int
    files: tuple[str, ...]


def write_dump(
    community: Community, folder: str | os.PathLike[str], *, random_state: RandomState = 0
) -> DumpSummary:
    """Write a community as the XML files of a data dump.

    Beside them go ``truth.npz`` (``user_id, expertise, interest, helpfulness, question_id, topic,
    difficulty``) and ``truth.json`` (the tags of every topic), which an ingest does not read.

    Parameters
    ----------
    community : Community
        What to write.
    folder : path
        Made if needed; must not hold other files than an earlier dump's.
    random_state : int or generator
        For words, and for the few posts whose owner is deleted.
    """
    target = Path(folder)
    known = {"Posts.xml", "Users.xml", "Votes.xml", "Tags.xml", "PostLinks.xml", TRUTH, DESCRIPTION}
    try:
        target.mkdir(exist_ok=True)
        others = {entry.name for entry in target.iterdir()} - known
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror}.") from error
    if others:
        raise InputError(f"{target} holds other files ({min(others)}, …): name another folder.")
    rng = generator(random_state)
    tags, posts, question_id, answer_id = _posts(rng, community)
    files = {
        "Posts.xml": ("posts", posts),
        "Users.xml": ("users", _users(community)),
        "Votes.xml": ("votes", _votes(community, question_id, answer_id)),
        "Tags.xml": ("tags", _tags(community, tags)),
        "PostLinks.xml": ("postlinks", _links(rng, community, question_id)),
    }
    for name, (root, rows) in files.items():
        with (
            atomic_path(target / name) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.write(f'<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n')
            file.writelines(rows)
            file.write(f"</{root}>\n")
    with atomic_path(target / TRUTH) as temporary:
        np.savez(
            temporary,
            user_id=np.arange(community.n_users) + _FIRST_USER,
            expertise=community.expertise,
            interest=community.interest,
            helpfulness=community.helpfulness,
            question_id=question_id,
            topic=community.topic,
            difficulty=community.difficulty,
        )
    with atomic_path(target / DESCRIPTION) as temporary:
        described = {"topics": [{"name": names[0], "tags": names} for names in tags]}
        temporary.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    return DumpSummary(
        community.n_users,
        community.n_questions,
        len(community.answerer),
        int(np.count_nonzero(community.bounty)),
        community.n_topics,
        (*files, TRUTH, DESCRIPTION),
    )


def _row(attributes: Iterable[tuple[str, Any]]) -> str:
    cells = " ".join(
        f"{name}={quoteattr(value) if isinstance(value, str) else chr(34) + str(value) + chr(34)}"
        for name, value in attributes
        if value is not None
    )
    return f"  <row {cells} />\n"


def _dates(moments: Any) -> list[str]:
    return [str(text) for text in np.datetime_as_string(moments.astype("datetime64[ms]"))]


def _posts(
    rng: np.random.Generator, community: Community
) -> tuple[list[list[str]], list[str], Any, Any]:
    """Names of the tags, rows of Posts.xml, and the ids of questions and answers."""
    n, m = community.n_questions, len(community.answerer)
    words = invent_words(rng, community.n_topics * _TOPIC_WORDS + _COMMON_WORDS)
    vocabularies = [
        words[topic * _TOPIC_WORDS : (topic + 1) * _TOPIC_WORDS]
        for topic in range(community.n_topics)
    ]
    common = words[community.n_topics * _TOPIC_WORDS :]
    tags = [vocabulary[:_TAGS_PER_TOPIC] for vocabulary in vocabularies]
    moments = np.concatenate([community.asked_ms, community.answered_ms])
    order = np.argsort(moments, kind="stable")
    ids = np.empty(n + m, dtype=np.int64)
    ids[order] = np.arange(1, n + m + 1)
    question_id, answer_id = ids[:n], ids[n:]

    topics = np.concatenate([community.topic, community.topic[community.answer_question]])
    lengths = np.concatenate([rng.integers(25, 70, n), rng.integers(15, 60, m)])
    bodies = write_texts(rng, topics, lengths, vocabularies, common)
    titles = write_texts(
        rng, community.topic, rng.integers(5, 11, n), vocabularies, common, own_share=0.6
    )
    more_tags = rng.random((n, _TAGS_PER_TOPIC)) < 0.3
    more_tags[:, 0] = True  # every question has the main tag of its topic
    dates = _dates(moments)
    deleted = rng.random(n + m) < 0.01
    views = rng.poisson(np.exp(rng.normal(4.0, 1.0, n)))
    score = rng.poisson(2.0, n) - rng.poisson(0.3, n)
    answers = np.bincount(community.answer_question, minlength=n)

    rows = []
    for place in order.tolist():
        common_part = (
            ("CreationDate", dates[place]),
            ("Body", f"<p>{bodies[place].capitalize()}.</p>\n"),
        )
        if place < n:
            owner = None if deleted[place] else int(community.asker[place]) + _FIRST_USER
            accepted = int(community.accepted[place])
            names = tags[community.topic[place]]
            chosen = [name for name, use in zip(names, more_tags[place], strict=True) if use]
            rows.append(
                _row(
                    (
                        ("Id", int(ids[place])),
                        ("PostTypeId", 1),
                        ("AcceptedAnswerId", int(answer_id[accepted]) if accepted >= 0 else None),
                        *common_part,
                        ("Score", int(score[place])),
                        ("ViewCount", int(views[place])),
                        ("OwnerUserId", owner),
                        ("Title", titles[place].capitalize() + "?"),
                        ("Tags", "|" + "|".join(chosen) + "|"),
                        ("AnswerCount", int(answers[place])),
                    )
                )
            )
        else:
            answer = place - n
            owner = None if deleted[place] else int(community.answerer[answer]) + _FIRST_USER
            rows.append(
                _row(
                    (
                        ("Id", int(ids[place])),
                        ("PostTypeId", 2),
                        ("ParentId", int(question_id[community.answer_question[answer]])),
                        *common_part,
                        ("Score", int(community.answer_score[answer])),
                        ("OwnerUserId", owner),
                    )
                )
            )
    return tags, rows, question_id, answer_id


def _users(community: Community) -> Iterable[str]:
    dates = _dates(community.registered_ms)
    reputation = 1 + 10 * np.bincount(
        community.answerer, np.maximum(community.answer_score, 0), community.n_users
    ).astype(np.int64)
    yield _row((("Id", -1), ("Reputation", 1), ("CreationDate", dates[0]), ("DisplayName", "C")))
    for user, date in enumerate(dates):
        number = user + _FIRST_USER
        yield _row(
            (
                ("Id", number),
                ("Reputation", int(reputation[user])),
                ("CreationDate", date),
                ("DisplayName", f"user{number}"),
            )
        )


def _votes(community: Community, question_id: Any, answer_id: Any) -> Iterable[str]:
    """Up and down votes of answers, acceptances, and bounties from offer to award."""
    answers = np.arange(len(community.answerer))
    score = community.answer_score
    day = DAY_MS
    taken = np.flatnonzero(community.accepted >= 0)
    offered = np.flatnonzero(community.bounty)
    awarded = offered[community.accepted[offered] >= 0]
    best, won = community.accepted[taken], community.accepted[awarded]
    kinds = [
        (2, answer_id[np.repeat(answers, np.maximum(score, 0))], None, None),
        (3, answer_id[np.repeat(answers, np.maximum(-score, 0))], None, None),
        (1, answer_id[best], None, None),
        (8, question_id[offered], community.bounty[offered], community.asker[offered]),
        (9, answer_id[won], community.bounty[awarded], None),
    ]
    moments = [
        np.repeat(community.answered_ms, np.maximum(score, 0)) + 2 * day,
        np.repeat(community.answered_ms, np.maximum(-score, 0)) + 2 * day,
        community.answered_ms[best] + day,
        community.bounty_ms[offered],
        np.maximum(community.bounty_ms[awarded], community.answered_ms[won]) + 7 * day,
    ]
    number = 0
    for (kind, posts, amounts, users), moment in zip(kinds, moments, strict=True):
        # The dates of votes have no time of day, as in real dumps.
        for place, (post, date) in enumerate(
            zip(posts.tolist(), _dates(moment // day * day), strict=True)
        ):
            number += 1
            yield _row(
                (
                    ("Id", number),
                    ("PostId", post),
                    ("VoteTypeId", kind),
                    ("UserId", None if users is None else int(users[place]) + _FIRST_USER),
                    ("CreationDate", date),
                    ("BountyAmount", None if amounts is None else int(amounts[place])),
                )
            )


def _tags(community: Community, tags: list[list[str]]) -> Iterable[str]:
    counts = np.bincount(community.topic, minlength=community.n_topics)
    names = [(name, topic) for topic, names in enumerate(tags) for name in names]
    for number, (name, topic) in enumerate(names, start=1):
        yield _row((("Id", number), ("TagName", name), ("Count", int(counts[topic]))))


def _links(rng: np.random.Generator, community: Community, question_id: Any) -> Iterable[str]:
    """A few later questions link to an earlier one of the same topic."""
    order = np.argsort(community.topic, kind="stable")
    same = np.flatnonzero(community.topic[order][1:] == community.topic[order][:-1])
    chosen = same[rng.random(len(same)) < 0.03]
    dates = _dates(community.asked_ms[order[chosen + 1]] + DAY_MS)
    for number, (place, date) in enumerate(zip(chosen.tolist(), dates, strict=True), start=1):
        yield _row(
            (
                ("Id", number),
                ("CreationDate", date),
                ("PostId", int(question_id[order[place + 1]])),
                ("RelatedPostId", int(question_id[order[place]])),
                ("LinkTypeId", 1),
            )
        )
