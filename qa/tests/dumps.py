"""Small dumps, written as a site's XML files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOTS = {
    "Posts.xml": "posts",
    "Users.xml": "users",
    "Votes.xml": "votes",
    "Tags.xml": "tags",
    "PostLinks.xml": "postlinks",
}
DATE = "2020-01-{:02d}T00:00:00.000"


def xml(root: str, rows: Iterable[Mapping[str, object]]) -> str:
    """The text of one file."""
    lines = [
        "  <row " + " ".join(f"{k}={quoteattr(str(v))}" for k, v in row.items()) + " />"
        for row in rows
    ]
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', f"<{root}>", *lines, f"</{root}>"])


def question(number: int, day: int = 1, **more: object) -> dict[str, object]:
    return {"Id": number, "PostTypeId": 1, "CreationDate": DATE.format(day), **more}


def answer(number: int, parent: int, day: int = 2, **more: object) -> dict[str, object]:
    row = {"Id": number, "PostTypeId": 2, "ParentId": parent, "CreationDate": DATE.format(day)}
    return {**row, **more}


def write(folder: Path, **tables: Iterable[Mapping[str, object]]) -> Path:
    """Write tables, named posts, users, votes, tags, postlinks, into a new folder."""
    folder.mkdir()
    for file, root in ROOTS.items():
        if root in tables:
            (folder / file).write_text(xml(root, tables[root]), encoding="utf-8")
    return folder


def small(folder: Path) -> Path:
    """Three questions, three answers, and one of everything else."""
    return write(
        folder,
        posts=[
            answer(5, 1, 3, OwnerUserId=12, Score=2, Body="<p>b</p>"),  # out of order
            question(
                1,
                1,
                OwnerUserId=10,
                AcceptedAnswerId=5,
                Score=3,
                ViewCount=7,
                Title='A "title" & more',
                Body="<p>café</p>\n",
                Tags="<one><two>",
                OwnerDisplayName="Jane Secret",
                LastEditorDisplayName="Joe Hidden",
            ),
            question(2, 4, OwnerUserId=10, Tags="|two|", Title="second"),
            question(3, 9, Tags="", Title="third"),
            answer(4, 1, 2, OwnerUserId=11),
            answer(6, 2, 5, OwnerUserId=-1),
            {"Id": 7, "PostTypeId": 5, "CreationDate": DATE.format(6)},
        ],
        users=[
            {"Id": -1, "CreationDate": DATE.format(1), "DisplayName": "Community"},
            {
                "Id": 12,
                "CreationDate": DATE.format(1),
                "Reputation": 99,
                "DisplayName": "Jane Secret",
                "Location": "Atlantis",
                "AboutMe": "my biography",
                "WebsiteUrl": "http://example.org",
            },
            {"Id": 10, "CreationDate": DATE.format(1), "Reputation": 1},
        ],
        votes=[
            {"Id": 1, "PostId": 1, "VoteTypeId": 8, "CreationDate": DATE.format(3)}
            | {"BountyAmount": 50, "UserId": 10},
            {"Id": 2, "PostId": 5, "VoteTypeId": 9, "CreationDate": DATE.format(9)}
            | {"BountyAmount": 50},
            {"Id": 3, "PostId": 2, "VoteTypeId": 8, "CreationDate": DATE.format(5)}
            | {"BountyAmount": 200, "UserId": 12},
            {"Id": 4, "PostId": 1, "VoteTypeId": 5, "CreationDate": DATE.format(5), "UserId": 12},
        ],
        tags=[{"Id": 1, "TagName": "one", "Count": 1}],
        postlinks=[
            {"Id": 1, "CreationDate": DATE.format(5), "PostId": 2}
            | {"RelatedPostId": 1, "LinkTypeId": 3}
        ],
    )
