"""A simulated community with live traffic, which shows the service at work."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from atpgraph.util.random import generator
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.policies import HOUR_MS
from atpgraph_qa.data.ingest import ingest
from atpgraph_qa.data.site import DAY_MS, Site
from atpgraph_qa.service.engine import now_ms
from atpgraph_qa.service.events import Arrival, Event
from atpgraph_qa.service.service import Service
from atpgraph_qa.simulation.community import Community, simulate_community
from atpgraph_qa.simulation.dump import write_dump
from atpgraph_qa.simulation.texts import make_topics, write_texts
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

USERS, QUESTIONS, TOPICS, YEARS = 120, 600, 5, 1.0
PAST_DAYS, PAST = 14, 160  # days and questions that `fill_past` plays
_FIRST_USER = 2  # as in the dumps of simulated communities
_FIRST_ID = 1_000_000  # of posts that are not in the dump


def make_community() -> Community:
    """Return a community whose last post is older than the questions that `fill_past` plays."""
    made = simulate_community(USERS, QUESTIONS, n_topics=TOPICS, years=YEARS, random_state=0)
    later = now_ms() - (PAST_DAYS + 1) * DAY_MS - int(max(made.asked_ms[-1], *made.answered_ms))
    names = ("registered_ms", "asked_ms", "answered_ms", "bounty_ms")
    return replace(made, **{name: getattr(made, name) + later for name in names})


def train(folder: Path, community: Community) -> Path:
    """Return the model of a community; train it the first time."""
    model = folder / "model"
    if not model.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        write_dump(community, folder / "dump", random_state=0)
        ingest(folder / "dump", folder / "site")
        Advisor.fit(Site(folder / "site")).save(model)
    return model


def live(community: Community) -> Iterator[list[Event]]:
    """Yield questions with their events, endlessly: the same people, new texts, times of 0."""
    for turn in itertools.count(1):
        base, rng = turn * _FIRST_ID, generator(turn)
        texts = write_texts(rng, make_topics(TOPICS), community.topic, community.answer_question)
        for question in rng.permutation(community.n_questions).tolist():
            tags, asker = texts.tags[question], int(community.asker[question]) + _FIRST_USER
            title, body = texts.titles[question], texts.bodies[question]
            events: list[Event] = [Asked(base + question, title, body, tags, asker)]
            for answer in np.flatnonzero(community.answer_question == question).tolist():
                number, user = base + _FIRST_ID // 2 + answer, int(community.answerer[answer])
                events.append(Answered(number, base + question, user + _FIRST_USER))
                if community.accepted[question] == answer:
                    events.append(Accepted(base + question, number))
            yield events


def fill_past(service: Service, community: Community) -> None:
    """Replay two weeks of questions, as if the service had been running."""
    now, engine = service.clock(), service.engine
    if engine.seq:
        return
    dated: list[Event] = []
    for number, events in enumerate(itertools.islice(live(community), PAST)):
        at = now - PAST_DAYS * DAY_MS + number * PAST_DAYS * DAY_MS // PAST
        dated += [replace(e, at_ms=at + 2 * turn * HOUR_MS) for turn, e in enumerate(events)]
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
        engine.change_person(user, handle=f"user{user}")


def play(
    service: Service, questions: Iterable[list[Event]], pace_s: float, ended: threading.Event
) -> None:
    """Play questions until `ended` is set; skip those that were played before the last stop."""
    for events in questions:
        for event in events:
            made = Arrival.of(replace(event, at_ms=service.clock()))
            if service.engine.append([made]) == [None] and event is events[0]:
                break
            if ended.wait(pace_s):
                return
