from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.timeline.memo import Memo


@given(st.lists(st.integers(0, 5), max_size=40))
def test_keeps_the_last_used_and_no_more(asked: list[int]) -> None:
    memo, made = Memo(), list[int]()
    for number in asked:
        kept = list(dict.fromkeys(reversed(asked[: len(made)])))[:3]

        def make(number: int = number, kept: list[int] = kept) -> int:
            assert number not in kept
            return number * 10

        assert memo.get("numbers", number, make, keep=3) == number * 10
        made.append(number)
    assert len(memo) == min(3, len(set(asked)))


def test_kinds_do_not_get_in_each_others_way() -> None:
    memo = Memo()
    assert memo.get("numbers", "key", lambda: 1) == 1
    assert memo.get("words", "key", lambda: "one") == "one"
    assert memo.get("numbers", "key", lambda: 2) == 1
    memo.clear()
    assert memo.get("numbers", "key", lambda: 3) == 3


def test_objects_stand_for_themselves_and_stay_alive() -> None:
    memo = Memo()
    for number in range(50):  # ids of objects that are gone would be used again
        assert memo.get("numbers", object(), lambda number=number: number) == number  # type: ignore[misc]


def test_threads_may_share_it() -> None:
    memo, wrong = Memo(), list[int]()

    def work() -> None:
        asked = [number % 7 for number in range(2000)]
        found = [memo.get("numbers", number, lambda number=number: number) for number in asked]  # type: ignore[misc]
        wrong.extend(a for a, b in zip(asked, found, strict=True) if a != b)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(memo) <= 2


def test_threads_that_ask_for_the_same_wait_for_the_first() -> None:
    memo, started, go, made = Memo(), Event(), Event(), list[int]()

    def make() -> int:
        made.append(1)
        started.set()
        assert go.wait(60)
        return 7

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(memo.get, "numbers", "week", make)
        assert started.wait(60)
        second = threads.submit(memo.get, "numbers", "week", make)
        go.set()
        assert (first.result(60), second.result(60), len(made)) == (7, 7, 1)


def test_an_error_is_not_kept() -> None:
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get("numbers", "key", lambda: 1 // 0)
    assert memo.get("numbers", "key", lambda: 3) == 3
