"""Names that the shell completes, kept here so that completion loads no numerics.

The tests hold them to what the library knows.
"""

from __future__ import annotations

from collections.abc import Callable

METHODS = (
    "dfs", "mfas", "eades", "pagerank", "sa-g", "sa-f", "sa-b", "sa-voting", "ts-g", "ts-f", "ts-b",
    "ts-voting", "h-voting", "springs", "bayes", "sift",
    "minimum", "auto",
)  # fmt: skip
KERNELS = ("log", "harmonic", "linear", "constant")
PURPOSES = ("reachability", "links", "paper")
SOLVERS = ("pairs", "nnls", "svd")
CLOSURES = ("auto", "exact", "sketch")
KINDS = ("hierarchy", "map", "levels", "objective")
FORMATS = ("word2vec", "csv", "parquet", "npy")
DIRECTIONS = ("targets", "sources")


def completer(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """What ``autocompletion=`` of an option takes: the names that begin as typed.

    Examples
    --------
    >>> completer(KERNELS)("l")
    ['log', 'linear']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete
