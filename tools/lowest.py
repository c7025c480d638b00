"""Print the oldest versions of dependencies that both pyproject.toml files allow, for pip.

    python tools/lowest.py [EXTRA ...] > lowest.txt
    pip install -c lowest.txt 'dist/atpgraph-….whl[EXTRA,…]' 'dist/atpgraph_qa-….whl[EXTRA,…]'

Every ``name>=version`` becomes ``name==version``; constraints name no extras. ``make test-min``
runs the tests on them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?>=([0-9][0-9a-z.]*)")


def lowest(project: dict, extras: list[str]) -> list[str]:
    """Lines for a file of constraints.

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


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    files = (root / "pyproject.toml", root / "qa" / "pyproject.toml")
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    known = [name for project in projects for name in project["optional-dependencies"]]
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        raise SystemExit(f"no extra {unknown[0]!r}; there are {', '.join(known)}")
    found = [line for project in projects for line in lowest(project, sys.argv[1:])]
    print("\n".join(dict.fromkeys(found)))
