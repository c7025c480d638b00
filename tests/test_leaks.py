"""The leak check: a test that leaves something open fails, and no other test does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")

CONFTEST = """
import pytest
from tests import leaks

leaks.PATIENCE = 0.2
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


FIXTURES = {
    "closed_later": """
@pytest.fixture(scope="module", autouse=True)
def closing(shared):
    yield
    for file in shared: file.close()

def test_lazy(shared, tmp_path):
    shared.append(open(tmp_path / "more", "w"))
""",
    "never_closed": """
def test_lazy(shared, tmp_path):
    kept.append(open(tmp_path / "more", "w"))
""",
    **{
        f"{scope}_scope": f"""
@pytest.fixture(scope="{scope}")
def careless(tmp_path_factory):
    kept.append(open(tmp_path_factory.mktemp("careless") / "{scope}", "w"))

def test_with(careless):
    pass
"""
        for scope in ("module", "session")
    },
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of all these tests, run by one process of pytest-xdist."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("leaks")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    modules = {kind: f"def test_leaks(tmp_path):\n    {LEAKS[kind][0]}" for kind in LEAKS}
    for name, leak in {**modules, **FIXTURES, "z_last": ""}.items():
        (folder / f"test_{name}.py").write_text(MODULE.format(leak=leak))
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-n", "1"]
    done = subprocess.run(
        [*command, f"--basetemp={folder / 'base'}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
    )
    return done.stdout


def test_what_leaks_fails_and_nothing_else(said: str) -> None:
    failed = re.findall(r"^(?:ERROR|FAILED) (\S+)", said, re.MULTILINE)
    # What a fixture leaves open fails the last test before the end of its scope.
    late = [f"test_{name}.py::test_after" for name in ("never_closed", "module_scope", "z_last")]
    assert sorted(failed) == sorted([*late, *(f"test_{kind}.py::test_leaks" for kind in LEAKS)])
    assert said.count("PASSED") == 3 * len([*LEAKS, *FIXTURES]) + 2


@pytest.mark.parametrize("kind", LEAKS)
def test_each_kind_is_named(kind: str, said: str) -> None:
    assert re.search(LEAKS[kind][1], said), said


def test_fixtures_that_never_end_are_named(said: str) -> None:
    assert re.search(r"file /.*/more \(by test_never_closed.py::test_lazy\)", said)
    for scope in ("module", "session"):
        assert re.search(rf"file /.*/{scope} \(by fixture careless\)", said)
