"""Where a command may write: devices, pipes, links, full disks, folders of other people."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import site
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import atpgraph

from .forked import command, forked, run
from .world import WRITERS

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
FILES = sorted(name for name, writer in WRITERS.items() if "." in writer.outputs[0])
SLOW = {"plot", "train", "links"}


@pytest.fixture
def empty(tmp_path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that other users can enter.

    Not below pytest's own: whenever another pytest starts on this machine, it closes
    ``pytest-of-<user>`` to everybody else.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def _node(kind: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        os.mknod(path, kind | 0o666, os.makedev(1, 3))

    return make


PLACES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "link to a device": lambda path: path.symlink_to("/dev/null"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to nowhere": lambda path: path.symlink_to(path.parent / "no" / "where"),
}
if ROOT:
    PLACES["device"] = _node(stat.S_IFCHR)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FILES)
def test_only_files_are_replaced(world, empty, name, place) -> None:
    """A pipe, a device or a link to one is refused and stays what it is."""
    target = empty / WRITERS[name].outputs[0]
    PLACES[place](target)
    before = target.lstat()
    done = run(*WRITERS[name].typed(world, empty))
    assert (done.code, done.complaint()) == (2, ""), done
    assert (target.lstat().st_mode, target.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert sorted(path.name for path in empty.iterdir()) == [target.name]


@pytest.mark.parametrize("name", FILES)
def test_links_are_followed_and_modes_kept(world, empty, tmp_path, name) -> None:
    target, real = empty / WRITERS[name].outputs[0], tmp_path / "real"
    made = run(*WRITERS[name].typed(world, tmp_path))  # the log of `route` has to be a log
    assert made.code == 0, made.stderr
    (tmp_path / target.name).rename(real)
    real.chmod(0o600)
    target.symlink_to(real)
    done = run(*WRITERS[name].typed(world, empty))
    assert (done.code, done.complaint()) == (0, ""), done
    assert target.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize("name", sorted(WRITERS.keys() - SLOW))
def test_a_limit_on_the_size_of_files(world, empty, name, size) -> None:
    """A file that cannot grow: a sentence, and nothing is left, whatever library writes it."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = run(*WRITERS[name].typed(world, empty), setup=limit)
    assert (done.code, done.complaint()) == (2, ""), done
    assert "Cannot write" in done.stderr
    _nothing_of(empty, name)


def _nothing_of(folder: Path, name: str) -> None:
    """Of several outputs a first one that did fit may be there, whole; no other, and no litter."""
    allowed = set(WRITERS[name].outputs[:-1])
    left = {path.name for path in folder.iterdir() if not _bare(path)}
    assert left <= allowed, left


def _bare(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


@pytest.mark.skipif(not ROOT, reason="only root can mount a small disk")
@pytest.mark.parametrize("kilobytes", [4, 8])
@pytest.mark.parametrize("name", sorted(WRITERS.keys() - SLOW))
def test_a_full_disk(world, empty, name, kilobytes) -> None:
    """A disk of one or two pages, in a mount namespace of the child's own."""

    def on_a_small_disk() -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.fsencode(empty)
        private, namespaces = 1 << 18 | 1 << 14, 0x20000  # MS_PRIVATE | MS_REC, CLONE_NEWNS
        if libc.unshare(namespaces) or libc.mount(None, b"/", None, private, None):
            return 77
        if libc.mount(b"none", here, b"tmpfs", 0, f"size={kilobytes}k".encode()):
            return 77
        code = command(WRITERS[name].typed(world, empty))
        left = [path.name for path in empty.iterdir() if not _bare(path)]
        if code == 2 and set(left) - set(WRITERS[name].outputs[:-1]):
            raise RuntimeError(f"left behind: {left}")
        return code

    done = forked(on_a_small_disk)
    if done.code == 77:
        pytest.skip("no mount namespaces here")
    assert done.code in (0, 2), done  # the smallest files fit
    assert done.complaint() == "", done
    if done.code == 2:
        assert "No space left on device" in done.stderr


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
@pytest.mark.parametrize("name", ["embed", "export-npy", "ingest", "route"])
def test_a_folder_of_somebody_else(world, public, name) -> None:
    """Another user without a home: a sentence where nothing may be written, else the result."""
    world = Path(shutil.copytree(world, public / "world"))
    folder = public / "theirs"
    folder.mkdir(mode=0o755)
    for place in (world, *world.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)

    def nobody() -> None:
        os.environ["HOME"] = "/nonexistent"
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    refused = run(*WRITERS[name].typed(world, folder), setup=nobody)
    assert (refused.code, refused.complaint()) == (2, ""), refused
    assert "read-only" in refused.stderr
    assert not list(folder.iterdir())
    os.chown(folder, 65534, 65534)
    done = run(*WRITERS[name].typed(world, folder), setup=nobody)
    assert (done.code, done.complaint()) == (0, ""), done


ALONE = """
from atpgraph import DiGraph, levels
from atpgraph.util.progress import progress_display
with progress_display():
    assert levels(DiGraph.from_codes([0, 1], [1, 2], 3)).tolist() == [1, 2, 3]
"""


def _for_everybody() -> str | None:
    """An interpreter like this one that others may run, if there is one."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        typed = [*SOMEBODY, found, "-c", "import sys; sys.exit(sys.version_info[:2] != %r)"]
        typed[-1] %= (sys.version_info[:2],)
        if subprocess.run(typed, capture_output=True, check=False).returncode == 0:
            return found
    return None


SOMEBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@pytest.mark.skipif(not ROOT or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_a_fresh_start_by_somebody_without_a_home(public) -> None:
    """Not a fork of ours: an interpreter of theirs imports, compiles and keeps the kernels."""
    interpreter = _for_everybody()
    if interpreter is None:
        pytest.skip("no interpreter of this version that others may run")
    places = [str(Path(atpgraph.__file__).parent.parent), *site.getsitepackages()]
    readable = [*SOMEBODY, "test", "-r", places[0], "-a", "-r", places[-1]]
    if subprocess.run(readable, check=False).returncode:
        pytest.skip("others may not read what is installed here")
    os.chown(public, 65534, 65534)
    around = {"HOME": "/nonexistent", "TMPDIR": str(public), "PATH": "/usr/bin:/bin",
              "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    typed = [*SOMEBODY, interpreter, "-c", ALONE]
    done = subprocess.run(typed, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = public / "atpgraph-65534"
    assert f"compiling kernels; kept in {kept}" in done.stderr
    assert kept.stat().st_uid == 65534
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
