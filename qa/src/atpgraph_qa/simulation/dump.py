"""Write a simulated community as a data dump, with the ground truth beside it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, repeat
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from atpgraph.util.archive import Field, read_archive, write_archive
from atpgraph.util.arrays import AnyArray, Int64Array
from atpgraph.util.files import atomic_folder
from atpgraph.util.random import RandomState, generator
from atpgraph_qa.data.schema import FILES
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.simulation.community import Community
from atpgraph_qa.simulation.texts import Texts, Topic, make_topics, write_texts

TRUTH = "truth.npz"
DESCRIPTION = "truth.json"
_FIRST_USER = 2  # 1 is left to nobody, −1 is Community
_DELETED = 0.01  # share of the posts whose owner has left
_LINKED = 0.03  # share of the questions that link to an earlier one
_FORMAT = "atpgraph-truth"
_PLANTED = {  # u users, t topics, q questions
    "user_id": Field("i", ("u",), unique=True, ascending=True),
    "expertise": Field("f", ("u", "t")),
    "interest": Field("f", ("u", "t"), low=0),
    "helpfulness": Field("f", ("u",), low=0),
    "question_id": Field("i", ("q",), unique=True),
    "topic": Field("i", ("q",), low=0, high="t"),
    "difficulty": Field("f", ("q",)),
}


def write_dump(
    community: Community, folder: str | os.PathLike[str], *, random_state: RandomState = 0
) -> dict[str, Any]:
    """Write a community as the XML files of a data dump.

    Beside them go ``truth.npz`` (``user_id, expertise, interest, helpfulness, question_id, topic,
    difficulty``) and ``truth.json`` (the tags of every topic), which an ingest does not read.

    Parameters
    ----------
    community : Community
        What to write.
    folder : path
        Made if needed; must hold no files but those of an earlier dump.
    random_state : int or generator
        Decides texts, votes on questions, links, and the few posts whose owner is deleted.

    Returns
    -------
    dict
        Numbers of ``users``, ``questions``, ``answers``, ``bounties`` and ``topics``, and the names
        of the ``files``.
    """
    rng = generator(random_state)
    topics = make_topics(community.n_topics)
    texts = write_texts(rng, topics, community.topic, community.answer_question)
    question_id, answer_id = _post_ids(community)
    files = {
        "Posts.xml": _posts(rng, community, texts, question_id, answer_id),
        "Users.xml": _users(community),
        "Votes.xml": _votes(community, question_id, answer_id),
        "Tags.xml": _tags(topics, texts),
        "PostLinks.xml": _links(rng, community, question_id),
    }
    with atomic_folder(folder, known={*FILES, TRUTH, DESCRIPTION}) as target:
        for name, rows in files.items():
            root = FILES[name].root
            with (target / name).open("w", encoding="utf-8", newline="\n") as file:
                file.write(f'<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n')
                file.writelines(rows)
                file.write(f"</{root}>\n")
        planted = {
            "user_id": np.arange(community.n_users, dtype=np.int64) + _FIRST_USER,
            "expertise": community.expertise,
            "interest": community.interest,
            "helpfulness": community.helpfulness,
            "question_id": question_id,
            "topic": community.topic,
            "difficulty": community.difficulty,
        }
        write_archive(target / TRUTH, {"format": _FORMAT, "version": 1}, planted)
        described = {"topics": [{"name": topic.tag, "tags": topic.tags} for topic in topics]}
        text = json.dumps(described, indent=2) + "\n"
        (target / DESCRIPTION).write_text(text, encoding="utf-8")
    return {
        "users": community.n_users,
        "questions": community.n_questions,
        "answers": len(community.answerer),
        "bounties": int(np.count_nonzero(community.bounty)),
        "topics": community.n_topics,
        "files": [*files, TRUTH, DESCRIPTION],
    }


def read_truth(path: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Return the checked arrays of a ``truth.npz`` that :func:`write_dump` wrote."""
    hint = f"the {TRUTH} of a simulated community; 'atp data generate community' writes one"
    return read_archive(path, _FORMAT, 1, hint, _PLANTED, lambda _, arrays: arrays)


def _rows(**columns: Iterable[object]) -> Iterator[str]:
    """Yield rows of a dump file from columns by attribute; a value that is None is left out.

    A column may go on forever; the shortest one says how many rows there are.
    """
    for values in zip(*columns.values(), strict=False):
        cells = (
            f"{name}={quoteattr(str(value))}"
            for name, value in zip(columns, values, strict=True)
            if value is not None
        )
        yield f"  <row {' '.join(cells)} />\n"


def _dates(moments: Int64Array) -> list[str]:
    return [str(text) for text in np.datetime_as_string(moments.astype("datetime64[ms]"))]


def _post_ids(community: Community) -> tuple[Int64Array, Int64Array]:
    """Return the ids of questions and answers, which rise with time."""
    moments = np.concatenate([community.asked_ms, community.answered_ms])
    ids = np.empty(len(moments), dtype=np.int64)
    ids[np.argsort(moments, kind="stable")] = np.arange(1, len(moments) + 1)
    return ids[: community.n_questions], ids[community.n_questions :]


