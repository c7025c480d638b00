"""Pin what the Makefile installs: one constraints file for each Python version, and the oldest.

    python tools/pins.py REQUIREMENT ...

Resolves the requirements (as in a requirements file, one argument per line) with uv, which needs
no other Python for that, and writes ``requirements/py311.txt`` and so on with the newest versions
that work together. ``requirements/min.txt`` gets the lower bounds of both pyproject.toml files,
with versions of indirect dependencies that go with them, for ``make test-min``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from lowest import read_bounds

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
OLD = ("click<8.3",)  # newer ones deprecate what the oldest typer imports
HEADER = "# What `{command}` installs on Python {python}. Written by `make pins`; do not edit.\n"


def resolve(requirements: Iterable[str], python: str, bounds: Iterable[str] = ()) -> list[str]:
    """Return lines ``name==version`` for everything needed, without our own two packages."""
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    command += ["--python-version", python, "-"]
    text = "\n".join([*requirements, *bounds])
    done = subprocess.run(
        command, cwd=ROOT, input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if "==" in line]


def write(name: str, command: str, python: str, lines: list[str]) -> None:
    """Write a constraints file."""
    content = HEADER.format(command=command, python=python) + "\n".join(lines) + "\n"
    (ROOT / "requirements" / name).write_text(content, encoding="utf-8")
    print(f"{len(lines)} versions in requirements/{name}")


if __name__ == "__main__":
    for version in VERSIONS:
        name = f"py{version.replace('.', '')}.txt"
        write(name, "make", version, resolve(sys.argv[1:], version))
    oldest = resolve(["-e .[test]", "-e ./qa[test]"], "3.11", [*read_bounds(["test"]), *OLD])
    write("min.txt", "make test-min", "3.11", oldest)
