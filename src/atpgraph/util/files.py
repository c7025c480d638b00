"""Write files and folders whole or not at all.

Output goes to a temporary neighbor (a file or folder beside the target) whose name begins with a
dot, and one rename puts it in place. A writer holds a lock on its neighbor; the next writer to the
same path removes unlocked neighbors, which killed runs left behind.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import ModuleType

from atpgraph.errors import InputError
from atpgraph.util.threads import undisturbed

fcntl: ModuleType | None
try:
    fcntl = import_module("fcntl")
except ImportError:  # not a POSIX system: no locks, and litter of killed runs stays
    fcntl = None

# Whether a file went to standard output, so that nothing else should.
output_taken: ContextVar[bool] = ContextVar("output_taken", default=False)

_living: dict[Path, int] = {}  # temporary neighbors of this process, and its number
_MARK = ".atp-"  # in the name of every temporary neighbor
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Raise an InputError before long work if its result cannot be written to a path.

    Returns the file that would be written: the target of a symbolic link, else `path` itself.
    ``"-"``, standard output, can always be written.
    """
    if os.fspath(path) == "-":
        return Path(path)
    target, mode = _resolved(path)
    if mode is not None and not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise InputError(f"{path} is {kind}; name a file to write.")
    return target


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds.

    The temporary file keeps the suffix of `path` (some writers choose a format by it) and is
    removed when the block raises. A file that is replaced passes on its permissions. An
    operating-system error while writing becomes an `InputError`. Output to ``"-"`` goes to standard
    output once it is complete.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "out.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("done")
    >>> target.read_text()
    'done'
    """
    target = check_writable(path)
    if os.fspath(path) == "-":
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "output"
            yield temporary
            _to_standard_output(temporary)
        return
    with _errors_about(target), contextlib.ExitStack() as stack:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        sweep(target.parent, _prefix(target))
        temporary, handle = _neighbor(target, stack, folder=False)
        yield temporary
        temporary.chmod(mode)
        os.fsync(handle)
        with undisturbed():
            temporary.replace(target)
            stack.close()  # Ctrl-C within ExitStack.__exit__ would leave the handle open


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], *, known: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it takes the place of `path` if the block succeeds.

    `path` is a new name or a folder with no entries but those in `known`; a folder with anything
    else raises an InputError.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> for text in ("first", "second"):
    ...     with atomic_folder(target, known={"a.txt"}) as temporary:
    ...         _ = (temporary / "a.txt").write_text(text)
    >>> (target / "a.txt").read_text()
    'second'
    """
    target = check_folder(path, known=known)
    with _errors_about(target), contextlib.ExitStack() as stack:
        sweep(target.parent, _prefix(target))
        temporary, _ = _neighbor(target, stack, folder=True)
        yield temporary
        old = target.exists()
        temporary.chmod(stat.S_IMODE(target.stat().st_mode) if old else 0o777 & ~_umask())
        with undisturbed():
            _put(temporary, target, old=old)
            stack.close()


