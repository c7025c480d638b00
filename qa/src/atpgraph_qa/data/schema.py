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

Kind = Literal["id", "int", "time", "text", "tags"]


@dataclass(frozen=True)
class Attribute:
    """An XML attribute that is read.

    Attributes
    ----------
    name : str
        Its name in the dump.
    column : str
        The column of the store that it goes to.
    kind : str
        What it holds.
    required : bool
        Whether a row without it is unreadable.
    """

    name: str
    column: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True)
class Layout:
    """How rows of a dump file become rows of a table.

    Attributes
    ----------
    table : str
        Table of the store that the rows go to.
    attributes : tuple of Attribute
        What is read of a row, in the order of the table's columns; ``Id`` comes first.
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
    without: str = ""
    switch: str = ""


_ID = Attribute("Id", "id", "id", True)
_CREATED = Attribute("CreationDate", "created_ms", "time", True)
_OWNER = Attribute("OwnerUserId", "owner_id", "int")
_SCORE = Attribute("Score", "score", "int")
_BODY = Attribute("Body", "body", "text")
_POST = Attribute("PostId", "post_id", "id", True)

_QUESTIONS = Layout(
    "questions",
    (
        _ID,
        _CREATED,
        _OWNER,
        Attribute("AcceptedAnswerId", "accepted_answer_id", "id"),
        _SCORE,
        Attribute("ViewCount", "views", "int"),
        Attribute("Title", "title", "text"),
        _BODY,
        Attribute("Tags", "tags", "tags"),
    ),
    kind="1",
)
_ANSWERS = Layout(
    "answers",
    (_ID, _CREATED, Attribute("ParentId", "question_id", "id", True), _OWNER, _SCORE, _BODY),
    kind="2",
)
_USERS = Layout(
    "users",
    (Attribute("Id", "id", "int", True), _CREATED, Attribute("Reputation", "reputation", "int")),
)
_VOTES = Layout(
    "votes",
    (
        _ID,
        _POST,
        Attribute("VoteTypeId", "type", "int", True),
        _CREATED,
        Attribute("BountyAmount", "amount", "int"),
        Attribute("UserId", "user_id", "int"),
    ),
)
_TAGS = Layout(
    "tags",
    (_ID, Attribute("TagName", "name", "text", True), Attribute("Count", "count", "int")),
)
_LINKS = Layout(
    "links",
    (
        _ID,
        _CREATED,
        _POST,
        Attribute("RelatedPostId", "related_id", "id", True),
        Attribute("LinkTypeId", "type", "int"),
    ),
)

FILES: dict[str, DumpFile] = {
    file.name: file
    for file in (
        DumpFile("Posts.xml", "posts", (_QUESTIONS, _ANSWERS), switch="PostTypeId"),
        DumpFile(
            "Users.xml", "users", (_USERS,), "no reputation and no registration dates of users"
        ),
        DumpFile(
            "Votes.xml",
            "votes",
            (_VOTES,),
            "no bounties, so question difficulty cannot be evaluated",
        ),
        DumpFile(
            "Tags.xml",
            "tags",
            (_TAGS,),
            "no list of the site's tags; those on the questions still count",
        ),
        DumpFile("PostLinks.xml", "postlinks", (_LINKS,), "no duplicate and related questions"),
    )
}

_TYPES: dict[Kind, str] = {
    "id": "int64",
    "int": "int64",
    "time": "int64",
    "text": "string",
    "tags": "list<string>",
}
TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    layout.table: tuple((each.column, _TYPES[each.kind]) for each in layout.attributes)
    for file in FILES.values()
    for layout in file.layouts
}
"""Name and type of the columns of every table."""
