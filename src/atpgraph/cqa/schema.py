"""What a site's store holds: the tables, their columns, and which dump file each comes from.

Every time is an int64 number of milliseconds since 1970-01-01 UTC. A missing value is NULL. No
name, biography, location, link or other free text *about a user* has a column, so none can be
stored: users are ids, a date and a reputation.

=========== =====================================================================================
table       columns
=========== =====================================================================================
questions   ``id, created_ms, owner_id, accepted_answer_id, score, views, title, body, tags``
answers     ``id, created_ms, question_id, owner_id, score, body``
users       ``id, created_ms, reputation``
votes       ``id, post_id, type, created_ms, amount, user_id``; ``user_id`` only for bounties
            (types 8 and 9), ``amount`` in reputation points
tags        ``id, name, count``
links       ``id, created_ms, post_id, related_id, type``
=========== =====================================================================================

``owner_id`` is NULL for deleted users and for the Community account (−1), which is not a person.
``tags`` of a question is a list of strings, NULL where the dump has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 1

LARGEST_ID = 2**31 - 1  # ids are 32-bit integers on every site
QUESTION, ANSWER = 1, 2  # PostTypeId
ACCEPTED, BOUNTY_START, BOUNTY_CLOSE = 1, 8, 9  # VoteTypeId
COMMUNITY = -1

Kind = Literal["id", "int", "time", "text"]


@dataclass(frozen=True)
class Attribute:
    """One XML attribute that is read: its name, what it holds, and whether a row needs it."""

    name: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True)
class DumpFile:
    """One XML file of a dump.

    Attributes
    ----------
    name : str
        File name, without folder.
    root : str
        Name of the root element.
    attributes : tuple of Attribute
        What is read of a row; ``Id`` comes first.
    tables : tuple of str
        Tables of the store that its rows go to.
    without : str
        What cannot be done when the file is missing; empty for the one that must be there.
    """

    name: str
    root: str
    attributes: tuple[Attribute, ...]
    tables: tuple[str, ...]
    without: str


_ID = Attribute("Id", "id", True)
_CREATED = Attribute("CreationDate", "time", True)

FILES: dict[str, DumpFile] = {
    file.name: file
    for file in (
        DumpFile(
            "Posts.xml",
            "posts",
            (
                _ID,
                _CREATED,
                Attribute("PostTypeId", "int", True),
                Attribute("ParentId", "id"),
                Attribute("AcceptedAnswerId", "id"),
                Attribute("OwnerUserId", "int"),
                Attribute("Score", "int"),
                Attribute("ViewCount", "int"),
                Attribute("Title", "text"),
                Attribute("Body", "text"),
                Attribute("Tags", "text"),
            ),
            ("questions", "answers"),
            "",
        ),
        DumpFile(
            "Users.xml",
            "users",
            (Attribute("Id", "int", True), _CREATED, Attribute("Reputation", "int")),
            ("users",),
            "no reputation and no registration dates of users",
        ),
        DumpFile(
            "Votes.xml",
            "votes",
            (
                _ID,
                Attribute("PostId", "id", True),
                Attribute("VoteTypeId", "int", True),
                _CREATED,
                Attribute("BountyAmount", "int"),
                Attribute("UserId", "int"),
            ),
            ("votes",),
            "no bounties, so question difficulty cannot be evaluated",
        ),
        DumpFile(
            "Tags.xml",
            "tags",
            (_ID, Attribute("TagName", "text", True), Attribute("Count", "int")),
            ("tags",),
            "no list of the site's tags; those on the questions still count",
        ),
        DumpFile(
            "PostLinks.xml",
            "postlinks",
            (
                _ID,
                _CREATED,
                Attribute("PostId", "id", True),
                Attribute("RelatedPostId", "id", True),
                Attribute("LinkTypeId", "int"),
            ),
            ("links",),
            "no duplicate and related questions",
        ),
    )
}

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "questions": (
        ("id", "int64"),
        ("created_ms", "int64"),
        ("owner_id", "int64"),
        ("accepted_answer_id", "int64"),
        ("score", "int64"),
        ("views", "int64"),
        ("title", "string"),
        ("body", "string"),
        ("tags", "list<string>"),
    ),
    "answers": (
        ("id", "int64"),
        ("created_ms", "int64"),
        ("question_id", "int64"),
        ("owner_id", "int64"),
        ("score", "int64"),
        ("body", "string"),
    ),
    "users": (("id", "int64"), ("created_ms", "int64"), ("reputation", "int64")),
    "votes": (
        ("id", "int64"),
        ("post_id", "int64"),
        ("type", "int64"),
        ("created_ms", "int64"),
        ("amount", "int64"),
        ("user_id", "int64"),
    ),
    "tags": (("id", "int64"), ("name", "string"), ("count", "int64")),
    "links": (
        ("id", "int64"),
        ("created_ms", "int64"),
        ("post_id", "int64"),
        ("related_id", "int64"),
        ("type", "int64"),
    ),
}