@contextlib.contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """Yield a private folder among the system's temporary files; remove it afterwards.

    Folders of this name that killed processes left behind are removed first.

    Examples
    --------
    >>> with temporary_folder("example") as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    target = Path(tempfile.gettempdir()) / name
    sweep(target.parent, _prefix(target))
    with contextlib.ExitStack() as stack:
        yield _neighbor(target, stack, folder=True)[0]


def _put(temporary: Path, target: Path, *, old: bool) -> None:
    """Put a finished folder in its place and remove the old one."""
    if not old:
        temporary.rename(target)
    elif _exchange(temporary, target):
        shutil.rmtree(temporary, ignore_errors=True)
    else:  # a file system without an atomic exchange: for a moment the folder is not there
        aside = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        target.rename(aside / "old")
        temporary.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def _to_standard_output(file: Path) -> None:
    try:
        sys.stdout.flush()
        with file.open("rb") as opened:
            shutil.copyfileobj(opened, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        error.filename = "Standard output"
        raise
    output_taken.set(True)


def check_folder(path: str | os.PathLike[str], *, known: Collection[str]) -> Path:
    """Return the folder to write; raise an InputError if it cannot be replaced."""
    target, mode = _resolved(path)
    if mode is None:
        return target
    if not stat.S_ISDIR(mode):
        raise InputError(f"{path} is a file; name a folder to write.")
    with _errors_about(target):
        others = sorted(entry.name for entry in target.iterdir() if entry.name not in known)
    if others:
        raise InputError(
            f"{path} is a folder with other files in it ({others[0]!r}); choose another folder."
        )
    return target


def _resolved(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Follow links; return the target and its mode, None for a new name."""
    if "\0" in os.fspath(path):
        raise InputError(f"{os.fspath(path)!r} is not a file name: it holds a NUL character.")
    try:
        target = Path(path)
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        mode: int | None = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from error
    if not target.name:
        raise InputError(f"Cannot write {path}: it names no file.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {path}: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"Cannot write {path}: the folder {target.parent} is read-only.")
    return target, mode


@contextlib.contextmanager
def _errors_about(target: Path) -> Iterator[None]:
    """Turn an operating-system error of the writer into a sentence about `target`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (BrokenPipeError, InputError)):
            raise
        about = error.filename
        if about is not None and _MARK not in os.fsdecode(about) and Path(about) != target:
            raise  # reading something else failed; that is not about this file
        why = error.strerror or " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"Cannot write {target}: {why}.") from error


def _neighbor(target: Path, stack: contextlib.ExitStack, *, folder: bool) -> tuple[Path, int]:
    """Return a new temporary neighbor, locked, and its handle (−1 for a folder without locks)."""
    prefix, parent = _prefix(target), target.parent
    while True:
        with undisturbed():  # what is made and not yet on the stack would stay
            if folder:
                temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
                handle = os.open(temporary, os.O_RDONLY) if fcntl is not None else -1
            else:
                handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=parent)
                temporary = Path(name)
            _living[temporary] = os.getpid()
            stack.push(_removing(temporary))
            if handle >= 0:
                stack.callback(os.close, handle)
        if fcntl is None:
            return temporary, handle
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if temporary.exists():
            return temporary, handle
        # Another writer's sweep came between making and locking it: once more.


def _removing(temporary: Path) -> Callable[..., None]:
    """Return a function that removes the neighbor, which no longer exists after a success."""

    def remove(*_: object) -> None:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        _living.pop(temporary, None)

    return remove


@atexit.register
def _leave_nothing() -> None:
    """Remove the temporary files that threads still hold when the process ends."""
    for temporary, owner in list(_living.items()):
        if owner == os.getpid():  # a forked child knows its parent's
            with contextlib.suppress(OSError):
                _removing(temporary)()


def _prefix(target: Path) -> str:
    # Long names leave no room for a prefix; the beginning tells neighbors apart well enough.
    return f".{target.name[:100]}{_MARK}"


def is_temporary(name: str) -> bool:
    """Return whether a name is that of the unfinished output of a running or killed writer."""
    return name.startswith(".") and _MARK in name


def sweep(folder: Path, prefix: str = ".") -> None:
    """Remove the unfinished, unlocked work that killed writers left in a folder."""
    if fcntl is None:
        return
    for entry in os.scandir(folder):
        if not (entry.name.startswith(prefix) and is_temporary(entry.name)) or entry.is_symlink():
            continue
        with contextlib.suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _removing(Path(entry.path))()
            finally:
                os.close(handle)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it exists, in one step, so that no reader sees part of it."""
    with contextlib.suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=_prefix(path), dir=path.parent))
        with contextlib.suppress(OSError):
            path.rename(aside / "old")
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two paths in one step; return False if the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here = -100  # AT_FDCWD
    if swap(here, os.fsencode(first), here, os.fsencode(second), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), os.fspath(second))


def _umask() -> int:
    with undisturbed():
        mask = os.umask(0)
        os.umask(mask)
    return mask