def _posts(
    rng: np.random.Generator,
    community: Community,
    texts: Texts,
    question_id: Int64Array,
    answer_id: Int64Array,
) -> list[str]:
    """Return the rows of questions and answers, by id."""
    n = community.n_questions
    asker, answerer = (_owners(rng, users) for users in (community.asker, community.answerer))
    views = rng.poisson(np.exp(rng.normal(4.0, 1.0, n)))
    score = rng.poisson(2.0, n) - rng.poisson(0.3, n)
    accepted = (answer_id[a] if a >= 0 else None for a in community.accepted.tolist())
    questions = _rows(
        Id=question_id,
        PostTypeId=repeat(1),
        AcceptedAnswerId=accepted,
        CreationDate=_dates(community.asked_ms),
        Body=texts.bodies,
        Score=score,
        ViewCount=views,
        OwnerUserId=asker,
        Title=texts.titles,
        Tags=(f"|{'|'.join(tags)}|" for tags in texts.tags),
        AnswerCount=np.bincount(community.answer_question, minlength=n),
    )
    answers = _rows(
        Id=answer_id,
        PostTypeId=repeat(2),
        ParentId=question_id[community.answer_question],
        CreationDate=_dates(community.answered_ms),
        Body=texts.answers,
        Score=community.answer_score,
        OwnerUserId=answerer,
    )
    rows = np.array([*questions, *answers], dtype=object)
    return list(rows[np.argsort(np.concatenate([question_id, answer_id]))])


def _owners(rng: np.random.Generator, users: Int64Array) -> list[int | None]:
    """Return user ids of the owners of posts; None for those who are deleted."""
    deleted = rng.random(len(users)) < _DELETED
    numbers = (users + _FIRST_USER).tolist()
    return [None if gone else user for user, gone in zip(numbers, deleted, strict=True)]


def _users(community: Community) -> Iterator[str]:
    dates, n = _dates(community.registered_ms), community.n_users
    votes = np.maximum(community.answer_score, 0)
    points = np.bincount(community.answerer, votes, n).astype(np.int64)
    ids = [-1, *range(_FIRST_USER, n + _FIRST_USER)]
    return _rows(
        Id=ids,
        Reputation=[1, *(1 + 10 * points)],
        CreationDate=[dates[0], *dates],
        DisplayName=["Community", *(f"user{user}" for user in ids[1:])],
    )


def _votes(community: Community, question_id: Int64Array, answer_id: Int64Array) -> Iterator[str]:
    """Yield up and down votes on answers, acceptances, and bounties from offer to award."""
    score, answered = community.answer_score, community.answered_ms
    up, down = (np.repeat(np.arange(len(score)), np.maximum(s, 0)) for s in (score, -score))
    accepted = community.accepted[community.accepted >= 0]
    offered = np.flatnonzero(community.bounty)
    awarded = offered[community.accepted[offered] >= 0]
    won = community.accepted[awarded]
    award_ms = np.maximum(community.bounty_ms[awarded], answered[won]) + 7 * DAY_MS
    payer = (community.asker[offered] + _FIRST_USER).tolist()
    nothing = repeat(None)
    kinds: tuple[tuple[int, Int64Array, Int64Array, Iterable[object], Iterable[object]], ...] = (
        # type, post, time, points, who
        (2, answer_id[up], answered[up] + 2 * DAY_MS, nothing, nothing),
        (3, answer_id[down], answered[down] + 2 * DAY_MS, nothing, nothing),
        (1, answer_id[accepted], answered[accepted] + DAY_MS, nothing, nothing),
        (8, question_id[offered], community.bounty_ms[offered], community.bounty[offered], payer),
        (9, answer_id[won], award_ms, community.bounty[awarded], nothing),
    )
    first = 1
    for kind, posts, moments, amounts, users in kinds:
        yield from _rows(
            Id=range(first, first + len(posts)),
            PostId=posts,
            VoteTypeId=repeat(kind),
            UserId=users,
            # The dates of votes have no time of day, as in real dumps.
            CreationDate=_dates(moments // DAY_MS * DAY_MS),
            BountyAmount=amounts,
        )
        first += len(posts)


def _tags(topics: Sequence[Topic], texts: Texts) -> Iterator[str]:
    counts = Counter(chain.from_iterable(texts.tags))
    tags = [tag for topic in topics for tag in topic.tags]
    return _rows(Id=count(1), TagName=tags, Count=[counts[tag] for tag in tags])


def _links(
    rng: np.random.Generator, community: Community, question_id: Int64Array
) -> Iterator[str]:
    """Yield links of a few questions to an earlier one of the same topic."""
    order = np.argsort(community.topic, kind="stable")
    same = np.flatnonzero(community.topic[order][1:] == community.topic[order][:-1])
    chosen = same[rng.random(len(same)) < _LINKED]
    later, earlier = order[chosen + 1], order[chosen]
    return _rows(
        Id=count(1),
        CreationDate=_dates(community.asked_ms[later] + DAY_MS),
        PostId=question_id[later],
        RelatedPostId=question_id[earlier],
        LinkTypeId=repeat(1),
    )
