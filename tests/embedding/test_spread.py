"""Dask: real workers in processes of their own; the same bytes as threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atpgraph import ATP, InputError, gnm
from atpgraph.embedding import spread
from atpgraph.errors import AtpError
from atpgraph.factorization import panels
from tests.attack.forked import path_of

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("default"),  # those of Dask are not ours to fix
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here"),
]

GRAPH = gnm(500, 1500, random_state=1)
PARAMS: dict[str, Any] = {"n_components": 8, "max_iter": 3}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask

    # No patience with workers that are away for a moment: what Dask would have after 15 seconds.
    hasty = dask.config.set({"distributed.deploy.lost-worker-timeout": "50ms"})
    with hasty, spread.connected("local:2") as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def several_tasks() -> Iterator[None]:
    """A small graph as several ranges of rows, as a large one is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "_ROWS", 64)
        yield


@pytest.fixture(scope="module")
def whole() -> ATP:
    return ATP(**PARAMS).fit(GRAPH)


def same(one: ATP, two: ATP) -> bool:
    return all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes()
        for name in ("source_", "target_", "objective_", "removed_")
    )


def scale(client: Any, workers: int) -> None:
    """Change the number of workers and wait until the scheduler knows them."""
    client.cluster.scale(workers)
    wait_until(lambda: len(client.nthreads()) == workers)


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def test_a_late_message_does_not_disturb_the_close(caplog: pytest.LogCaptureFixture) -> None:
    """The removal of a worker is announced after wait_for_workers has replaced the list of them.

    The first test, before the cluster of the others: the leak check sees that nothing stays open.
    """
    with spread.connected("local:1") as client:
        cluster = client.cluster
        messages = cluster._watch_worker_status_comm
        arrives, hold = messages.read, threading.Event()

        async def late() -> Any:
            found = await arrives()
            while hold.is_set():
                await asyncio.sleep(0.01)
            return found

        messages.read = late
        scale(client, 2)
        wait_until(lambda: len(cluster.scheduler_info["workers"]) == 2)
        hold.set()
        scale(client, 1)
        client.wait_for_workers(1)
        assert len(cluster.scheduler_info["workers"]) == 1
        hold.clear()
    assert cluster.status.name == "closed"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_bytes_are_those_of_threads(client: Any, whole: ATP, tmp_path: Path) -> None:
    found = ATP(**PARAMS).fit(GRAPH, work=tmp_path / "w", client=client)
    assert same(found, whole)
    left = {path.name.partition("-")[0] for path in (tmp_path / "w").iterdir()}
    assert left == {"job.json", "lock", "cycles", "vectors"}


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_does_not_matter(
    workers: int, client: Any, whole: ATP, tmp_path: Path
) -> None:
    scale(client, workers)
    found = ATP(**PARAMS).fit(GRAPH, work=tmp_path / "w", client=client)
    scale(client, 2)
    assert same(found, whole)


def test_a_killed_worker_costs_its_tasks_only(
    client: Any, whole: ATP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = str(tmp_path / "killed")

    def doomed(task: Any, given: Any) -> Any:
        # The first worker to get here ends at once, in the middle of whatever else it does. Only
        # one can make the file: two tasks may find it missing at the same time.
        with contextlib.suppress(FileExistsError), open(marker, "x"):
            os.kill(os.getpid(), signal.SIGKILL)
        # Named here: Dask would send a function that is patched away by value, and compile it anew.
        from atpgraph.factorization.panels import learn_range

        return learn_range(task, given)

    monkeypatch.setattr(panels, "learn_range", doomed)
    found = ATP(**PARAMS).fit(GRAPH, work=tmp_path / "w", client=client)
    assert os.path.exists(marker)
    assert same(found, whole)


def test_a_lost_scheduler_ends_with_a_sentence_and_the_fit_can_be_resumed(
    whole: ATP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ATP(**PARAMS)
    with spread.connected("local:1") as lost:
        rows = spread.ClusterMap.__call__

        def last(self: Any, *arguments: Any) -> Iterator[Any]:
            if self._calls == 2:
                lost.cluster.close()
            return rows(self, *arguments)

        monkeypatch.setattr(spread.ClusterMap, "__call__", last)
        with pytest.raises(AtpError, match=r"scheduler is lost\. Rerun the same command to resume"):
            model.fit(GRAPH, work=tmp_path / "w", client=lost)
    assert (tmp_path / "w" / "cycles").exists()
    assert same(model.fit(GRAPH, work=tmp_path / "w"), whole)


def test_a_run_that_ends_while_it_removes_parts_can_be_resumed(
    client: Any, whole: ATP, tmp_path: Path
) -> None:
    class Ended(BaseException):
        pass

    removals = fatal = 0

    def end(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal removals
        if event in ("os.remove", "os.rmdir") and path_of(event, arguments).startswith(root):
            removals += 1
            if removals == fatal:
                raise Ended

    root = str(tmp_path)
    sys.addaudithook(end)
    model = ATP(**PARAMS)
    model.fit(GRAPH, work=tmp_path / "counted", client=client)
    count = removals
    for part in (1, 2, 3):
        removals, fatal = 0, part * count // 4
        with pytest.raises(Ended):
            model.fit(GRAPH, work=tmp_path / f"{part}", client=client)
        fatal = 0
        found = model.fit(GRAPH, work=tmp_path / f"{part}", client=client)
        assert same(found, whole), (part, count)


def test_a_local_cluster_listens_on_loopback_only(client: Any) -> None:
    psutil = pytest.importorskip("psutil")
    scale(client, 2)
    process = psutil.Process()
    listening = {
        connection.laddr
        for member in (process, *process.children(recursive=True))
        for connection in member.net_connections("inet")
        if connection.status == "LISTEN"
    }
    # The scheduler, two nannies and two workers; the scheduler and the workers also over HTTP.
    assert len(listening) >= 8
    assert {address.ip for address in listening} == {"127.0.0.1"}


def test_what_a_task_says_is_said(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(task: Any, given: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(panels, "learn_range", full)
    with pytest.raises(OSError, match="No space left"):
        ATP(8).fit(GRAPH, work=tmp_path / "w", client=client)


def test_what_is_refused(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "ANSWERS", "1s")
    with pytest.raises(InputError, match="can only fit purpose='reachability'"):
        ATP(8, purpose="paper").fit(GRAPH, work=tmp_path / "w", client=client)
    with pytest.raises(InputError, match="needs a work folder"):
        ATP(8).fit(GRAPH, client=client)
    with pytest.raises(InputError, match="write local:2"), spread.connected("local:x"):
        pass
    address = "tcp://127.0.0.1:1"
    with pytest.raises(InputError, match="No Dask scheduler answers"), spread.connected(address):
        pass
