"""Fail a test that leaves a cluster, server, thread, socket, file or child process open.

After each test the open resources of this process are listed and compared with those before it.
Only if there are new ones is a moment waited and garbage collected, so the check costs a fraction
of a millisecond for most tests. What then remains open belongs either to a fixture of the class,
module or session, and must be gone when that fixture ends, or to the test, which fails.

Threads are seen on every system; files, sockets and processes only where there is ``/proc``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PATIENCE = 30.0  # seconds for what is about to end; spent in full only by a test that fails
MOMENT = 0.05  # seconds for what ends without a collection of garbage, which may take longer
FILES, TASKS = Path("/proc/self/fd"), Path("/proc/self/task")

# Started once per process by a library, on first use, and never stopped.
LASTING_THREADS = ("Dask-Offload", "tqdm_monitor")


class Resource(NamedTuple):
    """Something open: its kind, and what tells it from others of its kind."""

    kind: str
    name: str
    number: int


class Owner(NamedTuple):
    """Who opened a resource that may stay open after a test, and when it must be gone."""

    name: str
    ends: str  # "module" or "session"
    fixture: str = ""


def open_resources() -> set[Resource]:
    """Return what this process has open now, except for what is always there."""
    return {*_threads(), *_clusters(), *_files(), *_children()}


def _threads() -> Iterator[Resource]:
    for thread in threading.enumerate():
        if not thread.name.startswith(LASTING_THREADS):
            yield Resource("thread", thread.name, thread.native_id or 0)


def _clusters() -> Iterator[Resource]:
    spec = sys.modules.get("distributed.deploy.spec")
    for cluster in list(spec.SpecCluster._instances) if spec else ():
        if cluster.status.name != "closed":
            yield Resource("cluster", type(cluster).__name__, id(cluster))


def _files() -> Iterator[Resource]:
    with contextlib.suppress(FileNotFoundError):
        for number in os.listdir(FILES):
            with contextlib.suppress(FileNotFoundError):  # the listing itself, closed by now
                name = os.readlink(FILES / number)
                kind = name.partition(":")[0] if ":[" in name else "file"
                if int(number) != _tracker()[0] and not _is_lasting(kind, name):
                    yield Resource(kind, name, int(number))


def _is_lasting(kind: str, name: str) -> bool:
    """Return whether a library keeps this open: its own files (fonts), or its event queues.

    The event loops of Python have a pair of sockets beside their queue, which are seen.
    """
    return kind == "anon_inode" or "/site-packages/" in name


def _children() -> Iterator[Resource]:
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir(TASKS):
            with contextlib.suppress(OSError):  # a thread that has ended
                for child in (TASKS / task / "children").read_text().split():
                    if int(child) != _tracker()[1]:
                        yield Resource("process", "child", int(child))


def _tracker() -> tuple[int | None, int | None]:
    """Return the file and the process of the resource tracker of multiprocessing, if it runs."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    tracker = module and module._resource_tracker
    return getattr(tracker, "_fd", None), getattr(tracker, "_pid", None)


def describe(resource: Resource) -> str:
    """Return one line about an open resource."""
    kind, name, number = resource
    with contextlib.suppress(Exception):  # it may end now; and psutil may be missing
        if kind == "process":
            import psutil

            process = psutil.Process(number)
            return f"process {number}, {process.status()}: {' '.join(process.cmdline())}"
        if kind == "socket":
            import psutil

            for socket in psutil.Process().net_connections("all"):
                if socket.fd == number:
                    is_server = socket.status == psutil.CONN_LISTEN
                    what = "server listening on" if is_server else "socket of"
                    return f"{what} {':'.join(map(str, socket.laddr)) or 'no address'}"
    return f"{kind} {name}"


def collect_garbage() -> list[str]:
    """Collect garbage; return what was said by objects that should have been closed before."""
    said: list[str] = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda found: said.append(f"garbage: {found.exc_value}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            gc.collect()
    finally:
        sys.unraisablehook = hook
    return said


class LeakCheck:
    """A plugin for pytest, see the top of this file."""

    def __init__(self) -> None:
        self.known: set[Resource] = set()  # open before the tests, or reported
        self.owners: dict[Resource, Owner] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        gc.collect()
        gc.freeze()  # what imports made is no garbage: looking through it takes a second each time
        self.known = open_resources()
        try:
            return (yield)
        finally:
            gc.unfreeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        before = open_resources()
        try:
            return (yield)
        finally:
            ends = "session" if fixturedef.scope in ("session", "package") else "module"
            owner = Owner(f"fixture {fixturedef.argname}", ends, fixturedef.argname)
            for resource in open_resources() - before:
                self.owners.setdefault(resource, owner)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        try:
            result = yield
        except Exception:  # the test fails anyway: only see to it that no other test does
            self._problems(item, nextitem)
            raise
        problems = self._problems(item, nextitem)
        if problems:
            pytest.fail("\n".join(["left open:", *problems]), pytrace=False)
        return result

    def _problems(self, item: pytest.Item, nextitem: pytest.Item | None) -> list[str]:
        ended = {"test"}
        if nextitem is None or nextitem.path != item.path:
            ended.add("module")
        if nextitem is None:
            ended.add("session")
        moment = time.monotonic() + MOMENT
        while left := self._left(ended):
            if time.monotonic() > moment:
                break
            time.sleep(0.002)
        else:
            return []
        problems = collect_garbage()
        # While a fixture of the module has something open, such as a cluster, that may open more in
        # the background, and so may a fixture of the session in a test that uses it.
        now, used = open_resources(), getattr(item, "fixturenames", ())
        lasting = {
            owner.ends
            for resource, owner in self.owners.items()
            if resource in now and (owner.ends == "module" or owner.fixture in used)
        }
        lasting -= ended
        ends = "module" if "module" in lasting else "session"
        deadline = time.monotonic() + PATIENCE
        while left := self._left(ended):
            if lasting:  # looked at in every turn: it opens more while we wait
                for resource in left - self.owners.keys():
                    self.owners[resource] = Owner(item.nodeid, ends)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        for resource in sorted(left):
            owner = self.owners.pop(resource, None)
            problems.append(describe(resource) + (f" (by {owner.name})" if owner else ""))
        self.known |= left
        self.owners = {at: self.owners[at] for at in open_resources() & self.owners.keys()}
        return problems

    def _left(self, ended: set[str]) -> set[Resource]:
        """Return what is open although what opened it has ended."""
        left = open_resources() - self.known
        return {at for at in left if at not in self.owners or self.owners[at].ends in ended}
