"""The table of people: what they set, and their names on the site."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from sqlalchemy import Connection, select

from atpgraph_qa.advisor.people import Directory, Person
from atpgraph_qa.service.store.tables import insert_into, people


def load_people(connection: Connection) -> Directory:
    """Return everybody of the table."""
    return Directory(
        Person(
            id=row.id,
            handle=row.handle or "",
            opted_out=bool(row.opted_out),
            away_until=row.away_until or "",
            hours=row.hours or "",
            time_zone=row.time_zone or "",
            capacity=row.capacity,
            groups=tuple(json.loads(row.member_of)),
            topics=tuple(json.loads(row.topics)),
        )
        for row in connection.execute(select(people))
    )


def save_person(connection: Connection, person: Person, now_ms: int) -> None:
    """Insert or replace the row of a person."""
    values = asdict(person)
    values["member_of"] = json.dumps(values.pop("groups"))
    values |= {"topics": json.dumps(values["topics"]), "updated_ms": now_ms}
    made = insert_into(connection, people).values(**values)
    rest = {name: made.excluded[name] for name in values if name != "id"}
    connection.execute(made.on_conflict_do_update(index_elements=["id"], set_=rest))


def learn_handle(
    connection: Connection, directory: Directory, user: int, handle: str,
    groups: tuple[str, ...] | None, now_ms: int,
) -> Person | None:  # fmt: skip
    """Store a name that came with an event; return the person as changed, None if it was known."""
    old = directory[user]
    new = replace(old, handle=handle, groups=old.groups if groups is None else groups)
    if new == old:
        return None
    save_person(connection, new, now_ms)
    return new
