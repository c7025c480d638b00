"""The rows made of this package's own parts: register ATP and SVDM variants here.

An entry of :data:`ROWS` is (key, group, function of dimension and seed, whether the dimension
matters). The function returns anything with the interface of
:class:`atpgraph.linkpred.method.Method`; a method with source and target vectors subclasses
:class:`~atpgraph.linkpred.method.EmbeddingMethod` and sets ``source_`` and ``target_`` in ``fit``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from atpgraph.linkpred.method import Method

Entry = tuple[str, Literal["ours", "rival", "trivial"], Callable[[int, int], Method], bool]

ROWS: list[Entry] = []
