"""The imports keep to the order of the packages, the one list in tools/architecture.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tools import architecture
from tools.architecture import QA, ROOT, SOURCES

IMPORTS = architecture.imports()
Rows = tuple[tuple[str, ...], ...]


def against_the_order(prefix: str, rows: Rows) -> list[str]:
    """Imports from a part of `prefix` to one that is not in an earlier row."""
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    wrong = []
    for module, imported in IMPORTS.items():
        here = part_of(module, prefix)
        for other in sorted(imported):
            there = part_of(other, prefix)
            if here not in row_of or there is None or here == there:
                continue
            if there not in row_of and there in (*architecture.shared(), "_version"):
                continue
            if there == "" and here in rows[-1]:  # the last row uses the public names
                continue
            if row_of.get(there, len(rows)) >= row_of[here]:
                wrong.append(f"{module} imports {other}")
    return wrong


def part_of(module: str, prefix: str) -> str | None:
    """The part of `prefix` that a module belongs to; "" for the package itself."""
    if module == prefix:
        return ""
    if not module.startswith(f"{prefix}."):
        return None
    return module.removeprefix(f"{prefix}.").partition(".")[0]


def listed(lines: Iterable[str]) -> str:
    return "\n".join(["", *lines])


@pytest.mark.parametrize("package", [ROOT, QA])
def test_every_package_has_its_place(package: str) -> None:
    placed = {part.name for part in architecture.parts(package)}
    for path in SOURCES[package].iterdir():
        if path.is_dir() and path.name not in {"__pycache__", "util"}:
            assert path.name in placed, f"give {path.name}/ its place in tools/architecture.py"
    for part in architecture.parts(package):
        assert part.path.exists(), part.name


@pytest.mark.parametrize("package", [ROOT, QA])
def test_packages_import_earlier_ones_only(package: str) -> None:
    wrong = against_the_order(package, architecture.order(package))
    assert not wrong, listed(wrong)


def test_the_core_imports_nothing_of_the_second_distribution() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, imported in IMPORTS.items()
        for other in imported
        if part_of(module, ROOT) is not None and part_of(other, QA) is not None
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize(
    ("package", "part"),
    [(package, part.name) for package in (ROOT, QA) for part in architecture.parts(package)],
)
def test_no_modules_import_each_other_in_a_ring(package: str, part: str) -> None:
    # A ring over several packages would break their order; here are those within one.
    inside = {name for name in IMPORTS if part_of(name, package) == part}
    ring = architecture.ring({name: IMPORTS[name] & inside for name in inside})
    assert not ring, " ← ".join(ring)


def test_private_modules_stay_in_their_package() -> None:
    wrong = []
    for module, imported in IMPORTS.items():
        for other in imported:
            names = other.split(".")
            for depth, name in enumerate(names):
                home = ".".join(names[:depth])
                if name.startswith("_") and not (
                    home == ROOT or f"{module}.".startswith(f"{home}.")
                ):
                    wrong.append(f"{module} imports {other}")
    assert not wrong, listed(wrong)


def test_private_names_stay_in_their_module() -> None:
    wrong = [f"{module} imports {name}" for module, name in architecture.private_names()]
    assert not wrong, listed(wrong)


def test_shared_helpers_import_no_package() -> None:
    helpers = {f"{ROOT}.{name}" for name in architecture.shared()}
    wrong = [
        f"{helper} imports {other}"
        for helper in sorted(helpers)
        for other in sorted(IMPORTS[helper] - helpers)
    ]
    assert not wrong, listed(wrong)


def test_contributing_shows_the_list() -> None:
    page = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
    for package in (ROOT, QA):
        table = architecture.table(package)
        assert table in page.read_text("utf-8"), f"paste into CONTRIBUTING.md:\n{table}"


def test_a_ring_is_found() -> None:
    assert architecture.ring({"a": {"b"}, "b": {"c"}, "c": {"b"}}) in (
        ["b", "c", "b"],
        ["c", "b", "c"],
    )
    assert architecture.ring({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
