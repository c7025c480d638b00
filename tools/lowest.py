"""Print the oldest versions of dependencies that both pyproject.toml files allow.

    python tools/lowest.py [EXTRA ...]

Every ``name>=version`` becomes ``name==version``; constraints name no extras. tools/pins.py adds
the indirect dependencies, and ``make test-min`` runs the tests on the result.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?>=([0-9][0-9a-z.]*)")


def lowest(project: dict, extras: list[str]) -> list[str]:
    """Return constraints for the dependencies of one project and of some of its extras.

    Examples
    --------
    >>> project = {"dependencies": ["numpy>=1.26"], "optional-dependencies": {"a": ["rich>=13.5"]}}
    >>> lowest(project, ["a"])
    ['numpy==1.26', 'rich==13.5']
    """
    optional = project["optional-dependencies"]
    asked = [item for name in extras for item in optional.get(name, ())]
    wanted = [item for item in [*project["dependencies"], *asked] if "==" not in item]
    lines = []
    for item in dict.fromkeys(wanted):
        match = _LOWER_BOUND.fullmatch(item)
        if match is None:
            raise SystemExit(f"{item!r} has no lower bound of the form name>=version")
        lines.append(f"{match[1]}=={match[2]}")
    return lines


def read_bounds(extras: list[str]) -> list[str]:
    """Return constraints for both projects."""
    root = Path(__file__).resolve().parent.parent
    files = (root / "pyproject.toml", root / "qa" / "pyproject.toml")
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    known = [name for project in projects for name in project["optional-dependencies"]]
    unknown = [name for name in extras if name not in known]
    if unknown:
        raise SystemExit(f"no extra {unknown[0]!r}; there are {', '.join(known)}")
    return list(dict.fromkeys(line for project in projects for line in lowest(project, extras)))


if __name__ == "__main__":
    print("\n".join(read_bounds(sys.argv[1:])))
