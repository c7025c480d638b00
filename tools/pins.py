"""Pin the newest versions that work together, for the Python that runs this.

    python tools/pins.py REQUIREMENT ...

Takes requirements as ``pip install`` does, resolves them together without installing anything, and
writes ``requirements/py312.txt`` (on Python 3.12): a constraints file for pip with every direct and
indirect dependency. ``make pins`` passes everything that the Makefile installs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# What `make` installs on Python {python}. Written by `make pins`; do not edit.\n"


def resolve(requirements: list[str]) -> dict:
    """Return pip's report on what it would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--report", str(report), *requirements]
        subprocess.run(command, cwd=ROOT, check=True)
        return json.loads(report.read_text(encoding="utf-8"))


def pins(report: dict) -> list[str]:
    """Return the sorted lines ``name==version`` of a report, without our own packages (folders).

    Examples
    --------
    >>> rich = {"metadata": {"name": "Rich", "version": "13.5"}, "download_info": {}}
    >>> ours = {"metadata": {"name": "atpgraph"}, "download_info": {"dir_info": {"editable": True}}}
    >>> pins({"install": [rich, ours]})
    ['rich==13.5']
    """
    found = [item for item in report["install"] if "dir_info" not in item["download_info"]]
    named = [(item["metadata"]["name"], item["metadata"]["version"]) for item in found]
    return sorted(f"{name.lower().replace('_', '-')}=={version}" for name, version in named)


if __name__ == "__main__":
    major, minor = sys.version_info[:2]
    lines = pins(resolve(sys.argv[1:]))
    file = ROOT / "requirements" / f"py{major}{minor}.txt"
    file.parent.mkdir(exist_ok=True)
    content = HEADER.format(python=f"{major}.{minor}") + "\n".join(lines) + "\n"
    file.write_text(content, encoding="utf-8")
    print(f"{len(lines)} versions in {file.relative_to(ROOT)}")
