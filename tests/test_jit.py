"""The kernel cache works wherever the package is installed, and trusts nobody else's files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import atpgraph

SCRIPT = """
from atpgraph import DiGraph, levels
from atpgraph.graph import traversal
from atpgraph.util.progress import progress_display
with progress_display():
    assert levels(DiGraph.from_codes([0, 1], [1, 2], 3)).tolist() == [1, 2, 3]
print(traversal._peel._cache.cache_path)
"""
COMPILES = "compiling kernels"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")


class Installation:
    """The package in a folder that cannot be written, and a user without a home."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(mode=0o700)
        self.site = folder / "site"
        ignore = shutil.ignore_patterns("*.nb?")  # the kernels, not the byte code
        shutil.copytree(Path(atpgraph.__file__).parent, self.site / "atpgraph", ignore=ignore)
        for place in self.site.rglob("*"):
            if place.is_dir():
                place.chmod(0o555)

    @property
    def private(self) -> Path:
        return self.temporary / f"atpgraph-{os.geteuid()}"

    def run(self, **environment: str) -> tuple[Path, str]:
        """Where the kernels went, and what was said."""
        command = [sys.executable, "-B", "-c", SCRIPT]
        if os.geteuid() == 0:  # without its capabilities, root is stopped by modes as others are
            if shutil.which("setpriv") is None:
                pytest.skip("root can write everywhere, and there is no setpriv")
            command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
        around = {
            "PYTHONPATH": str(self.site),
            "HOME": str(self.site / "atpgraph" / "nobody"),
            "TMPDIR": str(self.temporary),
        }
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=kept | around | environment
        )
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip()).parent, done.stderr


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path)
    yield made
    for place in made.site.rglob("*"):
        if place.is_dir():
            place.chmod(0o755)


def test_without_a_home_kernels_are_kept_among_the_temporary_files(installation) -> None:
    folder, said = installation.run()
    assert folder == installation.private
    assert folder.stat().st_mode & 0o777 == 0o700
    assert f"{COMPILES}; kept in {folder}" in said
    assert installation.run() == (folder, "")


def test_somebody_elses_folder_is_not_used(installation) -> None:
    installation.private.mkdir()
    installation.private.chmod(0o777)
    folder, said = installation.run()
    assert folder != installation.private
    assert f"{COMPILES}, for this run only" in said
    assert not list(installation.private.iterdir())
    installation.private.rmdir()
    installation.private.symlink_to(installation.temporary)
    assert installation.run()[0] != installation.private


def test_a_home_that_others_can_write_is_not_used(installation, tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    assert installation.run(HOME=str(home))[0] == installation.private
    home.chmod(0o755)
    assert installation.run(HOME=str(home))[0] == home / ".cache" / "numba"


def test_the_chosen_folder_is_used_and_damage_costs_time_only(installation, tmp_path) -> None:
    chosen = str(tmp_path / "chosen")
    folder, said = installation.run(NUMBA_CACHE_DIR=chosen)
    assert str(folder) == chosen
    assert f"{COMPILES}, once per installation" in said
    assert not installation.private.exists()
    for damage in (b"", b"\x80\x05no pickle"):
        for file in folder.rglob("*.nb?"):
            file.write_bytes(damage)
        assert COMPILES in installation.run(NUMBA_CACHE_DIR=chosen)[1]
