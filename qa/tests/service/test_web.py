"""The page, as a moderator uses it, in real Chromium."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from atpgraph_qa.service.run import address_of, listen
from qa.tests.service.conftest import Front, Make
from tests.report.browser import Browser, browser, find_chromium

SHOTS = os.environ.get("ATP_SHOTS", "")  # folder for pictures of every page
PAGES = (
    "inbox", "inbox/1", "people", "people/3", "quality", "shadow", "tags", "try", "settings",
    "inbox/999", "people?find=rosa", "inbox?show=all", "login",
)  # fmt: skip
LOOKS = [(1200, "light"), (390, "dark")]
if SHOTS:
    LOOKS += [(1200, "dark"), (390, "light")]
# Contrast of every text with what is behind it, by WCAG's formula; the ten worst.
CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = [r, g, b].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const own = node.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(parse(own)), light(behind(node))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), walker.currentNode.data.trim().slice(0, 30)]);
  }
  return found.sort((x, y) => x[0] - y[0]).slice(0, 10);
})()
"""
# Controls and pictures that a screen reader could not name.
UNNAMED = """
[...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, svg, meter")]
  .filter((node) => !(node.labels?.length || node.textContent.trim() ||
    node.getAttribute("aria-label")))
  .map((node) => node.outerHTML.slice(0, 80))
"""


@pytest.fixture
def served(make_front: Make) -> Iterator[tuple[Front, str]]:
    """A service with some past, on a real port."""
    front = make_front(policy={"mode": "approve"}, server={"public_url": "http://127.0.0.1"})
    front.call("PATCH", "/v1/people/3", {"handle": "rosa-3"})
    for number in range(90_001, 90_007):
        body = "<p>The leaves of <b>all</b> plants.</p>"
        front.ask(number, asker=7, body=body, url=f"https://site.example/q/{number}")
    body = {"id": 95_001, "question": 90_001, "user": 3, "at": front.clock.now / 1000}
    front.call("POST", "/v1/answers", body)
    front.service.apply_all()
    bound = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(front.client.app, log_config=None, lifespan="off", access_log=False)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield front, address_of(bound)
    finally:
        server.should_exit = True
        thread.join()


