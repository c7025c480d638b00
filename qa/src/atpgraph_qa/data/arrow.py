"""Apache Arrow, imported where it is used: it takes a tenth of a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from atpgraph_qa.data.schema import TABLES


def load_arrow() -> tuple[Any, Any]:
    """Import `pyarrow` and `pyarrow.compute`."""
    import pyarrow
    import pyarrow.compute

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
