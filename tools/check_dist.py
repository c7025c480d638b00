"""Look into the built wheels and sdists: what must be there, and what must not.

python tools/check_dist.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
META = {"README.md", "LICENSE", "pyproject.toml"}


def check(folder: Path) -> list[str]:
    """Return what is wrong with the files of both distributions, as sentences."""
    tests = files_below(ROOT, "tests") | files_below(ROOT, "qa")
    repository = META | tests | {"CHANGELOG.md", "Makefile", "conftest.py"}
    return [
        *check_one(folder, "atpgraph", ROOT, repository),
        *check_one(folder, "atpgraph_qa", ROOT / "qa", META),
    ]


def check_one(folder: Path, package: str, project: Path, needed: set[str]) -> list[str]:
    """Return what is wrong with the wheel and the sdist of one distribution."""
    (wheel,), (sdist,) = folder.glob(f"{package}-*.whl"), folder.glob(f"{package}-*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    sources = files_below(project / "src", ".")
    wrong = [f"{wheel.name} lacks {name}" for name in sorted(sources - in_wheel)]
    extra = {name for name in in_wheel - sources if ".dist-info/" not in name}
    wrong += [f"{wheel.name} has {name}, which is not in src/" for name in sorted(extra)]
    needed = needed | {f"src/{name}" for name in sources}
    wrong += [f"{sdist.name} lacks {name}" for name in sorted(needed - in_sdist)]
    if f"{package}/py.typed" not in in_wheel:
        wrong.append(f"{wheel.name} lacks the marker py.typed")
    return wrong


def files_below(root: Path, folder: str) -> set[str]:
    """Return the files in a folder, as paths from `root`; caches are left out."""
    return {
        path.relative_to(root).as_posix()
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


if __name__ == "__main__":
    found = check(Path(sys.argv[1]))
    print("\n".join(found) or "wheels and sdists are complete")
    sys.exit(bool(found))
