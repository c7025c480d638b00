"""Files appear whole or not at all: write to a temporary neighbour, then rename."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from atpgraph.errors import InputError


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse, before long work, a path that could not be written in the end."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a directory; name a file to write.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {target}: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"Cannot write {target}: the folder {target.parent} is read-only.")
    return target


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds.

    The temporary file keeps the suffix of `path` (some writers choose a format by it) and is
    removed when the block raises, KeyboardInterrupt included.

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
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent
        )
    except OSError as error:
        raise InputError(f"Cannot write {target}: {error.strerror}.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
