"""Events one by one, in batches, or in a dump: the same suggestions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph_qa import (
    Accepted,
    Advisor,
    Answered,
    Asked,
    Event,
    Forgotten,
    Newcomer,
    Question,
    Site,
    Suggestions,
    Voted,
    ingest,
)
from atpgraph_qa.data.site import DAY_MS, QuestionTags
from atpgraph_qa.timeline.corpus import Corpus, words
from atpgraph_qa.timeline.history import Counts, History
from atpgraph_qa.timeline.live import observe
from atpgraph_qa.timeline.records import ACCEPTED, UP, Records
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    QuestionTable,
    VoteTable,
)
from qa.tests.conftest import SMALL, TEXT


@pytest.fixture(scope="module")
def cut_ms(site: Site) -> int:
    return int(site.questions.created_ms[len(site.questions) // 2])


@pytest.fixture(scope="module")
def early(dump: Path, site: Site, cut_ms: int, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site as a dump made at the cut shows it."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "dump").mkdir()
    cut = np.datetime64(cut_ms, "ms")
    day = str(np.datetime64(cut_ms // DAY_MS * DAY_MS, "ms"))[:10]
    taken = set()
    for line in (dump / "Votes.xml").read_text("utf-8").splitlines():
        date = re.search(r'CreationDate="([^"]*)"', line)
        if date and date[1][:10] < day and 'VoteTypeId="1"' in line:
            taken |= set(re.findall(r'PostId="(\d+)"', line))
    for file in dump.glob("*.xml"):
        kept = []
        for line in file.read_text("utf-8").splitlines():
            date = re.search(r'CreationDate="([^"]*)"', line)
            if date and file.name == "Votes.xml" and date[1][:10] >= day:
                continue
            if date and file.name == "Posts.xml" and np.datetime64(date[1]) >= cut:
                continue
            best = re.search(r'AcceptedAnswerId="(\d+)"', line)
            kept.append(line if not best or best[1] in taken else line.replace(best[0], ""))
        (folder / "dump" / file.name).write_text("\n".join(kept), "utf-8")
    ingest(folder / "dump", folder / "site")
    return Site(folder / "site")


@pytest.fixture(scope="module")
def events(site: Site, cut_ms: int) -> list[Event]:
    """What the early dump does not have, by date."""
    questions, answers = site.questions, site.answers
    made: list[Event] = []
    for place in np.flatnonzero(questions.created_ms >= cut_ms).tolist():
        title, body = site.titles([place])[0], site.question_bodies([place])[0]
        made.append(
            Asked(
                int(questions.id[place]),
                title,
                body,
                site.tags.of(place),
                int(questions.asker[place]),
                int(questions.created_ms[place]),
            )
        )
    for place in np.flatnonzero(answers.created_ms >= cut_ms).tolist():
        number, question = int(answers.id[place]), int(questions.id[answers.question[place]])
        moment = int(answers.created_ms[place])
        made.append(Answered(number, question, int(answers.owner[place]), moment))
    best = {
        int(answers.id[a]): int(questions.id[q])
        for q, a in enumerate(questions.accepted.tolist())
        if a >= 0
    }
    votes = site.read("votes", ["post_id", "type", "created_ms"])
    for post, kind, created in zip(
        *(votes[n].to_pylist() for n in votes.column_names), strict=True
    ):
        moment = created // DAY_MS * DAY_MS + DAY_MS - 1
        if moment < cut_ms // DAY_MS * DAY_MS or created // DAY_MS < cut_ms // DAY_MS:
            continue
        if kind == ACCEPTED and post in best:
            made.append(Accepted(best[post], post, moment))
        elif kind in (2, 3):
            made.append(Voted(post, 1 if kind == UP else -1, moment))
    return sorted(made, key=lambda event: event.at_ms)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def start(early: Site) -> Advisor:
    return Advisor.fit(early, text=TEXT, plan=SMALL, n_components=4)


@pytest.fixture(scope="module")
def whole(start: Advisor, site: Site) -> Advisor:
    """All events ingested at once, ranked by the same weights and levels."""
    history = History.latest(Records.of(site, start.history.records.text_model))
    return replace(start, history=history)


def asked(advisor: Advisor, site: Site, places: Sequence[int]) -> list[Suggestions]:
    return [
        advisor.ask(
            Question(
                site.titles([place])[0],
                site.question_bodies([place])[0],
                tuple(site.tags.of(place)),
                int(site.questions.asker[place]),
            )
        )
        for place in places
    ]


PLACES = (3, 100, 250, 400, 555, 599)


@pytest.fixture(scope="module")
def one_by_one(start: Advisor, events: list[Event]) -> Advisor:
    advisor = start
    for event in events:
        advisor = advisor.observe([event])
        assert advisor.ignored == ()
    return advisor


def test_one_by_one_is_as_ingested_at_once(
    one_by_one: Advisor, whole: Advisor, site: Site, events: list[Event]
) -> None:
    assert len(events) > 2000
    assert asked(one_by_one, site, PLACES) == asked(whole, site, PLACES)
    settled = History(one_by_one.history.records.settled(), one_by_one.history.now)
    for name in ("is_accepted", "best_answer", "answer_votes", "n_given", "n_won"):
        np.testing.assert_array_equal(getattr(settled, name), getattr(whole.history, name))


@pytest.mark.parametrize("size", [7, 400, 100_000])
def test_batches_are_as_ingested_at_once(
    start: Advisor, whole: Advisor, events: list[Event], site: Site, size: int
) -> None:
    advisor = start
    for first in range(0, len(events), size):
        batch = events[first : first + size]
        advisor = advisor.observe(reversed(batch) if size == 400 else batch)
        if size == 7 and first % 700 == 0:
            advisor.ask(Question("anything"))  # what is kept on the way must not matter
    assert asked(advisor, site, PLACES) == asked(whole, site, PLACES)


def test_the_advisor_before_stays_as_it_was(
    start: Advisor, events: list[Event], site: Site
) -> None:
    before = asked(start, site, PLACES)
    half = start.observe(events[:900])
    then = asked(half, site, PLACES)
    first, second = half.observe(events[900:1500]), half.observe(events[1500:1600])
    assert asked(half, site, PLACES) == then
    assert asked(start, site, PLACES) == before
    again = start.observe(events[:900])
    assert asked(again, site, PLACES) == then
    assert asked(again.observe(events[900:1500]), site, PLACES) == asked(first, site, PLACES)
    assert asked(second, site, PLACES) != asked(first, site, PLACES)


def test_saved_and_opened_after_events(one_by_one: Advisor, site: Site, tmp_path: Path) -> None:
    opened = Advisor.load(one_by_one.save(tmp_path / "model"))
    assert asked(opened, site, PLACES) == asked(one_by_one, site, PLACES)
    more = [Asked(10**7, "new", "", ["new tag"], 10**6, opened.history.now + 5)]
    more += [Answered(10**7 + 1, 10**7, 10**6 + 1, opened.history.now + 9)]
    both = [advisor.observe(more) for advisor in (opened, one_by_one)]
    assert asked(both[0], site, PLACES) == asked(both[1], site, PLACES)


def test_carried_counts_are_those_of_the_history(one_by_one: Advisor) -> None:
    history = one_by_one.history
    carried, plain = history.carried, Counts.of(History(history.records, history.now))
    assert carried is not None
    for name in ("is_accepted", "best_answer", "n_given", "n_won", "last_answer_ms"):
        np.testing.assert_array_equal(getattr(carried, name), getattr(plain, name))


# --- What is out of order, unknown, or there already ---------------------------------------


@pytest.fixture
def now(start: Advisor) -> int:
    return start.history.now


def why(advisor: Advisor) -> list[str]:
    return [reason for _, reason in advisor.ignored]


def test_duplicates_and_the_unknown_change_nothing(start: Advisor, now: int, site: Site) -> None:
    first = int(start.history.questions.id[0])
    new = [Asked(10**7, "beans", at_ms=now), Answered(10**7 + 1, 10**7, 3, now + 1)]
    advisor = start.observe(new)
    again = advisor.observe(
        [
            *new,
            Answered(10**7 + 2, 999_999, 3, now),
            Accepted(10**7, 999_999, now),
            Accepted(first, 10**7 + 1, now),
            Voted(999_999, 1, now),
            Forgotten(999_999),
        ]
    )
    assert sorted(why(again)) == [
        "nobody has that id",
        "the answer is already known",
        "the answer is to another question",
        "the answer is unknown",
        "the answer is unknown",
        "the question is already known",
        "the question is unknown",
    ]
    assert len(again.history.answers) == len(advisor.history.answers)
    assert again.history is advisor.history
    assert asked(again, site, PLACES) == asked(advisor, site, PLACES)
    once = advisor.observe([Accepted(10**7, 10**7 + 1, now + 2)])
    assert why(once) == []
    assert why(once.observe([Accepted(10**7, 10**7 + 1, now + 9)])) == [
        "the answer is already accepted"
    ]


def test_what_comes_late_is_taken_as_of_the_last_post(start: Advisor, now: int) -> None:
    late = start.observe([Asked(10**7, "beans", at_ms=5), Answered(10**7 + 1, 10**7, 3, 6)])
    assert late.history.questions.asked_ms[-1] == now - 1 == late.history.answers.given_ms[-1]
    assert late.history.now == now
    # In one call the order does not matter.
    pair = [Answered(10**7 + 1, 10**7, 3, now + 4), Asked(10**7, "beans", at_ms=now + 4)]
    assert start.observe(pair).ignored == ()


def test_unknown_people_words_and_tags(start: Advisor, now: int) -> None:
    """Somebody with a small id, too: codes are not ordered by id any more."""
    free = int(np.setdiff1d(np.arange(1, 500), start.history.users)[0])
    advisor = start.observe(
        [
            Asked(10**7, "xylophon zither", "", ["music"], -1, now),
            Answered(10**7 + 1, 10**7, free, now + 1),
            Answered(10**7 + 2, 10**7, 10**9, now + 2),
            Accepted(10**7, 10**7 + 1, now + 3),
            Asked(10**7 + 3, "something later", at_ms=now + 3 * DAY_MS),
        ]
    )
    found = advisor.ask(Question("A zither?", tags=["music"]), k=3)
    assert {free, 10**9} <= {person.user for person in found.people}
    assert found.notes == ()
    mine = next(person for person in found.people if person.user == free)
    assert "1 answer tagged music, 1 accepted" in [reason.text for reason in mine.reasons]
    unknown = start.ask(Question("A zither?", tags=["music"]))
    assert "No question here has the tag 'music'." in unknown.notes


def test_an_acceptance_counts_from_the_end_of_its_day_and_may_move(
    start: Advisor, now: int
) -> None:
    day = (now // DAY_MS + 1) * DAY_MS
    posts = [Asked(10**7, "beans", at_ms=day)]
    posts += [Answered(10**7 + k, 10**7, k, day + k) for k in (1, 2)]
    advisor = start.observe([*posts, Accepted(10**7, 10**7 + 1, day + 9)])
    place = advisor.history.records.answer_at(10**7 + 1)
    assert not advisor.history.is_accepted[place]
    later = advisor.observe([Asked(10**7 + 5, "", at_ms=day + DAY_MS)])
    assert later.history.is_accepted[place]
    moved = later.observe(
        [Accepted(10**7, 10**7 + 2, day + DAY_MS), Asked(10**7 + 6, "", at_ms=day + 3 * DAY_MS)]
    )
    assert moved.ignored == ()
    assert moved.history.is_accepted[[place, place + 1]].tolist() == [False, True]
    assert later.history.is_accepted[place]
    straight = start.observe(
        [
            *posts,
            Accepted(10**7, 10**7 + 2, day + DAY_MS),
            Asked(10**7 + 5, "", at_ms=day + DAY_MS),
            Asked(10**7 + 6, "", at_ms=day + 3 * DAY_MS),
        ]
    )
    question = Question("How are beans grown?", tags=["beans"])
    assert moved.ask(question) == straight.ask(question)


def test_a_person_is_forgotten(one_by_one: Advisor, site: Site, tmp_path: Path) -> None:
    question = Question(site.titles([400])[0], tags=tuple(site.tags.of(400)))
    first = one_by_one.ask(question).people[0].user
    without = one_by_one.observe([Forgotten(first)])
    assert int(without.history.codes(first)) == -1
    assert first not in without.history.users
    people = [person.user for person in without.ask(question, k=50).people]
    assert first not in people
    assert len(without.history.answers) == len(one_by_one.history.answers)
    opened = Advisor.load(without.save(tmp_path / "model"))
    assert opened.ask(question) == without.ask(question)
    assert int(one_by_one.history.codes(first)) >= 0
    back = without.observe([Answered(10**7, int(site.questions.id[3]), first, 0)])
    assert back.history.n_given[int(back.history.codes(first))] == 1


def test_newcomers_stay_welcome(start: Advisor, events: list[Event]) -> None:
    advisor = start.welcome([Newcomer(10**8, tags=("tomatoes",)), Newcomer(10**8 + 1)])
    later = advisor.observe(events[:500])
    found = later.ask(Question("Tomatoes?", tags=["tomatoes"]), k=200)
    assert 10**8 in {person.user for person in found.people}
    assert 10**8 not in later.history.users
    gone = later.observe([Forgotten(10**8)])
    assert gone.newcomers == (Newcomer(10**8 + 1),)
    found = gone.ask(Question("Tomatoes?", tags=["tomatoes"]), k=200)
    assert 10**8 not in {person.user for person in found.people}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Voted(3, 2), "A vote must be 1 or -1, not 2"),
        (lambda: Asked(-3), "id of Asked must be an id from 0, not -3"),
        (lambda: Asked(3, tags="a"), "tags must be a list of names, not 'a'"),
        (lambda: Answered(3, True), "question of Answered must be a number, not True"),
        (lambda: Accepted(3, 4, at_ms=2**70), "at_ms of Accepted must be a number"),
        (lambda: Asked(3, None), "Title and body of question 3 must be text"),
    ],
)
def test_bad_events_are_refused(make: Callable[[], Event], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()


def test_only_events_are_observed(start: Advisor) -> None:
    with pytest.raises(InputError, match="'a' is not an event"):
        start.observe(["a"])  # type: ignore[list-item]


# --- Any events, against tables made anew --------------------------------------------------


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    made: list[Event] = []
    for _ in range(draw(st.integers(1, 25))):
        at = draw(st.integers(0, 20)) * DAY_MS // 2
        made.append(
            draw(
                st.one_of(
                    st.builds(
                        Asked,
                        st.integers(0, 9),
                        st.sampled_from(["a bee", "bee and cat", "", "cat"]),
                        st.just(""),
                        st.lists(st.sampled_from("pqr"), max_size=2),
                        st.integers(-1, 5),
                        st.just(at),
                    ),
                    st.builds(
                        Answered,
                        st.integers(10, 25),
                        st.integers(0, 9),
                        st.integers(-1, 5),
                        st.just(at),
                    ),
                    st.builds(Accepted, st.integers(0, 9), st.integers(10, 25), st.just(at)),
                    st.builds(Voted, st.integers(10, 25), st.sampled_from([1, -1]), st.just(at)),
                    st.builds(Forgotten, st.integers(0, 5)),
                )
            )
        )
    return made


@pytest.fixture(scope="module")
def empty() -> History:
    none = np.zeros(0, dtype=np.int64)
    return History(
        Records(
            none,
            QuestionTable(none, none, none, none.astype(np.bool_)),
            AnswerTable(none, none, none, none),
            AcceptanceTable(none, none),
            VoteTable(none, none, none),
            QuestionTags([], np.zeros(1, dtype=np.int64), none),
            [],
            Corpus.of([], [], []),
        ),
        0,
    )


@settings(max_examples=60, deadline=None)
@given(streams())
def test_any_stream_leaves_a_consistent_history(empty: History, stream: list[Event]) -> None:
    history = empty
    for event in stream:
        history = observe(history, [event]).history
    plain = History(history.records.settled(), history.now)
    ids = history.records.users
    for name in ("n_given", "n_won", "last_answer_ms"):
        np.testing.assert_array_equal(
            getattr(history, name), getattr(plain, name)[plain.codes(ids)]
        )
    np.testing.assert_array_equal(history.is_accepted, plain.is_accepted)
    np.testing.assert_array_equal(history.best_answer, plain.best_answer)
    everything = np.arange(history.n_questions)
    np.testing.assert_array_equal(history.answers_to(everything), plain.answers_to(everything))
    for user in history.users.tolist():
        np.testing.assert_array_equal(
            history.answers_by(int(history.codes(user))), plain.answers_by(int(plain.codes(user)))
        )
    for name in "pqr":
        codes = history.tag_codes([name]), plain.tag_codes([name])
        assert len(codes[0]) == len(codes[1])
        if len(codes[0]):
            np.testing.assert_array_equal(
                history.tagged(int(codes[0][0])), plain.tagged(int(codes[1][0]))
            )
    present = history.questions.present
    terms = [part.corpus.query("a bee, a cat", "", "pq") for part in (history, plain)]
    np.testing.assert_array_equal(
        history.corpus.bm25(terms[0], present), plain.corpus.bm25(terms[1], present)
    )
    np.testing.assert_array_equal(
        history.corpus.worth(terms[0], present), plain.corpus.worth(terms[1], present)
    )
    counted = words_of(history)
    assert counted == sorted(plain.corpus.vocabulary)


def words_of(history: History) -> list[str]:
    """The words of all titles and tags, counted anew."""
    records = history.records
    parts = [words(title, "", records.tags.of(place)) for place, title in enumerate(records.titles)]
    return sorted({word for part in parts for word in part})
