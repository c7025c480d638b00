"""Where the tests find real data, and what makes them pass in any environment."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from tests.leaks import LeakCheck

# Where several processes test at once, threads of BLAS only stand in each other's way: small matrix
# products take several times the processor. Set before NumPy is imported, and for child processes.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Byte code is kept, whatever the environment says: without it, half of the time goes into compiling
# the same source again in every process, and tests start hundreds of them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Kernels compile on first use and machines differ: no deadlines. `ci` also fixes the examples.
settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# Folders whose tests share a world that takes seconds to make.
_ROUTING = ("timeline", "ranking", "baselines", "evaluation", "advisor")
TOGETHER = {
    "tests/attack/": "attack",
    "qa/tests/service/": "service",
    **{f"qa/tests/{name}/": "routing" for name in _ROUTING},
}
# Groups that take longest start first, so that no process is left with one of them at the end. The
# first compiles most kernels in a new clone. Those after it need none, or only in a folder of their
# own: otherwise a second process would compile the same ones at the same time.
SLOW = (
    "service",
    "tests/test_leaks.py",
    "tests/test_jit.py",
    "tests/cli/test_console.py",
    "tests/test_packaging.py",
    "tests/test_files.py",
    "qa/tests/data/test_fuzz.py",
    "qa/tests/data/test_ingest.py",
    "tests/docs/test_site.py",
    "routing",
    "tests/docs/test_blocks.py",
    "tests/embedding/test_spread.py",
    "tests/cli/test_resume.py",
    "attack",
    "tests/linkpred/test_predictor.py",
)


# Typer would build all commands again, 40 ms, for each of a thousand that tests run.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def pytest_configure(config: pytest.Config) -> None:
    """Let tests that leave something open fail."""
    config.pluginmanager.register(LeakCheck(), "leaks")


def group_of(nodeid: str) -> str:
    """Return the group of a test: its folder in TOGETHER, else its file."""
    file = nodeid.partition("::")[0]
    return next((TOGETHER[folder] for folder in TOGETHER if file.startswith(folder)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start slow groups first if several processes test at once."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {group: rank for rank, group in enumerate(SLOW)}
        items.sort(key=lambda item: ranks.get(group_of(item.nodeid), len(SLOW)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Run all tests of a group in one process, so that its fixtures are set up once.

    Not with marks and ``--dist loadgroup``: that changes node ids, and from pytest 9.2 on it
    silently does nothing.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs and sites, or a skip that says why.

    Only the tests look beside the checkout; the package itself knows ``ATP_DATA`` alone.
    """
    root = Path(__file__).resolve().parent
    candidate = Path(os.environ.get("ATP_DATA", root.parent / "shared" / "data"))
    if not (candidate / "graphs").is_dir():
        pytest.skip(f"real data not found at {candidate}; set ATP_DATA to run this test")
    return candidate


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C works in the test and in the processes it starts.

    Shells start background jobs with SIGINT ignored, and both Python and child processes keep that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# An old name that warns on import; the module behind the new name has the doctests.
collect_ignore = ["src/atpgraph/linkpred/laboratory.py"]
