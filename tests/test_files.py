"""The writer: whole or not at all, and nothing left behind."""

from __future__ import annotations

import functools
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atpgraph import InputError
from atpgraph.util import files
from atpgraph.util.files import atomic_folder, atomic_path, check_folder, check_writable

POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX file modes, locks and signals")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def stop(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), atomic_path(target) as temporary:
        stop(temporary)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def press_at(moment: int, work: Callable[[], None]) -> tuple[int, bool]:
    """Do `work` with Ctrl-C pressed before one of its lines; lines seen, and whether it stopped.

    Every line of Python counts, those of the standard library included.
    """
    lines, stopped = 0, False

    def trace(_: object, event: str, __: object) -> Callable[..., object]:
        nonlocal lines
        lines += event != "return"
        if lines == moment and event != "return":
            signal.raise_signal(signal.SIGINT)
        return trace

    before, handler = sys.gettrace(), signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        stopped = True
    finally:
        sys.settrace(before)
        signal.signal(signal.SIGINT, handler)
    return lines, stopped


@POSIX
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pathlib's files
@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("old", [False, True], ids=["new", "replaced"])
def test_ctrl_c_before_any_line_leaves_nothing_behind(tmp_path, kind, old) -> None:
    def write(target: Path, text: str) -> None:
        if kind == "file":
            with atomic_path(target) as temporary:
                temporary.write_text(text)
        else:
            with atomic_folder(target, known={"a"}) as temporary:
                (temporary / "a").write_text(text)

    moment, lines, stops, mask = 0, 1, 0, files._umask()
    while moment <= lines:
        folder = tmp_path / str(moment)
        folder.mkdir()
        target = folder / "out"
        if old:
            write(target, "old")
        lines_now, stopped = press_at(moment, functools.partial(write, target, "new"))
        lines = lines if stopped else max(lines, lines_now)
        stops += stopped
        assert names(folder) in ([], ["out"]), moment
        assert files._umask() == mask, moment
        if target.exists():
            text = (target if kind == "file" else target / "a").read_text()
            assert text == "new" or (old and text == "old"), moment
            assert stopped or text == "new"
        else:
            assert stopped, moment
            assert not old, moment
        moment += 1
    assert stops > 100


@POSIX
def test_permissions_of_the_old_file_stay(tmp_path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("secret")
    target.chmod(0o600)
    with atomic_path(target) as temporary:
        temporary.write_text("new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@POSIX
def test_links_are_followed_to_regular_files(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "real" / "file.txt")
    for text in ("made", "replaced"):  # first a link that leads to a new name
        with atomic_path(link) as temporary:
            temporary.write_text(text)
        assert link.is_symlink()
        assert (tmp_path / "real" / "file.txt").read_text() == text
    assert names(tmp_path / "real") == ["file.txt"]


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "directory", "link to a device", "device"])
def test_only_regular_files_are_replaced(tmp_path, kind) -> None:
    target = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "directory":
        target.mkdir()
    elif kind == "device":
        target = Path(os.devnull)
    else:
        target.symlink_to(os.devnull)
    before = target.lstat()
    with pytest.raises(InputError, match="name a file to write"), atomic_path(target):
        raise AssertionError("the block must not run")
    after = target.lstat()
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)


@pytest.mark.parametrize("path", ["no/such/folder.txt", "a\0b", "/", ""])
def test_names_that_cannot_be_written(tmp_path, monkeypatch, path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        check_writable(path)


def test_a_full_disk_is_one_sentence_about_the_file(tmp_path) -> None:
    target = tmp_path / "out.bin"
    said = rf"^Cannot write {target}: No space left on device\.$"
    with pytest.raises(InputError, match=said), atomic_path(target) as temporary:
        raise OSError(28, "No space left on device", str(temporary))
    assert names(tmp_path) == []


def test_an_error_about_another_file_stays_what_it_is(tmp_path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "out") as temporary:
        temporary.write_bytes((tmp_path / "not there").read_bytes())


KILLED = """
import os, signal, sys
from atpgraph.util.files import atomic_folder, atomic_path
kind, path = sys.argv[1:]
with (atomic_path(path) if kind == "file" else atomic_folder(path, known={"a"})) as temporary:
    (temporary if kind == "file" else temporary / "a").write_text("half")
    print("ready", flush=True)
    if sys.stdin.readline() == "die\\n":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def writer(kind: str, target: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, kind, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@POSIX
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_next_writer_clears_what_a_killed_one_left_and_spares_a_living_one(
    tmp_path, kind
) -> None:
    target = tmp_path / "out"
    dead, alive = writer(kind, target), writer(kind, target)
    dead.communicate("die\n")
    assert dead.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2  # no target yet, two neighbors
    if kind == "file":
        with atomic_path(target) as temporary:
            temporary.write_text("mine")
    else:
        with atomic_folder(target, known={"a"}) as temporary:
            (temporary / "a").write_text("mine")
    assert len(names(tmp_path)) == 2  # the target and the neighbor of the living writer
    alive.communicate("finish\n")
    assert alive.returncode == 0
    assert names(tmp_path) == ["out"]
    assert (target if kind == "file" else target / "a").read_text() == "half"


@pytest.mark.parametrize("atomic", [True, False])
def test_a_folder_is_replaced_whole(tmp_path, monkeypatch, atomic) -> None:
    if not atomic:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    target = tmp_path / "model"
    with atomic_folder(target, known={"a", "b"}) as temporary:
        (temporary / "a").write_text("1")
    with atomic_folder(target, known={"a", "b"}) as temporary:
        (temporary / "b").write_text("2")
    assert names(target) == ["b"]
    with pytest.raises(ZeroDivisionError), atomic_folder(target, known={"a", "b"}):
        _ = 1 / 0
    assert names(target) == ["b"]
    assert names(tmp_path) == ["model"]


def test_a_folder_with_somebody_elses_files_is_not_replaced(tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        check_folder(tmp_path, known={"a"})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "file", known={"a"})
