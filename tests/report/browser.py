"""A page in headless Chromium, driven through its debugging pipe: no port, no library."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe",
]  # fmt: skip


def find_chromium() -> str | None:
    """The command that starts Chromium, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One open page; what it logs is collected in ``messages``."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self._loaded = False
        self.messages: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._back, 1 << 16)
            if not part:
                raise RuntimeError("Chromium closed the pipe")
            self._buffer += part
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(raw)
        kind = message.get("method")
        if kind in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(message["params"])[:500])
        self._loaded |= kind == "Page.loadEventFired"
        return message

    def open(self, url: str, width: int, scheme: str, height: int = 900) -> None:
        """Load a page as a window of this width, light or dark, shows it."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[scheme_feature])
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._receive()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))


def _high(descriptor: int) -> int:
    """The same end of a pipe under a number that is neither 3 nor 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own, and end it."""
    command = find_chromium()
    assert command is not None
    down_read, down_write = map(_high, os.pipe())
    up_read, up_write = map(_high, os.pipe())
    # Chromium reads commands from descriptor 3 and answers on 4.
    shell = f'exec "$@" 3<&{down_read} 4>&{up_write}'
    started = subprocess.Popen(
        ["bash", "-c", shell, "bash", command, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(down_read, up_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(down_read)
    os.close(up_write)
    try:
        yield Browser(down_write, up_read)
    finally:
        os.close(down_write)
        os.close(up_read)
        started.terminate()
        try:
            started.wait(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
