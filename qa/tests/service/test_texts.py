"""Small functions behind messages, pages and limits, each on a few values."""

from __future__ import annotations

import time

import pytest

from atpgraph_qa.service.adapters.base import plain_markdown, plain_text, sign
from atpgraph_qa.service.outbox import is_public
from atpgraph_qa.service.render import count, percent, place, when
from atpgraph_qa.service.tokens import Buckets
from atpgraph_qa.text import store


def test_figures_as_people_read_them() -> None:
    shown = '<time datetime="2026-09-21T14:13:20+00:00">21 Sep 2026, 16:13 CEST</time>'
    assert when(1_790_000_000_000, "Europe/Vienna") == shown
    assert [percent(value) for value in (0.123, 0.004, 0.0, None)] == ["12%", "0.4%", "0%", "–"]
    assert (place(0.4), place(None)) == ("2.5", "–")
    assert [count(1, "answer"), count(2, "answer")] == ["1 answer", "2 answers"]
    assert count(0, "person", "people") == "0 people"


def test_texts_without_markup() -> None:
    nasty = "[badge](https://evil.example) *now*, @all"
    assert plain_markdown(nasty) == r"\[badge\]\(https: //evil.example\) \*now\*, @ all"
    assert plain_text("<p>In the <b>greenhouse</b> &amp; out.</p>") == "In the greenhouse & out."


@pytest.mark.parametrize("part", ["<script ", "<br ", "<", "< ", "<!--", '<a href="', "</script>"])
def test_what_only_looks_like_markup_takes_no_longer(part: str) -> None:
    text = (part * 100_000)[:100_000]  # as a stranger may post it: seconds, if quadratic
    started = time.process_time()
    for read in (plain_text, store.plain_text):
        read(text)
    assert time.process_time() - started < 0.6


def test_a_signature_is_that_of_the_standard() -> None:
    signed = sign(["whsec_MDEyMw=="], "msg_1", 1, b"{}")["webhook-signature"]
    assert signed == "v1,Av0HX1gzw7RddM0UFumqA1evFQj7px3Js1XtQV6kx0E="


def test_addresses_that_are_public() -> None:
    addresses = ("93.184.216.34", "10.0.0.1", "127.0.0.1", "::ffff:127.0.0.1")
    assert [is_public(address) for address in addresses] == [True, False, False, False]


def test_a_bucket_is_refilled() -> None:
    now = iter([0.0, 0.0, 0.0, 2.0])
    buckets = Buckets(rate=0.5, burst=2, clock=lambda: next(now))
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 2, 0]
