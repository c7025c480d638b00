"""Save and load checkpoints for long fits.

A stage is a folder of ``.npy`` parts and a ``facts.json``; it appears whole or not at all, so a job
that is started again loads the finished stages and computes the rest. Parts are mapped, not read:
they may be larger than the memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import load_array
from atpgraph.util.arrays import AnyArray
from atpgraph.util.files import atomic_folder, atomic_path, fcntl, is_temporary, sweep

MANIFEST = "job.json"
FORMAT = "atpgraph-work"
VERSION = 2
SECONDS = 30.0  # between two states of a loop, at least: less would be lost than writing costs

Parts = dict[str, AnyArray]
Facts = dict[str, Any]


class WorkFolder:
    """The checkpoints of one job.

    Parameters
    ----------
    path : path
        A new or empty folder, or the one of the same job.
    job : mapping
        Digests and parameters that identify the job, as plain values.

    Examples
    --------
    >>> import tempfile
    >>> work = WorkFolder(Path(tempfile.mkdtemp()) / "work", {"job": 1})
    >>> for _ in range(2):
    ...     found, _ = work.stage("count", lambda: ({"numbers": np.arange(3)}, {}))
    >>> found["numbers"].tolist()
    [0, 1, 2]
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self.path = Path(path)
        plain = json.loads(json.dumps(dict(job), default=np.generic.item))
        wanted = {"format": FORMAT, "version": VERSION, "job": plain}
        manifest = self.path / MANIFEST
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is not a folder; name one for the work.")
        if manifest.exists():
            _check_same(self.path, _read(manifest), wanted)
        elif self.path.exists() and not all(is_temporary(e.name) for e in self.path.iterdir()):
            raise InputError(f"{self.path} is not empty; choose a new or empty directory.")
        else:
            self.path.mkdir(parents=True, exist_ok=True)
            with atomic_path(manifest) as temporary:
                temporary.write_text(json.dumps(wanted, indent=2), encoding="utf-8")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other runs of the same job until this process ends."""
        with (self.path / "lock").open("w") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise InputError(
                        f"Another run is using {self.path}; wait for it or stop it."
                    ) from error
            sweep(self.path)
            yield

    def stage(self, name: str, work: Callable[[], tuple[Parts, Facts]]) -> tuple[Parts, Facts]:
        """Return the result of `work`, or the stored one if an earlier run finished the stage."""
        if not (self.path / name).exists():
            self.put(name, *work())
        return self.get(name)

    def put(self, name: str, parts: Parts, facts: Facts) -> None:
        """Write a stage."""
        known = {f"{part}.npy" for part in parts} | {"facts.json"}
        with atomic_folder(self.path / name, known=known) as folder:
            for part, array in parts.items():
                np.save(folder / f"{part}.npy", array, allow_pickle=False)
            text = json.dumps(facts)
            sealed = {"facts": text, "seal": _seal(parts, text)}
            (folder / "facts.json").write_text(json.dumps(sealed), encoding="utf-8")

    def get(self, name: str) -> tuple[Parts, Facts]:
        """Read a stage: its arrays are mapped, and changes to them are not written back."""
        return read_stage(self.path / name)


class Loop:
    """The last state of a loop, saved as a stage that is replaced at most every 30 seconds."""

    def __init__(self, folder: WorkFolder, name: str) -> None:
        self._folder, self._name, self._saved = folder, name, time.monotonic()

    def state(self) -> tuple[Parts, Facts] | None:
        """Return the saved state; changes to the arrays are not written back."""
        saved = (self._folder.path / self._name).exists()
        return self._folder.get(self._name) if saved else None

    def save(self, parts: Callable[[], Parts], facts: Facts, *, at_once: bool = False) -> None:
        """Save a state, unless one was saved a moment ago."""
        if at_once or time.monotonic() - self._saved >= SECONDS:
            self._folder.put(self._name, parts(), facts)
            self._saved = time.monotonic()


def read_stage(folder: Path, *, check: bool = True) -> tuple[Parts, Facts]:
    """Read a stage, its arrays mapped.

    The digest is checked because compiled code does not check the arrays; workers skip this, since
    it would read the whole stage for every task.
    """
    sealed = _read(folder / "facts.json")
    try:
        files = sorted(folder.glob("*.npy"))
        parts = {file.stem: np.asarray(load_array(file, "c")) for file in files}
        if check and _seal(parts, sealed["facts"]) != sealed["seal"]:
            raise ValueError
        facts: Facts = json.loads(sealed["facts"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder} is damaged; delete {folder.parent} and start over.") from error
    return parts, facts


def digest(arrays: Mapping[str, AnyArray]) -> str:
    """Return a hash of arrays: names, types, shapes and bytes.

    Examples
    --------
    >>> digest({"a": np.arange(3)}) == digest({"a": np.arange(3) + 0})
    True
    """
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _seal(parts: Parts, text: str) -> str:
    return hashlib.sha256(f"{digest(parts)} {text}".encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"Cannot read {path}; delete the folder and start over.") from error
    return found


def _check_same(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found == wanted:
        return
    old, new = found.get("job", {}), wanted["job"]
    names = [name for name in new if not isinstance(old, dict) or old.get(name) != new[name]]
    about = f" ({', '.join(names)} differ)" if found.get("format") == FORMAT and names else ""
    raise InputError(
        f"{path} holds the work of another job{about}; name another folder, or delete this one."
    )
