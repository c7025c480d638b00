"""Who was asked when: a table, and the same in memory, which every question looks at."""

from __future__ import annotations

import heapq
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, insert, select

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.store.tables import asks

WEEK_MS = 7 * DAY_MS
KEPT_MS = 8 * WEEK_MS


@dataclass(frozen=True)
class Ask:
    """Somebody was asked something: by a suggestion, by hand, or outside of the service."""

    person: int
    at_ms: int
    kind: str
    shadow: bool
    suggestion: int | None = None


class Tally:
    """How often everybody was asked in a window of time that moves on.

    An ask costs two copies of a number for each person asked, and reading costs nothing: a question
    takes as long after ten thousand asks as after none.

    Examples
    --------
    >>> tally = Tally(window_ms=100)
    >>> tally.add([(0, 7), (0, 3), (60, 7)])
    >>> [part.tolist() for part in tally.at(99)], [part.tolist() for part in tally.at(100)]
    ([[3, 7], [1, 2]], [[7], [1]])
    """

    def __init__(self, window_ms: int) -> None:
        self.window_ms = window_ms
        self._due: list[tuple[int, int]] = []  # moments and people, the earliest first
        nobody = np.zeros(0, dtype=np.int64)
        self._counts = nobody, nobody  # replaced as a whole: readers go on with the old one
        self._lock = threading.Lock()

    def add(self, asked: Sequence[tuple[int, int]]) -> None:
        """Count moments at which people were asked."""
        with self._lock:
            for entry in asked:
                heapq.heappush(self._due, entry)
            self._change([person for _, person in asked], 1)

    def at(self, now_ms: int) -> tuple[Int64Array, Int64Array]:
        """Ids of those who were asked in the window that ends now, ascending, and how often."""
        with self._lock:
            past = []
            while self._due and self._due[0][0] <= now_ms - self.window_ms:
                past.append(heapq.heappop(self._due)[1])
            self._change(past, -1)
            return self._counts

    def drop(self, person: int) -> None:
        """Forget somebody."""
        with self._lock:
            self._change([who for _, who in self._due if who == person], -1)
            self._due = [(at_ms, who) for at_ms, who in self._due if who != person]
            heapq.heapify(self._due)

    def _change(self, people: Sequence[int], by: int) -> None:
        if not people:
            return
        known, counts = self._counts
        changed, times = np.unique(np.array(people, dtype=np.int64), return_counts=True)
        place = np.searchsorted(known, changed)
        new = np.append(known, -1)[place] != changed  # ids are not negative
        known, counts = np.insert(known, place[new], changed[new]), np.insert(counts, place[new], 0)
        counts[np.searchsorted(known, changed)] += by * times
        self._counts = known[counts > 0], counts[counts > 0]


class AskHistory:
    """Asks of the last weeks, in memory as in the table.

    Shadow asks count only while the service is in shadow mode: its report should show what would
    have happened, with the caps that would have held.
    """

    def __init__(self, known: Iterable[Ask] = ()) -> None:
        self._asks: dict[int, list[Ask]] = defaultdict(list)
        self._order: deque[Ask] = deque()  # as they came, which is by date
        self._week = Tally(WEEK_MS)
        self._lock = threading.Lock()
        self.add(known)

    @classmethod
    def load(cls, connection: Connection, now_ms: int) -> AskHistory:
        """From the table."""
        query = select(asks).where(asks.c.at_ms > now_ms - KEPT_MS).order_by(asks.c.at_ms)
        return cls(
            Ask(row.person, row.at_ms, row.kind, bool(row.shadow), row.suggestion)
            for row in connection.execute(query)
        )

    def add(self, new: Iterable[Ask]) -> None:
        """Remember asks."""
        added = list(new)
        with self._lock:
            for ask in added:
                self._asks[ask.person].append(ask)
            self._order.extend(added)
        self._week.add([(ask.at_ms, ask.person) for ask in added])

    def times(self, person: int, now_ms: int, days: float, *, shadow: bool) -> int:
        """How often somebody was asked in the last days."""
        since = now_ms - days * DAY_MS
        found = self._asks.get(person, ())
        return sum(1 for ask in found if ask.at_ms > since and (shadow or not ask.shadow))

    def last(self, person: int, *, shadow: bool) -> int:
        """When somebody was last asked, 0 for never (or too long ago to matter)."""
        found = self._asks.get(person, ())
        return max((ask.at_ms for ask in found if shadow or not ask.shadow), default=0)

    def week(self, now_ms: int) -> tuple[Int64Array, Int64Array]:
        """Ids of those asked in the last week, ascending, and how often; shadow asks count."""
        return self._week.at(now_ms)

    def everybody(self) -> list[int]:
        """Ids of those asked in the last eight weeks, ascending."""
        with self._lock:
            return sorted(self._asks)

    def drop(self, person: int) -> None:
        """Forget somebody."""
        with self._lock:
            self._asks.pop(person, None)
            self._order = deque(ask for ask in self._order if ask.person != person)
        self._week.drop(person)

    def sweep(self, now_ms: int) -> None:
        """Drop what no rule looks at any more."""
        with self._lock:
            while self._order and self._order[0].at_ms <= now_ms - KEPT_MS:
                old = self._order.popleft()
                self._asks[old.person].remove(old)
                if not self._asks[old.person]:
                    self._asks.pop(old.person)


def save_asks(connection: Connection, new: Iterable[Ask]) -> None:
    """Append to the table."""
    rows = [
        {
            "person": ask.person, "suggestion": ask.suggestion, "at_ms": ask.at_ms,
            "kind": ask.kind, "shadow": ask.shadow,
        }
        for ask in new
    ]  # fmt: skip
    if rows:
        connection.execute(insert(asks), rows)