class Visitor:
    """Somebody with a browser."""

    def __init__(self, page: Browser, url: str) -> None:
        self.page, self.url = page, url

    def open(self, path: str, width: int = 1200, scheme: str = "light") -> None:
        self.page.open(f"{self.url}/{path}", width, scheme)

    def leads_on(self, script: str) -> str:
        """Do something that loads another page; its address."""
        self.page.call("Page.bringToFront")
        self.page._loaded = False
        self.page.evaluate(f"{script}; 1")
        while not self.page._loaded:
            self.page._receive()
        return str(self.page.evaluate("location.pathname + location.search"))

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, text=key)

    def see(self, expression: str) -> Any:
        return self.page.evaluate(expression)


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")
def test_a_moderator_at_work(served: tuple[Front, str], tmp_path: Path) -> None:
    front, url = served
    with browser(tmp_path / "profile") as page:
        visitor = Visitor(page, url)
        visitor.open("inbox")
        assert visitor.see("location.pathname") == "/login"
        wrong = "document.querySelector('#token').value = 'no'; document.forms[0].submit()"
        visitor.leads_on(wrong)
        assert "not known" in visitor.see("document.querySelector('[role=alert]').textContent")
        token = json.dumps(front.tokens["admin"])
        right = f"document.querySelector('#token').value = {token}; document.forms[0].submit()"
        assert visitor.leads_on(right) == "/inbox"
        page.messages.clear()  # what Chromium says about a refused login

        # Accept by keyboard, decline by a press, reassign in a form.
        visitor.key("j")
        assert visitor.see("document.activeElement.closest('[data-card]') !== null")
        details = "document.activeElement.closest('[data-card]').querySelector('[data-details]')"
        first = visitor.see(f"{details}.getAttribute('href')").rpartition("/")[2]
        page._loaded = False
        visitor.key("a")
        while not page._loaded:
            page._receive()
        assert visitor.see("location.search") == "?said=asked"
        press = "document.querySelector('[data-do=declined]').click()"
        assert visitor.leads_on(press) == "/inbox?said=declined"
        assert "Declined." in visitor.see("document.querySelector('[role=status]').textContent")
        visitor.open("inbox/4")
        other = "document.querySelector('#person').value = 'nobody at all'; "
        other += "document.querySelector('[value=reassigned]').click()"
        assert visitor.leads_on(other) == "/inbox/4/feedback"
        assert visitor.see("document.querySelector('#person').value") == "nobody at all"
        assert "nobody called" in visitor.see("document.querySelector('[role=alert]').textContent")
        page.messages.clear()  # what Chromium says about the status
        type_name = "const i = document.querySelector('#person'); i.value = 'rosa'; "
        type_name += "i.dispatchEvent(new Event('input'))"
        visitor.see(f"{type_name}; 1")
        wait = "new Promise((done) => setTimeout(() => done("
        wait += "document.querySelector('#people option')?.value), 600))"
        assert visitor.see(wait) == "rosa-3"
        other = "document.querySelector('#person').value = 'rosa-3'; "
        other += "document.querySelector('[value=reassigned]').click()"
        assert visitor.leads_on(other) == "/inbox?said=reassigned"
        states = {row["id"]: row["state"] for row in front.suggestions()}
        assert states[int(first)] == "accepted"
        assert sorted(states.values()).count("declined") == 1
        assert states[4] == "reassigned"

        # Route, opt out.
        visitor.open("try")
        ask = "document.querySelector('#title').value = 'tomato leaves curl'; "
        ask += "document.querySelector('form.stack button').click()"
        visitor.leads_on(ask)
        assert visitor.see("document.querySelectorAll('.person li').length") > 2
        visitor.open("people/3")
        out = "document.querySelector('[name=opted_out]').checked = true; "
        out += "document.querySelector('form.stack button').click()"
        assert visitor.leads_on(out) == "/people/3?said=saved"
        assert front.service.engine.directory[3].opted_out

        # Switch the mode; opt out by link, without a login.
        visitor.open("settings")
        switch = "document.querySelector('[value=automatic]').checked = true; "
        switch += "document.querySelector('form.stack button').click()"
        assert visitor.leads_on(switch) == "/settings?said=mode"
        assert front.service.engine.mode == "automatic"
        link = front.service.suggester.opt_out_link(5).removeprefix("http://127.0.0.1/")
        visitor.open(link)
        assert visitor.leads_on("document.querySelector('button.main').click()") == f"/{link}"
        assert front.service.engine.directory[5].opted_out

        # Edited, closed, deleted: the card follows.
        for path, more in (
            ("edits", {"title": "Another title"}),
            ("closures", {"state": "closed"}),
        ):
            front.clock.now += 1000
            change = {"question": 90_006, "at": front.clock.now / 1000, **more}
            assert front.call("POST", f"/v1/{path}", change).status_code == 202
            front.service.apply_all()
            visitor.open("inbox?show=all")
            assert "Another title" in visitor.see("document.querySelector('h2').textContent")
        assert visitor.see("document.querySelector('.chip').textContent") == "closed"
        gone = {"question": 90_006, "at": front.clock.now / 1000, "state": "deleted"}
        assert front.call("POST", "/v1/closures", gone).status_code == 202
        front.service.apply_all()
        visitor.open("inbox?show=all")
        assert "Another title" not in visitor.see("document.body.textContent")

        # Search by a part of the name.
        visitor.open("people")
        find = "document.querySelector('[name=find]').value = 'ROSA'; "
        find += "document.querySelector('form[action=\\'/people\\'] button').click()"
        assert visitor.leads_on(find) == "/people?find=ROSA"
        assert "rosa-3" in visitor.see("document.querySelector('tbody').textContent")

        # Every page at two widths, light and dark.
        for path in (*PAGES, link):
            for width, scheme in LOOKS:
                visitor.open(path, width, scheme)
                room = "document.documentElement.scrollWidth <= innerWidth"
                assert visitor.see(room), f"{path} is wider than {width}"
                worst = visitor.see(CONTRAST)
                assert worst[0][0] >= 4.5, f"{path}, {scheme}: {worst[:3]}"
                assert visitor.see(UNNAMED) == [], path
                assert visitor.see("document.querySelectorAll('h1').length") == 1
                if SHOTS:
                    name = re.sub(r"\W", "-", path)[:24]
                    page.screenshot(Path(SHOTS) / f"{name}-{width}-{scheme}.png")
        visitor.open("inbox")
        assert visitor.leads_on("document.querySelector('header form button').click()") == "/login"
        # Chromium reports the page that does not exist, and has recommendations for passwords.
        known = ("recommendation", "status of 404")
        strange = [text for text in page.messages if not any(word in text for word in known)]
        assert strange == []


def test_charts_have_a_name_and_titles_are_escaped(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001, title="<b>bold</b>")
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    assert "&lt;b&gt;bold" in front.client.get("/inbox").text
    assert 'role="img"' in front.client.get("/quality").text
    assert front.client.get("/inbox/999").status_code == 404
    assert front.client.get("/people/999999").status_code == 404
    assert front.client.get("/static/secret").status_code == 404
    assert front.client.get("/").headers["location"] == "/inbox"
    found = front.client.get("/people?find=3").text
    assert 'href="/people/3"' in found


def test_an_administrator_at_work(make_front: Make) -> None:
    front = make_front()
    front.ask(90_001)
    front.client.post("/login", content=f"token={front.tokens['admin']}")
    page = front.client.get("/settings").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf

    def send(path: str, more: str = "") -> Any:
        return front.client.post(path, content=f"csrf={csrf[1]}{more}")

    made = send("/settings/tokens", "&name=new&scope=read").text
    secret = re.search(r"<code>(atp_[^<]+)</code>", made)
    assert secret
    front.tokens["new"] = secret[1]
    assert front.call("GET", "/v1/people/3", scope="new").status_code == 200
    number = re.findall(r"/settings/tokens/(\d+)/revoke", made)[-1]
    assert send(f"/settings/tokens/{number}/revoke").status_code == 303
    assert front.call("GET", "/v1/people/3", scope="new").status_code == 401
    assert send("/settings/tokens", "&name=&scope=read").status_code == 422
    assert send("/settings/tokens", "&name=x&scope=all").status_code == 422
    assert send("/people/3/forget").headers["location"] == "/people?said=forgotten"
    assert front.call("GET", "/v1/people/3").status_code == 404
    assert send("/people/5", "&capacity=x").status_code == 422
    assert send("/people/5", "&hours=late").status_code == 422
    assert send("/logout").status_code == 303
    assert front.client.get("/settings").status_code == 303
