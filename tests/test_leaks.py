"""The leak check: a test that leaves something open fails, and no other test does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")

CONFTEST = """
import pytest
from tests import leaks

leaks.PATIENCE = 0.5
kept = []

def pytest_configure(config):
    config.pluginmanager.register(leaks.LeakCheck())

@pytest.fixture(scope="session")
def lasting(tmp_path_factory):
    with open(tmp_path_factory.mktemp("lasting") / "file", "w") as file:
        yield file

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open(tmp_path_factory.mktemp("shared") / "file", "w") as file:
        yield [file]
"""

MODULE = """
import http.server, socket, subprocess, sys, threading, time
import pytest
from conftest import kept

def test_before(lasting):
    pass

{leak}

def test_after(lasting):
    pass
"""

# Kind, what leaves it open, and what the check says.
LEAKS = {
    "thread": ("threading.Thread(target=time.sleep, args=[99], name='idle', daemon=True).start()",
               "thread idle"),
    "socket": ("kept.append(socket.socketpair())", "socket"),
    "server": ("kept.append(http.server.HTTPServer(('127.0.0.1', 0), None))",
               r"server listening on 127\.0\.0\.1:\d+"),
    "file": ("kept.append(open(tmp_path / 'diary', 'w'))", r"file /.*/diary"),
    "process": ("kept.append(subprocess.Popen([sys.executable, '-c', 'input()'],"
                " stdin=subprocess.PIPE))", r"process \d+, \w+: .*python.* -c input"),
    "garbage": ("ring = [open(tmp_path / 'diary', 'w')]; ring.append(ring)",
                "unclosed file .*diary"),
    "cluster": ("from distributed import LocalCluster\n"
                "    kept.append(LocalCluster(n_workers=0, dashboard_address='127.0.0.1:0'))",
                "cluster LocalCluster"),
}  # fmt: skip


def run(folder: Path, modules: dict[str, str], *options: str) -> str:
    """Run tests under the leak check and return what pytest says."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    for name, leak in modules.items():
        (folder / f"test_{name}.py").write_text(MODULE.format(leak=leak))
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout


def failures(said: str) -> list[str]:
    return sorted(re.findall(r"^(?:ERROR|FAILED) (\S+)", said, re.MULTILINE))


@pytest.mark.parametrize(
    ("kinds", "options"), [(LEAKS.keys(), ()), (("file", "thread"), ("-n", "2"))]
)
def test_each_kind_fails_the_test_that_left_it(
    kinds: Collection[str], options: Sequence[str], tmp_path: Path
) -> None:
    pytest.importorskip("distributed")
    modules = {kind: f"def test_leaks(tmp_path):\n    {LEAKS[kind][0]}" for kind in kinds}
    said = run(tmp_path, modules, *options)
    assert failures(said) == sorted(f"test_{kind}.py::test_leaks" for kind in kinds)
    for kind in kinds:
        assert re.search(LEAKS[kind][1], said), (kind, said)


def test_a_fixture_may_keep_things_open_until_it_ends(tmp_path: Path) -> None:
    opens = "def test_lazy(shared, tmp_path):\n    shared.append(open(tmp_path / 'more', 'w'))"
    closes = (
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def closing(shared):\n    yield\n    for file in shared: file.close()\n\n" + opens
    )
    leaks = opens.replace("shared.append", "kept.append")
    said = run(tmp_path, {"closed": closes, "open": leaks})
    assert failures(said) == ["test_open.py::test_after"]
    assert re.search(r"file /.*/more \(by test_open.py::test_lazy\)", said)


def test_fixtures_that_never_end_are_named(tmp_path: Path) -> None:
    leak = """
@pytest.fixture(scope="{scope}")
def careless(tmp_path_factory):
    kept.append(open(tmp_path_factory.mktemp("careless") / "{scope}", "w"))

def test_with(careless):
    pass
"""
    scopes = ("module", "session")
    modules = {f"{scope}_scope": leak.format(scope=scope) for scope in scopes}
    said = run(tmp_path, modules | {"z_last": "def test_nothing(): pass"})
    assert failures(said) == ["test_module_scope.py::test_after", "test_z_last.py::test_after"]
    for scope in scopes:
        assert re.search(rf"file /.*/{scope} \(by fixture careless\)", said)
