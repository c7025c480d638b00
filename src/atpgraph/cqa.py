"""Old name of the package ``atpgraph_qa``; it will be removed in the next release."""

from __future__ import annotations

from typing import Any

from atpgraph.util.lazy import moved


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return moved(f"atpgraph.cqa.{name}", "atpgraph_qa", name)
