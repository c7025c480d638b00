"""A small HTTP server that answers as it is told and keeps what it got."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """What a running server got, and what it answers: statuses in turn, then the last one."""

    url: str
    answers: list[int]
    got: list[Got] = field(default_factory=list)
    location: str = ""
    hang: threading.Event = field(default_factory=threading.Event)
    hangs: bool = False


@contextlib.contextmanager
def receiver(*answers: int) -> Iterator[Receiver]:
    """Run a server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed in the middle of it
                return
            made.got.append(Got(self.command, self.path, headers, body))
            if made.hangs:
                made.hang.wait(30)
                return
            status = made.answers[min(len(made.got), len(made.answers)) - 1]
            self.send_response(status)
            if made.location:
                self.send_header("location", made.location)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_POST = do_PUT = do_GET = _answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # with five, a burst of messages is refused by the system

    server = Server(("127.0.0.1", 0), Handler)
    made = Receiver(f"http://127.0.0.1:{server.server_address[1]}", list(answers) or [200])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.hang.set()
        server.shutdown()
        server.server_close()
        thread.join()
