"""Who was asked when: counted as it goes, against counting anew."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.service.store.asks import KEPT_MS, WEEK_MS, Ask, AskHistory, Tally

ASKS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5)), max_size=40)


@given(ASKS, ASKS, st.integers(0, 500), st.integers(0, 5))
def test_a_tally_is_a_count_of_the_window(
    first: list[tuple[int, int]], second: list[tuple[int, int]], now: int, gone: int
) -> None:
    tally = Tally(window_ms=100)
    tally.add(first)
    people, times = tally.at(now)
    before = people.tolist(), times.tolist()
    expected = sorted(Counter(who for at, who in first if at > now - 100).items())
    assert list(zip(*before, strict=True)) == expected
    tally.add(second)
    tally.drop(gone)
    later = now + 50
    again = [part.tolist() for part in tally.at(later)]
    asked = [who for at, who in [*first, *second] if at > later - 100 and who != gone]
    assert list(zip(*again, strict=True)) == sorted(Counter(asked).items())
    assert (people.tolist(), times.tolist()) == before  # a reader keeps what it was given


def test_a_book_drops_what_is_old_and_who_is_gone() -> None:
    day = WEEK_MS // 7
    book = AskHistory(Ask(who, at * day, "suggestion", shadow=at < 3) for at, who in
                   [(1, 7), (2, 8), (3, 7), (60, 9)])  # fmt: skip
    assert book.everybody() == [7, 8, 9]
    assert [part.tolist() for part in book.week(60 * day)] == [[9], [1]]
    assert book.last(7, shadow=True) == book.last(7, shadow=False) == 3 * day
    assert book.last(8, shadow=True) == 2 * day
    assert book.last(8, shadow=False) == 0
    book.sweep(2 * day + KEPT_MS)
    assert book.everybody() == [7, 9]
    assert book.times(7, 4 * day, 7.0, shadow=True) == 1
    book.drop(9)
    assert book.everybody() == [7]
    assert len(book.week(60 * day)[0]) == 0
    book.sweep(3 * day + KEPT_MS)
    assert book.everybody() == []
