from __future__ import annotations

from threading import Thread

from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.timeline.memo import Memo, Shelf

NUMBERS: Shelf[int] = Shelf("numbers", keep=3)
WORDS: Shelf[str] = Shelf("words", keep=1)


@given(st.lists(st.integers(0, 5), max_size=40))
def test_keeps_the_last_used_and_no_more(asked: list[int]) -> None:
    memo, made = Memo(), []
    for number in asked:
        kept = list(dict.fromkeys(reversed(asked[: len(made)])))[:3]

        def make(number: int = number, kept: list[int] = kept) -> int:
            assert number not in kept
            return number * 10

        assert memo.get(NUMBERS, number, make) == number * 10
        made.append(number)
    assert len(memo) == min(3, len(set(asked)))


def test_shelves_do_not_get_in_each_others_way() -> None:
    memo = Memo()
    assert memo.get(NUMBERS, "key", lambda: 1) == 1
    assert memo.get(WORDS, "key", lambda: "one") == "one"
    assert memo.get(NUMBERS, "key", lambda: 2) == 1
    memo.clear()
    assert memo.get(NUMBERS, "key", lambda: 3) == 3


def test_objects_stand_for_themselves_and_stay_alive() -> None:
    memo = Memo()
    for number in range(50):  # ids of objects that are gone would be used again
        assert memo.get(NUMBERS, object(), lambda number=number: number) == number  # type: ignore[misc]


def test_threads_may_share_it() -> None:
    memo, wrong = Memo(), []

    def work() -> None:
        asked = [number % 7 for number in range(2000)]
        found = [memo.get(NUMBERS, number, lambda number=number: number) for number in asked]  # type: ignore[misc]
        wrong.extend(a for a, b in zip(asked, found, strict=True) if a != b)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(memo) <= 3
