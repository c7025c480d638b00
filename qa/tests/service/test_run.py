"""How connections are served, and whose turn it is to rank."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from atpgraph_qa.service.engine import RankingLimiter
from atpgraph_qa.service.run import listen


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


def test_stored_questions_let_callers_go_first() -> None:
    limiter, hold, order = RankingLimiter(2), threading.Event(), list[str]()

    def caller() -> None:
        hold.wait(20)
        order.append("caller")

    async def serve() -> None:
        under_way = asyncio.create_task(limiter.run(caller))
        await asyncio.sleep(0)
        event = asyncio.create_task(asyncio.to_thread(stored))
        await asyncio.sleep(0.05)
        hold.set()
        await asyncio.gather(under_way, event)

    def stored() -> None:
        limiter.idle.wait(20)
        order.append("stored")

    asyncio.run(serve())
    assert order == ["caller", "stored"]
    assert limiter.under_way == 0
    limiter.close()


def test_stored_questions_do_not_wait_for_ever() -> None:
    limiter, hold = RankingLimiter(2), threading.Event()

    async def serve() -> None:
        under_way = asyncio.create_task(limiter.run(lambda: hold.wait(20)))
        await asyncio.sleep(0)
        await asyncio.to_thread(limiter.idle.wait, 0.01)
        hold.set()
        await under_way

    asyncio.run(serve())
    limiter.close()
