"""The tables in the store of a site: their columns and the dump file each comes from.

One list drives parsing, validation and storage. Every time is an int64 number of milliseconds since
1970-01-01 UTC. A missing value is NULL. No name, biography, location, link or other free text
*about a user* has a column, so none can be stored: users are ids, a date and a reputation.

``owner_id`` is NULL for deleted users and for the Community account (−1), which is not a person.
``user_id`` of a vote is stored for bounties only (types 8 and 9), ``amount`` is in reputation
points. ``tags`` of a question is a list of strings, NULL if the dump has none.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

SCHEMA_VERSION = 1

LARGEST_ID = 2**31 - 1  # ids are 32-bit integers on every site
BOUNTY_START, BOUNTY_CLOSE = 8, 9  # VoteTypeId
COMMUNITY = -1


class Column(NamedTuple):
    """A column of the store, and the XML attribute that it comes from.

    A row that lacks a required attribute, or has one of the wrong type, counts as unreadable.
    """

    attribute: str
    name: str
    kind: Literal["id", "int", "time", "text", "tags"]
    required: bool = False


class DumpFile(NamedTuple):
    """One XML file of a dump."""

    root: str  # name of the root element
    tables: dict[int, str]  # table of the store by the value of `switch` that its rows have
    without: str = ""  # what cannot be done without it; empty for the one that must be there
    switch: str = ""  # attribute that tells kinds of rows apart; empty if there is one kind, 0


_ID = Column("Id", "id", "id", True)
_CREATED = Column("CreationDate", "created_ms", "time", True)
_OWNER = Column("OwnerUserId", "owner_id", "int")
_SCORE = Column("Score", "score", "int")
_BODY = Column("Body", "body", "text")
_POST = Column("PostId", "post_id", "id", True)

TABLES: dict[str, tuple[Column, ...]] = {
    "questions": (
        _ID, _CREATED, _OWNER, Column("AcceptedAnswerId", "accepted_answer_id", "id"), _SCORE,
        Column("ViewCount", "views", "int"), Column("Title", "title", "text"), _BODY,
        Column("Tags", "tags", "tags"),
    ),
    "answers": (
        _ID, _CREATED, Column("ParentId", "question_id", "id", True), _OWNER, _SCORE, _BODY,
    ),
    "users": (
        Column("Id", "id", "int", True), _CREATED, Column("Reputation", "reputation", "int"),
    ),
    "votes": (
        _ID, _POST, Column("VoteTypeId", "type", "int", True), _CREATED,
        Column("BountyAmount", "amount", "int"), Column("UserId", "user_id", "int"),
    ),
    "tags": (_ID, Column("TagName", "name", "text", True), Column("Count", "count", "int")),
    "links": (
        _ID, _CREATED, _POST, Column("RelatedPostId", "related_id", "id", True),
        Column("LinkTypeId", "type", "int"),
    ),
}  # fmt: skip
"""Columns of every table; the id comes first."""

FILES: dict[str, DumpFile] = {
    "Posts.xml": DumpFile("posts", {1: "questions", 2: "answers"}, switch="PostTypeId"),
    "Users.xml": DumpFile(
        "users", {0: "users"}, "no reputation and no registration dates of users"
    ),
    "Votes.xml": DumpFile(
        "votes", {0: "votes"}, "no bounties, so question difficulty cannot be evaluated"
    ),
    "Tags.xml": DumpFile(
        "tags", {0: "tags"}, "no list of the site's tags; those on the questions still count"
    ),
    "PostLinks.xml": DumpFile("postlinks", {0: "links"}, "no duplicate and related questions"),
}
