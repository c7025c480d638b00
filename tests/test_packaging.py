"""What the package says about itself."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lowest(*extras: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "lowest.py"), *extras]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def test_every_dependency_has_a_lower_bound_that_is_met_here() -> None:
    done = lowest(*PROJECT["optional-dependencies"])
    assert done.returncode == 0, done.stderr
    bounds = dict(line.split("==") for line in done.stdout.splitlines())
    assert {"numpy", "scipy", "numba", "typer", "rich"} <= set(bounds)
    for name, bound in bounds.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        assert numbers(installed) >= numbers(bound), name


def test_one_bound_per_dependency() -> None:
    """Extras that share a library agree on its oldest version."""
    done = lowest(*PROJECT["optional-dependencies"])
    names = [line.split("==")[0] for line in done.stdout.splitlines()]
    assert sorted(names) == sorted(set(names))


def test_unknown_extras_are_refused() -> None:
    assert "no extra 'nothing'" in lowest("nothing").stderr


def test_types_are_published() -> None:
    assert files("atpgraph").joinpath("py.typed").is_file()
