"""The order of the packages, and the import graph that has to keep to it.

One list for everybody: tests/test_architecture.py holds the code to it, CONTRIBUTING.md shows it
as a table and docs/figures/pipeline.py as a picture.

    python tools/architecture.py       # prints the table
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "atpgraph"
ROOT = "atpgraph"


@dataclass(frozen=True)
class Part:
    """A package (or single module) of atpgraph.

    Attributes
    ----------
    name : str
        Below ``atpgraph``.
    does : str
        What it is for, in the few words that fit the picture.
    holds : str
        What is in it, for the table.
    gives : str
        The type a stage of the pipeline hands on; empty for the users of the pipeline.
    """

    name: str
    does: str
    holds: str
    gives: str = ""

    @property
    def path(self) -> Path:
        """Its folder or file."""
        folder = SOURCE.joinpath(*self.name.split("."))
        return folder if folder.is_dir() else folder.with_suffix(".py")

    @property
    def title(self) -> str:
        """Its name as a path: ``graph/`` or ``hierarchy.py``."""
        return f"{self.name}/" if self.path.is_dir() else self.path.name


# A part imports only parts of earlier rows: never later ones, never a neighbour in its own row.
PARTS: tuple[tuple[Part, ...], ...] = (
    (
        Part(
            "graph",
            "read and hold graphs",
            "the graph type, edge lists, conversion, generators, traversal, strongly connected "
            "components",
            "DiGraph",
        ),
    ),
    (
        Part(
            "cycles",
            "break cycles",
            "node scores (`agony`, `trueskill`, `pagerank`), `offline_scc`, the methods "
            "(`methods`), the front door (`breaking`)",
            "CycleBreak",
        ),
        Part("datasets", "public graphs", "public graphs by name"),
    ),
    (Part("hierarchy", "levels of the DAG", "levels of a DAG", "levels"),),
    (
        Part(
            "closure",
            "who reaches whom",
            "the closure forest: all reachable pairs, stored by what is new at each node",
            "ClosureForest",
        ),
    ),
    (
        Part(
            "networkx_backend",
            "NetworkX functions",
            "NetworkX functions on our arrays (entry point `networkx.backends`)",
        ),
        Part(
            "factorization",
            "M ≈ S·Tᵀ, S, T ≥ 0",
            "non-negative least squares on the closure forest",
            "Factorization",
        ),
    ),
    (
        Part(
            "embedding",
            "the estimator ATP",
            "the estimator `ATP`, its threshold, model files, exports, fold-in",
            "ATP",
        ),
    ),
    (
        Part(
            "evaluation",
            "metrics, intervals",
            "metrics, intervals and paired comparison, shared by every task",
        ),
    ),
    (
        Part(
            "linkpred",
            "predict links",
            "`LinkPredictor`, its evidence, protocols a method cannot cheat, baselines, benchmarks",
        ),
        Part(
            "cqa",
            "communities",
            "Stack Exchange: data, competition graph, difficulty, expertise, routing",
        ),
    ),
    (
        Part("report", "HTML pages, charts", "self-contained HTML pages and their charts"),
        Part("plot", "pictures", "pictures by Matplotlib"),
    ),
    (
        Part(
            "serve",
            "the service",
            "the service: API, events, policies, deliveries, page (extra `serve`)",
        ),
    ),
    (Part("cli", "the command atp", "thin commands; `cli/__init__.py` says how to add one"),),
)

# The same rule inside packages that are large enough to need an order of their own.
INSIDE: dict[str, tuple[tuple[str, ...], ...]] = {
    "cqa": (
        ("data",),
        ("simulation", "competition", "text"),
        ("expertise",),
        ("difficulty",),
        ("routing",),
    ),
    "cqa.routing": (
        ("timeline",),
        ("features",),
        ("model",),
        ("baselines",),
        ("evaluation",),
        ("advice",),
    ),
}


def parts() -> Iterator[Part]:
    """All parts, in order."""
    for row in PARTS:
        yield from row


def order() -> tuple[tuple[str, ...], ...]:
    """Names of the parts, row by row."""
    return tuple(tuple(part.name for part in row) for row in PARTS)


def shared() -> list[str]:
    """Modules that everybody may import and that import no part."""
    placed = {part.path.stem for part in parts()} | {"__init__", "__main__"}
    top = [path.stem for path in sorted(SOURCE.glob("*.py")) if path.stem not in placed]
    inside = [f"util.{path.stem}" for path in sorted((SOURCE / "util").glob("*.py"))]
    return [*top, "util", *(name for name in inside if not name.endswith("__init__"))]


def table() -> str:
    """The parts as a Markdown table."""
    rows = [f"| `{part.title}` | {part.holds} |" for part in parts()]
    return "\n".join(
        [
            "| in `src/atpgraph` | what |",
            "|---|---|",
            *rows,
            "| `errors.py`, `util/` | helpers that everybody may import; they import no package |",
        ]
    )


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        names = [ROOT, *path.relative_to(SOURCE).with_suffix("").parts]
        if names[-1] == "__init__":
            names.pop()
        found[".".join(names)] = path
    return found


def imports() -> dict[str, set[str]]:
    """The modules of the package that each module imports.

    Imports inside functions and under ``TYPE_CHECKING`` count. Importing a name from a package
    is an edge to the package's ``__init__``, which imports what it offers.
    """
    known = modules()
    return {name: set(_imported(name, path, known)) for name, path in known.items()}


def private_names() -> Iterator[tuple[str, str]]:
    """Imports of a name with a leading underscore, defined in another module."""
    known = modules()
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOT):
                for alias in node.names:
                    target = f"{node.module}.{alias.name}"
                    dunder = alias.name.startswith("__")
                    if alias.name.startswith("_") and not dunder and target not in known:
                        yield name, target


def ring(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, the first repeated at the end; or nothing."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{name} has a relative import; write it in full")
            module = node.module or ""
            if module in known:
                for alias in node.names:
                    inner = f"{module}.{alias.name}"
                    yield inner if inner in known else module


if __name__ == "__main__":
    print(table())
