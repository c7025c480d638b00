"""Apache Arrow, which comes with the extra ``cqa``: loaded where it is used."""

from __future__ import annotations

from functools import cache
from typing import Any

from atpgraph.cqa.data.schema import TABLES
from atpgraph.errors import MissingDependencyError


def load_arrow() -> tuple[Any, Any]:
    """Import `pyarrow` and `pyarrow.compute`, or raise an error that says how to get them."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "cqa", "A Stack Exchange site") from error
    return pyarrow, pyarrow.compute


@cache
def table_schema(table: str) -> Any:
    """Return the Arrow schema of a table of the store."""
    arrow, _ = load_arrow()
    types = {
        "int64": arrow.int64(),
        "string": arrow.string(),
        "list<string>": arrow.list_(arrow.string()),
    }
    return arrow.schema([(name, types[kind]) for name, kind in TABLES[table]])
