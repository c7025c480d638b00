"""Return answers as data frames, and as HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from atpgraph.errors import MissingDependencyError
from atpgraph.util.checks import unknown_name

KINDS = ("pandas", "polars")


def frame(columns: Mapping[str, Any], kind: str = "pandas") -> Any:
    """Return a data frame of pandas or polars.

    Examples
    --------
    >>> frame({"node": ["a", "b"], "score": [0.5, 0.25]}).shape
    (2, 2)
    """
    if kind not in KINDS:
        raise unknown_name("kind of data frame", kind, KINDS)
    try:
        module = import_module(kind)
    except ImportError:
        raise MissingDependencyError(kind, "frames", "A data frame") from None
    return module.DataFrame(dict(columns))


def ranking_frame(asked: Any, labels: list[Any], values: list[Any], names: tuple[str, ...]) -> Any:
    """Return a frame with one row per answer: the node asked about, the answer and its value."""
    counts = [len(each) for each in labels]
    asked = asked.tolist() if isinstance(asked, np.ndarray) else asked
    ask, answer, value = names
    empty: list[Any] = [np.zeros(0, dtype=object)]
    return frame(
        {
            ask: np.repeat(np.fromiter(asked, object, len(counts)), counts),
            answer: np.concatenate([*empty, *labels]),
            value: np.concatenate([np.zeros(0), *values]),
        }
    )


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """Return a small table as HTML, for ``_repr_html_``."""
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<b>{escape(title)}</b><table>{cells}</table>"


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
