"""Dask on hosts that share a folder; network namespaces of this machine stand in for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atpgraph import ATP, gnm
from atpgraph.embedding import spread
from atpgraph.factorization import panels
from tests.embedding.test_spread import same, wait_until

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("default"),  # those of Dask are not ours to fix
    pytest.mark.skipif(not shutil.which("ip"), reason="no ip command"),
]

HOSTS = 2
NETWORK = f"10.{64 + os.getpid() % 64}.{os.getpid() // 64 % 256}"  # several runs on one machine
GRAPH = gnm(4000, 12_000, random_state=1)
PARAMS: dict[str, Any] = {"n_components": 8, "max_iter": 6}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[str]]:
    """Namespaces with a network card each, on one bridge with this one."""
    bridge = f"atp{os.getpid()}"
    names = [f"{bridge}h{at}" for at in range(HOSTS)]
    with contextlib.ExitStack() as stack:
        try:
            ip("link", "add", bridge, "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        stack.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{NETWORK}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for at, name in enumerate(names):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("link", "add", f"v{os.getpid()}{at}", "type", "veth", "peer", "eth0", "netns", name)
            ip("link", "set", f"v{os.getpid()}{at}", "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{2 + at}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names


@pytest.fixture
def cluster(hosts: list[str], tmp_path: Path) -> Iterator[tuple[Any, list[Any]]]:
    """A client, and the worker processes, one on each host; the scheduler runs here."""
    known = tmp_path / "scheduler.json"
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    program += ["--host", f"{NETWORK}.1", "--port", "0", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    with contextlib.ExitStack() as stack:
        run = subprocess.Popen([*program, "--scheduler-file", str(known)], **quiet)
        stack.enter_context(ended(run))
        wait_until(known.exists)
        workers = []
        for name in hosts:
            program = ["ip", "netns", "exec", name, sys.executable]
            program += ["-m", "distributed.cli.dask_worker", "--scheduler-file", str(known)]
            program += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
            workers.append(stack.enter_context(ended(subprocess.Popen(program, **quiet))))
        client = stack.enter_context(spread.connected(str(known)))
        wait_until(lambda: len(client.nthreads()) == HOSTS)
        yield client, workers


def test_hosts_give_the_bytes_of_threads_and_survive_a_killed_one(
    cluster: tuple[Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "_ROWS", 256)  # a small graph as many tasks, as a large one is
    client, workers = cluster
    whole = ATP(**PARAMS).fit(GRAPH)
    addresses = {address.split("/")[2].split(":")[0] for address in client.nthreads()}
    assert addresses == {f"{NETWORK}.{2 + at}" for at in range(HOSTS)}
    found = ATP(**PARAMS).fit(GRAPH, work=tmp_path / "whole", client=client)
    assert same(found, whole)

    def kill() -> None:
        wait_until(lambda: any(tmp_path.glob("killed/tasks-*")))
        time.sleep(0.2)
        workers[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    found = ATP(**PARAMS).fit(GRAPH, work=tmp_path / "killed", client=client)
    killer.join()
    assert workers[0].wait(20) == -signal.SIGKILL
    assert len(client.nthreads()) == HOSTS - 1
    assert same(found, whole)
