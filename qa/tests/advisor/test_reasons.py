"""Reasons are true: everything they say is counted again."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa import Site
from atpgraph_qa.advisor.suggest import Ranker, suggest
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question


def number(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", text)]


@given(
    st.integers(0, 599), st.integers(0, 200), st.lists(st.integers(0, 15), max_size=3, unique=True)
)
def test_every_count_in_a_reason_is_true(
    site: Site, latest: History, router: Router, like: int, asker: int, tags: list[int]
) -> None:
    """Recounted from the tables of the site, post by post."""
    records = latest.records
    names = tuple(records.tags.names[tag] for tag in tags)
    query = Query.now(latest, Question(records.titles[like], "", names, asker))
    kinds = set()
    for person in suggest(Ranker(router), query, top=3).people:
        mine = [
            (int(q), int(a))
            for a, q in enumerate(site.answers.question)
            if site.answers.owner[a] == person.user
        ]
        answered = {int(site.questions.id[q]) for q, _ in mine}
        won = {q for q, a in mine if site.questions.accepted[q] == a}
        for reason in person.reasons:
            kinds.add(reason.kind)
            assert set(reason.questions) <= answered
            if reason.kind == "accepted":
                decided = sum(1 for q, _ in mine if site.questions.accepted[q] >= 0)
                assert number(reason.text)[:2] == [len(won), decided]
            elif reason.kind == "tags":
                tag = reason.text.split(" tagged ")[1].split(",")[0]
                assert tag in names
                under = [q for q, _ in mine if tag in site.tags.of(q)]
                accepted = [q for q in under if q in won]
                counts = number(reason.text.replace(tag, ""))
                assert counts == [len(under), len(accepted)]
            elif reason.kind == "recent":
                age = [(latest.last_ms - int(site.answers.created_ms[a])) / DAY_MS for _, a in mine]
                said = number(reason.text)
                # Within the hour to which the time of a question is rounded.
                assert said[0] in {sum(1 for d in age if d <= 30 + h) for h in (0, 1 / 24)}
                if "today" not in reason.text:
                    assert abs(said[2] - min(age)) <= 1 + 1 / 24
            elif reason.kind == "asker":
                theirs = {q for q, _ in mine if site.questions.asker[q] == asker}
                assert number(reason.text) == [len(theirs)]
            elif reason.kind == "similar":
                shown = re.findall(r"#(\d+)(?: “([^”]*)”)?( \(accepted\))?", reason.text)
                assert tuple(int(found[0]) for found in shown) == reason.questions
                for found, title, accepted in shown:
                    at = int(np.flatnonzero(site.questions.id == int(found))[0])
                    full = site.titles([at])[0]
                    assert full.startswith(title.rstrip("…"))
                    assert bool(accepted) == (at in won)
                assert number(reason.text)[0] >= len(shown)
            elif reason.kind == "level":
                level, top = number(reason.text)
                assert 0 < level <= top
    assert {"accepted", "recent"} <= kinds
