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

_TOP = Path(__file__).resolve().parent.parent
ROOT, QA = "atpgraph", "atpgraph_qa"
SOURCES = {ROOT: _TOP / "src" / ROOT, QA: _TOP / "qa" / "src" / QA}


@dataclass(frozen=True)
class Part:
    """A package (or single module) of a distribution.

    Attributes
    ----------
    name : str
        Below the package of the distribution.
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
    package: str = ROOT

    @property
    def path(self) -> Path:
        """Its folder or file."""
        folder = SOURCES[self.package] / self.name
        return folder if folder.is_dir() else folder.with_suffix(".py")

    @property
    def title(self) -> str:
        """Its name as a path: ``graph/`` or ``hierarchy.py``."""
        return f"{self.name}/" if self.path.is_dir() else self.path.name


# A part imports only parts of earlier rows: never later ones, never a neighbor in its own row.
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
            "(`methods`), `break_cycles` (`breaking`)",
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
            "vectors from panels of sampled paths; for the paper, non-negative least squares",
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
            "`LinkPredictor`, its evidence, protocols that hide test edges, baselines, benchmarks",
        ),
    ),
    (
        Part("report", "HTML pages, charts", "self-contained HTML pages and their charts"),
        Part("plot", "pictures", "pictures by Matplotlib"),
    ),
    (Part("cli", "the command atp", "thin commands; `cli/__init__.py` says how to add one"),),
)

# The same rule in the second distribution, whose parts may import all of the first.
QA_PARTS: tuple[tuple[Part, ...], ...] = tuple(
    tuple(Part(name, "", holds, package=QA) for name, holds in row)
    for row in (
        (("data", "Stack Exchange dumps, read into a store; the site as arrays"),),
        (
            ("simulation", "a simulated community with known truth, written as a dump"),
            ("competition", "the competition graph: who gave better answers than whom"),
            ("text", "text models: BM25's words, static and sentence vectors"),
        ),
        (("expertise", "ATP on the competition graph"),),
        (("difficulty", "which of two questions is harder"),),
        (("timeline", "the site at any past moment: prefixes of tables that only grow"),),
        (("ranking", "features of people, the ranker and its training"),),
        (("baselines", "other ways of ranking, trivial ones and those of the paper"),),
        (("advisor", "suggestions with reasons, policies, newcomers, model folders"),),
        (("evaluation", "protocols, metrics, the load of a policy"),),
        (
            ("reports", "HTML pages about routing and difficulty"),
            ("service", "the web service: API, events, policies, deliveries, page"),
        ),
        (("cli", "the commands that it adds to `atp`"),),
    )
)


def parts(package: str = ROOT) -> Iterator[Part]:
    """Yield all parts of a distribution, in order."""
    for row in PARTS if package == ROOT else QA_PARTS:
        yield from row


def order(package: str = ROOT) -> tuple[tuple[str, ...], ...]:
    """Return the names of the parts, row by row."""
    rows = PARTS if package == ROOT else QA_PARTS
    return tuple(tuple(part.name for part in row) for row in rows)


def shared() -> list[str]:
    """Return the modules that everybody may import and that import no part."""
    source = SOURCES[ROOT]
    placed = {part.path.stem for part in parts()} | {"__init__", "__main__", "cqa"}  # an old name
    top = [path.stem for path in sorted(source.glob("*.py")) if path.stem not in placed]
    inside = [f"util.{path.stem}" for path in sorted((source / "util").glob("*.py"))]
    return [*top, "util", *(name for name in inside if not name.endswith("__init__"))]


def table(package: str = ROOT) -> str:
    """Return the parts of a distribution as a Markdown table."""
    lines = [f"| in `{SOURCES[package].relative_to(_TOP)}` | content |", "|---|---|"]
    lines += [f"| `{part.title}` | {part.holds} |" for part in parts(package)]
    if package == ROOT:
        lines.append(
            "| `errors.py`, `util/` | helpers that everybody may import; they import no package |"
        )
    return "\n".join(lines)


def modules() -> dict[str, Path]:
    """Return every module of both distributions by its dotted name."""
    found = {}
    for package, source in SOURCES.items():
        for path in sorted(source.rglob("*.py")):
            names = [package, *path.relative_to(source).with_suffix("").parts]
            if names[-1] == "__init__":
                names.pop()
            found[".".join(names)] = path
    return found


def imports() -> dict[str, set[str]]:
    """Return the modules of both distributions that each module imports.

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
    print(table(), table(QA), sep="\n\n")
