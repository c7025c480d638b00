"""A simulated community with live traffic, so that a visitor sees the service at work."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2 as httpx
import numpy as np

from atpgraph.util.random import generator
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.people import Person
from atpgraph_qa.data.ingest import ingest
from atpgraph_qa.data.site import DAY_MS, Site
from atpgraph_qa.service.engine import now_ms
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store.events import Arrival, Event, name_of
from atpgraph_qa.simulation.community import Community, simulate_community
from atpgraph_qa.simulation.dump import write_dump
from atpgraph_qa.simulation.texts import Texts, make_topics, write_texts
from atpgraph_qa.timeline.events import Accepted, Answered, Asked

LOG = logging.getLogger("atpgraph.serve")
USERS, QUESTIONS, TOPICS, YEARS = 120, 1000, 5, 1.5
PAST_DAYS, PAST = 14, 160  # questions that came in before the visitor
_FIRST_USER = 2  # as in the dumps of simulated communities
_FIRST_ID = 1_000_000  # of posts that are not in the dump
_HOUR_MS = 3_600_000


@dataclass(frozen=True, eq=False)
class Play:
    """A community of which a part is history and the rest comes in live."""

    community: Community
    texts: Texts
    first: int  # of the questions that are not history

    @classmethod
    def make(cls, end_ms: int, random_state: int = 0) -> Play:
        """The community with its history ending at a moment."""
        made = simulate_community(
            USERS, QUESTIONS, n_topics=TOPICS, years=YEARS, random_state=random_state
        )
        first = QUESTIONS * 3 // 5
        rng = generator(random_state)
        texts = write_texts(rng, make_topics(TOPICS), made.topic, made.answer_question)
        last = max(made.asked_ms[first - 1], made.answered_ms[made.answer_question < first].max())
        shift = end_ms - int(last)
        names = ("registered_ms", "asked_ms", "answered_ms", "bounty_ms")
        return cls(replace(made, **{n: getattr(made, n) + shift for n in names}), texts, first)

    def history(self) -> Community:
        """The part that is history."""
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

    def live(self, round_number: int = 0) -> Iterator[tuple[Asked, list[Answered], int]]:
        """Questions that come in, their answers, and the place of the accepted one, −1 for none.

        Times are 0; whoever plays them says when.
        """
        whole = self.community
        base = _FIRST_ID + round_number * (_FIRST_ID // 2)
        for question in range(self.first, whole.n_questions):
            answers = np.flatnonzero(whole.answer_question == question).tolist()
            asked = Asked(
                base + question, self.texts.titles[question], self.texts.bodies[question],
                tuple(self.texts.tags[question]), int(whole.asker[question]) + _FIRST_USER, 0,
            )  # fmt: skip
            given = [
                Answered(
                    base + 100_000 + answer, asked.id, int(whole.answerer[answer]) + _FIRST_USER, 0
                )
                for answer in answers
            ]
            accepted = int(whole.accepted[question])
            yield asked, given, answers.index(accepted) if accepted in answers else -1


def prepare(folder: Path) -> tuple[Path, Play]:
    """A trained model of the demonstration community; made at the first time."""
    play = Play.make(now_ms() - (PAST_DAYS + 1) * DAY_MS)
    model = folder / "model"
    if not model.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        write_dump(play.history(), folder / "dump", random_state=0)
        ingest(folder / "dump", folder / "site")
        Advisor.fit(Site(folder / "site")).save(model)
    return model, play


def fill_past(service: Service, play: Play) -> None:
    """Two weeks of questions, as if the service had been there, one moment after another."""
    now, engine = service.clock(), service.engine
    if engine.seq:
        return
    moments: list[tuple[int, Event]] = []
    for number, (asked, given, best) in enumerate(itertools.islice(play.live(), PAST)):
        at = now - PAST_DAYS * DAY_MS + number * PAST_DAYS * DAY_MS // PAST
        moments.append((at, replace(asked, at_ms=at)))
        for turn, answer in enumerate(given, 1):
            then = at + turn * 2 * _HOUR_MS
            if then < now:
                moments.append((then, replace(answer, at_ms=then)))
                if turn - 1 == best and then + _HOUR_MS < now:
                    seen = then + _HOUR_MS
                    moments.append((seen, Accepted(asked.id, answer.id, seen)))
    real = engine.clock
    try:
        for at, event in sorted(moments, key=lambda pair: pair[0]):
            engine.clock = lambda at=at: at  # type: ignore[misc]
            engine.append([Arrival(name_of(event), event)])
            engine.apply()
    finally:
        engine.clock = real
    for user in range(_FIRST_USER, _FIRST_USER + USERS):
        service.save_person(Person(user, handle=f"user{user}"))


class Traffic(threading.Thread):
    """Plays the rest of the community through the API, as a site would."""

    def __init__(
        self, url: str, token: str, play: Play, pace_s: float, clock: Callable[[], int] = now_ms
    ) -> None:
        super().__init__(name="atp-demo", daemon=True)
        self.client = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {token}"}, trust_env=False, timeout=30
        )
        self.play, self.pace_s, self.clock = play, pace_s, clock
        self.ended = threading.Event()

    def run(self) -> None:
        """Send until told to end."""
        questions = itertools.chain(
            itertools.islice(self.play.live(), PAST, None),
            itertools.chain.from_iterable(self.play.live(n) for n in itertools.count(1)),
        )
        while not self.ended.is_set():
            try:
                new = self._play(*next(questions))
            except httpx.HTTPError:
                new = True
            if new:  # what was played before the last stop is over at once
                self.ended.wait(self.pace_s)

    def _play(self, asked: Asked, given: list[Answered], best: int) -> bool:
        """A question and its answers; False if they were played before."""
        if self._post("questions", id=asked.id, title=asked.title, body=asked.body,
                      tags=list(asked.tags), asker=asked.asker):  # fmt: skip
            return False
        for turn, answer in enumerate(given):
            if self.ended.wait(self.pace_s / 2):
                break
            self._post("answers", id=answer.id, question=asked.id, user=answer.user)
            if turn == best:
                self._post("acceptances", question=asked.id, answer=answer.id)
        return True

    def _post(self, path: str, **body: object) -> bool:
        """Whether the service knew it."""
        answer = self.client.post(f"/v1/{path}", json={**body, "at": self.clock() / 1000})
        return answer.status_code == 202 and bool(answer.json()["duplicate"])
