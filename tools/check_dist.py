"""Look into a built wheel and sdist: what must be there, and what must not.

python tools/check_dist.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def check(folder: Path) -> list[str]:
    """What is wrong, as sentences."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    tests = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wrong = [f"{wheel.name} lacks {name}" for name in sorted(sources - in_wheel)]
    extra = {name for name in in_wheel - sources if ".dist-info/" not in name}
    wrong += [f"{wheel.name} has {name}, which is not in src/" for name in sorted(extra)]
    needed = tests | {f"src/{name}" for name in sources}
    needed |= {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml"}
    wrong += [f"{sdist.name} lacks {name}" for name in sorted(needed - in_sdist)]
    if "atpgraph/py.typed" not in in_wheel:
        wrong.append(f"{wheel.name} lacks the marker py.typed")
    return wrong


if __name__ == "__main__":
    found = check(Path(sys.argv[1]))
    print("\n".join(found) or "wheel and sdist are complete")
    sys.exit(bool(found))
