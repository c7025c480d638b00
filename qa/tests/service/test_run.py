"""How connections are served, and whose turn it is to rank."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from atpgraph.util.courtesy import breathe
from atpgraph_qa.service.run import listen
from atpgraph_qa.service.turns import Turns


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_do_not_wait_for_full_packets(host: str) -> None:
    """An answer is a head and a body: without this, the body waits for the other side's ACK."""
    found = asyncio.run(_option_of_a_connection(host))
    assert found != 0


async def _option_of_a_connection(host: str) -> int:
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = writer.get_extra_info("socket")
        found.set_result(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(met, sock=listen(host, 0)) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(host, port)
        result = await found
        writer.close()
        return result


def _waiting(turns: Turns, count: int) -> None:
    """Until so many threads wait for their turn."""
    until = time.monotonic() + 20
    while len(turns._changed._waiters) < count:  # type: ignore[attr-defined]
        assert time.monotonic() < until
        time.sleep(0.001)


def _thread(turns: Turns, name: str, caller: bool, order: list[str]) -> threading.Thread:
    def work() -> None:
        with turns.taken(caller=caller):
            order.append(name)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_callers_rank_before_stored_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atpgraph_qa.service.turns._PATIENCE_S", 60.0)
    turns, order = Turns(1), list[str]()
    with turns.taken(caller=True):
        stored = _thread(turns, "stored", False, order)
        _waiting(turns, 1)
        caller = _thread(turns, "caller", True, order)
        _waiting(turns, 2)
        assert order == []
    caller.join()
    stored.join()
    assert order == ["caller", "stored"]


def test_stored_questions_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while they are callers like the others."""
    monkeypatch.setattr("atpgraph_qa.service.turns._PATIENCE_S", 0.0)
    turns, order = Turns(1), list[str]()
    with turns.taken(caller=True):
        stored = _thread(turns, "stored", False, order)
        _waiting(turns, 1)
        assert turns._callers == 1
    stored.join()
    assert order == ["stored"]
    with turns.taken(caller=False):  # every place was given back
        assert turns._free == 0


def test_a_caller_interrupts_the_ranking_of_a_stored_question() -> None:
    """And gets its place, even if there is only one."""
    turns, order = Turns(1), list[str]()
    begun, go_on = threading.Event(), threading.Event()

    def stored() -> None:
        with turns.taken(caller=False):
            begun.set()
            assert go_on.wait(20)
            breathe()
            order.append("stored")

    def caller() -> None:
        with turns.taken(caller=True):
            breathe()  # a caller waits for nobody
            order.append("caller")

    threads = [threading.Thread(target=work) for work in (stored, caller)]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    _waiting(turns, 1)
    assert order == []
    go_on.set()
    for thread in threads:
        thread.join()
    assert order == ["caller", "stored"]
    with turns.taken(caller=True):
        assert turns._free == 0


def test_a_stream_of_callers_does_not_stop_a_stored_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atpgraph_qa.service.turns._PATIENCE_S", 0.0)
    turns = Turns(2)
    with turns.taken(caller=True), turns.taken(caller=False):
        breathe()
        assert turns._free == 0
    turns.give_way(60.0)  # nobody is left
