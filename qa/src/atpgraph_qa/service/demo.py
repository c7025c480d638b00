"""A simulated community with live traffic, so that a visitor sees the service at work."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from atpgraph.util.random import generator
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.people import Person
from atpgraph_qa.data.ingest import ingest
from atpgraph_qa.data.site import DAY_MS, Site
from atpgraph_qa.service.engine import now_ms
from atpgraph_qa.service.events import Arrival, Event
from atpgraph_qa.service.service import Service
from atpgraph_qa.simulation.community import Community, simulate_community
from atpgraph_qa.simulation.dump import write_dump
from atpgraph_qa.simulation.texts import Texts, make_topics, write_texts
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

USERS, QUESTIONS, TOPICS, YEARS = 120, 1000, 5, 1.5
PAST_DAYS, PAST = 14, 160  # questions that came in before the visitor
_FIRST_USER = 2  # as in the dumps of simulated communities
_FIRST_ID = 1_000_000  # of posts that are not in the dump
_HOUR_MS = 3_600_000


@dataclass(frozen=True, eq=False)
class Play:
    """A community of which a part is history and the rest, from question `first`, comes live."""

    community: Community
    texts: Texts
    first: int

    @classmethod
    def make(cls, end_ms: int, random_state: int = 0) -> Play:
        """Return the community with its history ending at a moment."""
        made = simulate_community(
            USERS, QUESTIONS, n_topics=TOPICS, years=YEARS, random_state=random_state
        )
        first, rng = QUESTIONS * 3 // 5, generator(random_state)
        texts = write_texts(rng, make_topics(TOPICS), made.topic, made.answer_question)
        last = max(made.asked_ms[first - 1], made.answered_ms[made.answer_question < first].max())
        names = ("registered_ms", "asked_ms", "answered_ms", "bounty_ms")
        moved = {name: getattr(made, name) + end_ms - int(last) for name in names}
        return cls(replace(made, **moved), texts, first)

    def history(self) -> Community:
        """Return the part that is history."""
        whole, n = self.community, self.first
        kept = np.flatnonzero(whole.answer_question < n)
        place = np.full(len(whole.answerer) + 1, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        by_question = ("asker", "topic", "asked_ms", "difficulty", "bounty", "bounty_ms")
        by_answer = ("answer_question", "answerer", "answered_ms", "answer_score")
        return replace(
            whole,
            accepted=place[whole.accepted[:n]],
            **{name: getattr(whole, name)[:n] for name in by_question},
            **{name: getattr(whole, name)[kept] for name in by_answer},
        )

    def live(self) -> Iterator[list[Event]]:
        """Yield a question, its answers and the acceptance, again and again under new ids.

        Times are 0; whoever plays them says when.
        """
        whole, texts = self.community, self.texts
        for base in itertools.count(_FIRST_ID, _FIRST_ID // 2):
            for question in range(self.first, whole.n_questions):
                tags, asker = texts.tags[question], int(whole.asker[question]) + _FIRST_USER
                title, body = texts.titles[question], texts.bodies[question]
                events: list[Event] = [Asked(base + question, title, body, tags, asker)]
                for answer in np.flatnonzero(whole.answer_question == question).tolist():
                    number, user = base + 100_000 + answer, int(whole.answerer[answer])
                    events.append(Answered(number, base + question, user + _FIRST_USER))
                    if whole.accepted[question] == answer:
                        events.append(Accepted(base + question, number))
                yield events


def prepare(folder: Path) -> tuple[Path, Play]:
    """Return a trained model of the demonstration community, made at the first time."""
    play = Play.make(now_ms() - (PAST_DAYS + 1) * DAY_MS)
    model = folder / "model"
    if not model.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        write_dump(play.history(), folder / "dump", random_state=0)
        ingest(folder / "dump", folder / "site")
        Advisor.fit(Site(folder / "site")).save(model)
    return model, play


def fill_past(service: Service, play: Play) -> None:
    """Play two weeks of questions, as if the service had been there."""
    now, engine = service.clock(), service.engine
    if engine.seq:
        return
    dated: list[Event] = []
    for number, events in enumerate(itertools.islice(play.live(), PAST)):
        at = now - PAST_DAYS * DAY_MS + number * PAST_DAYS * DAY_MS // PAST
        dated += [replace(e, at_ms=at + 2 * turn * _HOUR_MS) for turn, e in enumerate(events)]
    real = engine.clock
    try:
        for event in sorted(dated, key=lambda event: event.at_ms):
            if event.at_ms < now:
                engine.clock = lambda at=event.at_ms: at  # type: ignore[misc]
                engine.append([Arrival.of(event)])
                engine.apply()
    finally:
        engine.clock = real
    for user in range(_FIRST_USER, _FIRST_USER + USERS):
        engine.save_person(Person(user, handle=f"user{user}"))


class Traffic(threading.Thread):
    """Plays the rest of the community; what was played before the last stop is over at once."""

    def __init__(self, service: Service, play: Play, pace_s: float) -> None:
        super().__init__(name="atp-demo", daemon=True)
        self.service, self.pace_s = service, pace_s
        self.questions = itertools.islice(play.live(), PAST, None)
        self.ended = threading.Event()

    def run(self) -> None:
        """Play until stopped."""
        while not self.ended.is_set():
            self.play(next(self.questions))

    def play(self, events: list[Event]) -> bool:
        """Play a question and what follows; return False if that was played before."""
        for event in events:
            made = Arrival.of(replace(event, at_ms=self.service.clock()))
            if self.service.engine.append([made]) == [None] and event is events[0]:
                return False
            if self.ended.wait(self.pace_s):
                break
        return True
