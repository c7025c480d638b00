"""Convert the text of attributes to typed columns, and count the rows that do not fit."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as arrow
from pyarrow import compute

from atpgraph.util.arrays import BoolArray
from atpgraph_qa.data.schema import (
    BOUNTY_CLOSE,
    BOUNTY_START,
    COMMUNITY,
    LARGEST_ID,
    TABLES,
    Column,
    DumpFile,
)
from atpgraph_qa.data.store import table_schema
from atpgraph_qa.data.xml import Rows, integer

_FABRICATED_FROM = 1_000_000_000  # 2025 dumps hold made-up posts from here on, owned by Community
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

Columns = dict[str, Any]  # name in the store -> Arrow array


class Batch:
    """The result of reading one block of rows of a dump file."""

    def __init__(self, block: bytes, file: DumpFile) -> None:
        wanted = {
            kind: tuple(column.attribute for column in TABLES[table])
            for kind, table in file.tables.items()
        }
        rows = Rows(block, wanted, file.switch)
        self.tables: dict[str, Any] = {}  # Arrow tables, by table of the store
        self.read = 0  # rows that were understood, whether or not they go to a table
        # One message for every row that was not, then rows set aside on purpose and repairs.
        self.broken = [f"a row is not XML: {why}" for why in rows.broken]
        self.counts: Counter[str] = Counter()
        self._count("illegal characters removed", rows.cleaned)
        for kind, count in rows.others.items():
            if kind is None or integer(kind) is None:
                self.broken += [f"a row {_shown(file.switch, kind)}"] * count
            else:
                self.read += count
                self._count(f"{file.root} of other types left out", count)
        for number, table in file.tables.items():
            columns = self._typed(rows.columns(number), TABLES[table])
            self.read += len(columns["id"])
            if len(columns["id"]):
                self.tables[table] = self._finished(table, columns)

    def _count(self, what: str, count: int) -> None:
        if count:
            self.counts[what] += count

    def _typed(self, texts: list[list[str | None]], columns: tuple[Column, ...]) -> Columns:
        """Return typed columns of the valid rows; every other row adds a message to `broken`."""
        result: Columns = {}
        reasons: dict[int, str] = {}
        for column, text in zip(columns, texts, strict=True):
            values = arrow.array(text, arrow.string())
            wrong = np.zeros(len(text), dtype=np.bool_)
            if column.kind not in ("text", "tags"):
                values, wrong = _convert(values, column.kind)
            if column.required and values.null_count:
                wrong |= _mask(values.is_null())
            for row in np.flatnonzero(wrong).tolist():
                reasons.setdefault(row, _shown(column.attribute, text[row]))
            result[column.name] = values
        if not reasons:
            return result
        for row in sorted(reasons):
            number = texts[0][row]
            which = f"the row with Id {number[:20]!r}" if number else "a row without Id"
            self.broken.append(f"{which} {reasons[row]}")
        keep = np.ones(len(texts[0]), dtype=np.bool_)
        keep[list(reasons)] = False
        return {name: compute.filter(each, arrow.array(keep)) for name, each in result.items()}

    def _finished(self, table: str, columns: Columns) -> Any:
        """Return the rows that go to a table, without those of fabricated posts and accounts."""
        keep = None
        if table in ("questions", "answers"):
            owner = columns["owner_id"]
            community = compute.fill_null(compute.equal(owner, COMMUNITY), False)
            made_up = compute.and_(
                community, compute.greater_equal(columns["id"], _FABRICATED_FROM)
            )
            self._count("fabricated posts left out", made_up.true_count)
            self._count("posts without owner", owner.null_count)
            self._count("posts owned by Community", community.true_count - made_up.true_count)
            columns["owner_id"] = _person(owner)
            columns["score"] = compute.fill_null(columns["score"], 0)
            keep = compute.invert(made_up)
        if table == "questions":
            columns["tags"] = _tag_lists(columns["tags"])
        elif table == "users":
            keep = compute.greater(columns["id"], 0)
            self._count("accounts that are not people left out", len(keep) - keep.true_count)
        elif table == "votes":
            # Who favorited a post is nobody's business; who paid a bounty is part of the bounty.
            kind = columns["type"]
            bounty = compute.or_(
                compute.equal(kind, BOUNTY_START), compute.equal(kind, BOUNTY_CLOSE)
            )
            columns["user_id"] = compute.if_else(bounty, _person(columns["user_id"]), None)
        rows = arrow.table(list(columns.values()), schema=table_schema(table))
        return rows if keep is None or keep.true_count == len(keep) else rows.filter(keep)


def _shown(attribute: str, value: str | None) -> str:
    return f"lacks {attribute}" if value is None else f"has {attribute} = {value[:40]!r}"


def _mask(column: Any) -> BoolArray:
    result: BoolArray = column.to_numpy(zero_copy_only=False).copy()
    return result


def _convert(column: Any, kind: str) -> tuple[Any, BoolArray]:
    """Return the integers of a text column, and which values are not integers."""
    wrong = np.zeros(len(column), dtype=np.bool_)
    try:
        values = column.cast(arrow.timestamp("ms")) if kind == "time" else column
        values = values.cast(arrow.int64())
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        read = _time if kind == "time" else integer
        parsed = [None if text is None else read(text) for text in column.to_pylist()]
        values = arrow.array(parsed, arrow.int64())
        wrong = _mask(compute.and_(values.is_null(), column.is_valid()))
    if kind != "time":
        # Ids are positive; all numbers fit into 32 bits.
        lowest = 1 if kind == "id" else -LARGEST_ID
        outside = compute.or_(compute.less(values, lowest), compute.greater(values, LARGEST_ID))
        wrong |= _mask(compute.fill_null(outside, False))
    return values, wrong


def _time(text: str) -> int | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return None
    return since // datetime.timedelta(milliseconds=1)


def _person(users: Any) -> Any:
    """Return user ids, with NULL for Community and for anything else that is not a person."""
    return compute.if_else(compute.greater(users, 0), users, None)


def _tag_lists(texts: Any) -> Any:
    """Return lists of tags from ``<a><b>`` (old dumps) and ``|a|b|`` (new ones)."""
    plain = compute.replace_substring(texts, "><", "|")
    plain = compute.replace_substring_regex(plain, r"^[<|]+|[>|]+$", "")
    lists = compute.split_pattern(plain, "|")
    empty = arrow.scalar([], arrow.list_(arrow.string()))
    return compute.if_else(compute.equal(plain, ""), empty, lists)
