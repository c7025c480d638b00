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
BOUNTY_START, BOUNTY_CLOSE = 8, 9  # VoteTypeId
COMMUNITY = -1

Kind = Literal["id", "int", "time", "text"]


@dataclass(frozen=True)
class Attribute:
    """One XML attribute that is read: its name, what it holds, and whether a row needs it."""

    name: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True)
class Layout:
    """How rows become rows of a table.

    Attributes
    ----------
    table : str
        Table of the store that the rows go to.
    attributes : tuple of Attribute
        What is read of a row; ``Id`` comes first.
    kind : str
        Value of the file's `switch` that these rows have; empty if it has no switch.
    """

    table: str
    attributes: tuple[Attribute, ...]
    kind: str = ""


@dataclass(frozen=True)
class DumpFile:
    """One XML file of a dump.

    Attributes
    ----------
    name : str
        File name, without folder.
    root : str
        Name of the root element.
    layouts : tuple of Layout
        The kinds of rows that are stored.
    without : str
        What cannot be done when the file is missing; empty for the one that must be there.
    switch : str
        Attribute that tells the kinds apart; empty if there is one kind only.
    """

    name: str
    root: str
    layouts: tuple[Layout, ...]
    without: str
    switch: str = ""


_ID = Attribute("Id", "id", True)
_CREATED = Attribute("CreationDate", "time", True)
_OWNER = Attribute("OwnerUserId", "int")
_SCORE = Attribute("Score", "int")
_BODY = Attribute("Body", "text")

FILES: dict[str, DumpFile] = {
    file.name: file
    for file in (
        DumpFile(
            "Posts.xml",
            "posts",
            (
                Layout(
                    "questions",
                    (
                        _ID,
                        _CREATED,
                        _OWNER,
                        Attribute("AcceptedAnswerId", "id"),
                        _SCORE,
                        Attribute("ViewCount", "int"),
                        Attribute("Title", "text"),
                        _BODY,
                        Attribute("Tags", "text"),
                    ),
                    kind="1",
                ),
                Layout(
                    "answers",
                    (_ID, _CREATED, Attribute("ParentId", "id", True), _OWNER, _SCORE, _BODY),
                    kind="2",
                ),
            ),
            "",
            switch="PostTypeId",
        ),
        DumpFile(
            "Users.xml",
            "users",
            (
                Layout(
                    "users",
                    (Attribute("Id", "int", True), _CREATED, Attribute("Reputation", "int")),
                ),
            ),
            "no reputation and no registration dates of users",
        ),
        DumpFile(
            "Votes.xml",
            "votes",
            (
                Layout(
                    "votes",
                    (
                        _ID,
                        Attribute("PostId", "id", True),
                        Attribute("VoteTypeId", "int", True),
                        _CREATED,
                        Attribute("BountyAmount", "int"),
                        Attribute("UserId", "int"),
                    ),
                ),
            ),
            "no bounties, so question difficulty cannot be evaluated",
        ),
        DumpFile(
            "Tags.xml",
            "tags",
            (Layout("tags", (_ID, Attribute("TagName", "text", True), Attribute("Count", "int"))),),
            "no list of the site's tags; those on the questions still count",
        ),
        DumpFile(
            "PostLinks.xml",
            "postlinks",
            (
                Layout(
                    "links",
                    (
                        _ID,
                        _CREATED,
                        Attribute("PostId", "id", True),
                        Attribute("RelatedPostId", "id", True),
                        Attribute("LinkTypeId", "int"),
                    ),
                ),
            ),
            "no duplicate and related questions",
        ),
    )
}

# The columns of a table stand in the order of the attributes of its layout.
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
