"""Typed columns from the text of attributes; every row that does not fit is accounted for."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atpgraph.util.arrays import BoolArray
from atpgraph_qa.data.arrow import load_arrow, table_schema
from atpgraph_qa.data.schema import (
    BOUNTY_CLOSE,
    BOUNTY_START,
    COMMUNITY,
    LARGEST_ID,
    Attribute,
    DumpFile,
)
from atpgraph_qa.data.xml import parse_block

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
_FABRICATED_FROM = 1_000_000_000  # 2025 dumps hold made-up posts from here on, owned by Community


@dataclass
class Batch:
    """What one block of rows became.

    Attributes
    ----------
    tables : dict
        Arrow record batches, by table of the store.
    read : int
        Rows that were understood, whether or not they go to a table.
    broken : list of str
        One message for every row that was not.
    counts : Counter
        Rows set aside on purpose and values repaired, by what they are.
    """

    tables: dict[str, Any] = field(default_factory=dict)
    read: int = 0
    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def read_block(block: bytes, file: DumpFile) -> Batch:
    """Parse a block of rows of `file` into typed record batches."""
    names = {
        layout.kind: tuple(attribute.name for attribute in layout.attributes)
        for layout in file.layouts
    }
    rows = parse_block(block, names, file.switch)
    batch = Batch(broken=[f"a row is not XML: {why}" for why in rows.broken])
    if rows.cleaned:
        batch.counts["illegal characters removed"] += rows.cleaned
    for kind, count in rows.others.items():
        if kind is None or _integer(kind) is None:
            shown = f"lacks {file.switch}" if kind is None else f"has {file.switch} = {kind[:40]!r}"
            batch.broken += [f"a row {shown}"] * count
        else:
            batch.read += count
            batch.counts[f"{file.root} of other types left out"] += count
    for layout in file.layouts:
        columns = _typed(rows.columns[layout.kind], layout.attributes, batch.broken)
        batch.read += len(columns["Id"])
        if len(columns["Id"]):
            batch.tables[layout.table] = _FINISH[layout.table](columns, batch)
    return batch


Columns = dict[str, Any]  # attribute name -> Arrow array


def _typed(
    texts: list[list[str | None]], attributes: tuple[Attribute, ...], broken: list[str]
) -> Columns:
    """Typed Arrow columns of the sound rows; each other row adds a message to `broken`."""
    arrow, compute = load_arrow()
    columns: Columns = {}
    bad = np.zeros(len(texts[0]), dtype=np.bool_)
    reasons: dict[int, str] = {}
    for attribute, text in zip(attributes, texts, strict=True):
        column = arrow.array(text, arrow.string())
        if attribute.kind not in ("text", "tags"):
            column, wrong = _convert(column, attribute.kind)
            _mark_bad(wrong, bad, reasons, attribute.name, text)
        if attribute.required and column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False) & ~bad
            _mark_bad(missing, bad, reasons, attribute.name, text)
        columns[attribute.name] = column
    if not bad.any():
        return columns
    for row in np.flatnonzero(bad).tolist():
        number = texts[0][row]
        which = f"the row with Id {number[:20]!r}" if number else "a row without Id"
        broken.append(f"{which} {reasons[row]}")
    keep = arrow.array(~bad)
    return {name: compute.filter(column, keep) for name, column in columns.items()}


def _mark_bad(
    wrong: BoolArray,
    bad: BoolArray,
    reasons: dict[int, str],
    name: str,
    text: list[str | None],
) -> None:
    for row in np.flatnonzero(wrong).tolist():
        value = text[row]
        shown = "lacks " + name if value is None else f"has {name} = {value[:40]!r}"
        reasons.setdefault(row, shown)
    bad |= wrong


def _convert(column: Any, kind: str) -> tuple[Any, BoolArray]:
    """Integers of a text column, and which values are not what they should be."""
    arrow, compute = load_arrow()
    wrong = np.zeros(len(column), dtype=np.bool_)
    try:
        if kind == "time":
            values = column.cast(arrow.timestamp("ms")).cast(arrow.int64())
        else:
            values = column.cast(arrow.int64())
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        read = _time if kind == "time" else _integer
        parsed = [None if text is None else read(text) for text in column.to_pylist()]
        values = arrow.array(parsed, arrow.int64())
        wrong = (values.is_null().to_numpy(zero_copy_only=False)) & (
            column.is_valid().to_numpy(zero_copy_only=False)
        )
    if kind != "time":
        # Ids are positive; all numbers fit into 32 bits.
        lowest = 1 if kind == "id" else -LARGEST_ID
        ends = compute.min_max(values)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if least is not None and (least < lowest or most > LARGEST_ID):
            outside = compute.or_(compute.less(values, lowest), compute.greater(values, LARGEST_ID))
            wrong |= compute.fill_null(outside, False).to_numpy(zero_copy_only=False)
    return values, wrong


def _integer(text: str) -> int | None:
    # int() alone would take "1_000", other scripts' digits, and more than 64 bits
    return int(text) if _INTEGER.fullmatch(text) else None


def _time(text: str) -> int | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return None
    return since // datetime.timedelta(milliseconds=1)


def _person(users: Any) -> Any:
    """User ids, with NULL for Community and for anything else that is not a person."""
    _, compute = load_arrow()
    return compute.if_else(compute.greater(users, 0), users, None)


def _posts(columns: Columns, batch: Batch) -> Any:
    """Which rows are real posts; owners that are not people become NULL."""
    _, compute = load_arrow()
    owner = columns["OwnerUserId"]
    community = compute.fill_null(compute.equal(owner, COMMUNITY), False)
    made_up = compute.and_(community, compute.greater_equal(columns["Id"], _FABRICATED_FROM))
    counts = {
        "fabricated posts left out": made_up.true_count,
        "posts without owner": owner.null_count,
        "posts owned by Community": community.true_count - made_up.true_count,
    }
    batch.counts.update({name: count for name, count in counts.items() if count})
    columns["OwnerUserId"] = _person(owner)
    columns["Score"] = compute.fill_null(columns["Score"], 0)
    return compute.invert(made_up) if made_up.true_count else None


def _questions(columns: Columns, batch: Batch) -> Any:
    keep = _posts(columns, batch)
    columns["Tags"] = _tag_lists(columns["Tags"])
    return _table("questions", columns, keep)


def _answers(columns: Columns, batch: Batch) -> Any:
    return _table("answers", columns, _posts(columns, batch))


def _tag_lists(texts: Any) -> Any:
    """Lists of tags from ``<a><b>`` (old dumps) and ``|a|b|`` (new ones)."""
    arrow, compute = load_arrow()
    plain = compute.replace_substring(texts, "><", "|")
    plain = compute.replace_substring_regex(plain, r"^[<|]+|[>|]+$", "")
    lists = compute.split_pattern(plain, "|")
    empty = arrow.scalar([], arrow.list_(arrow.string()))
    return compute.if_else(compute.equal(plain, ""), empty, lists)


def _users(columns: Columns, batch: Batch) -> Any:
    _, compute = load_arrow()
    person = compute.greater(columns["Id"], 0)
    left_out = len(person) - person.true_count
    if left_out:
        batch.counts["accounts that are not people left out"] += left_out
    return _table("users", columns, person if left_out else None)


def _votes(columns: Columns, batch: Batch) -> Any:
    # Who favourited a post is nobody's business; who paid a bounty is part of the bounty.
    _, compute = load_arrow()
    kinds = columns["VoteTypeId"]
    bounty = compute.or_(compute.equal(kinds, BOUNTY_START), compute.equal(kinds, BOUNTY_CLOSE))
    columns["UserId"] = compute.if_else(bounty, _person(columns["UserId"]), None)
    return _table("votes", columns)


def _tags(columns: Columns, batch: Batch) -> Any:
    return _table("tags", columns)


def _links(columns: Columns, batch: Batch) -> Any:
    return _table("links", columns)


def _table(table: str, columns: Columns, keep: Any = None) -> Any:
    arrow, _ = load_arrow()
    rows = arrow.table(list(columns.values()), schema=table_schema(table))
    return rows if keep is None else rows.filter(keep)


_FINISH: dict[str, Callable[[Columns, Batch], Any]] = {
    "questions": _questions,
    "answers": _answers,
    "users": _users,
    "votes": _votes,
    "tags": _tags,
    "links": _links,
}
