"""A year of a real site sent to the service as signed webhooks, with a moderator who knows."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _common import data_dir, markdown
from sqlalchemy import select

from atpgraph_qa import Advisor, Site, ingest
from atpgraph_qa.advisor.policies import Dispatcher
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import tables
from atpgraph_qa.service.adapters.base import sign
from atpgraph_qa.service.run import create_app
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.timeline.query import Query, by_id
from atpgraph_qa.timeline.records import ACCEPTED, DOWN, SETTLE_DAYS, UP, Records

YEAR_MS = 365 * DAY_MS
KEY = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def undated(site: Site) -> dict[int, int]:
    """Return accepted answers without a vote that says when: id, and when it counts as known."""
    votes = site.read("votes", ["post_id", "type"])
    kinds = zip(votes["post_id"].to_pylist(), votes["type"].to_pylist(), strict=True)
    dated = {post for post, kind in kinds if kind == ACCEPTED}
    best = site.questions.accepted[site.questions.accepted >= 0].tolist()
    answers, settle = site.answers, round(SETTLE_DAYS * DAY_MS)
    known = {int(answers.id[a]): int(answers.created_ms[a]) + settle for a in best}
    return {answer: moment for answer, moment in known.items() if answer not in dated}


def cut_dump(dump: Path, cut_ms: int, to: Path, taken: set[str]) -> None:
    """Write the dump as it would have been made at the cut; `taken` were accepted before."""
    to.mkdir()
    cut = datetime.fromtimestamp(cut_ms / 1000, UTC).isoformat()[:23]
    day = cut[:10]
    created = re.compile(r'CreationDate="([^"]*)"')
    for line in (dump / "Votes.xml").open(encoding="utf-8"):
        date = created.search(line)
        if date and date[1][:10] < day and 'VoteTypeId="1"' in line:
            taken |= set(re.findall(r'PostId="(\d+)"', line))
    for file in dump.glob("*.xml"):
        end = {"Votes.xml": day, "Posts.xml": cut}.get(file.name)
        with (to / file.name).open("w", encoding="utf-8") as kept, file.open(encoding="utf-8") as f:
            for line in f:
                date = created.search(line)
                if date and end and date[1][: len(end)] >= end:
                    continue
                best = re.search(r'AcceptedAnswerId="(\d+)"', line)
                kept.write(line if not best or best[1] in taken else line.replace(best[0], ""))


def events(site: Site, cut_ms: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Return what happened after the cut: moment, type and data of each webhook."""
    questions, answers, made = site.questions, site.answers, []
    titles, bodies = site.titles(), site.question_bodies()
    for q in np.flatnonzero(questions.created_ms >= cut_ms).tolist():
        data = {"id": int(questions.id[q]), "title": titles[q], "body": bodies[q],
                "tags": site.tags.of(q), "asker": _person(questions.asker[q])}  # fmt: skip
        made.append((int(questions.created_ms[q]), "question.created", data))
    for a in np.flatnonzero(answers.created_ms >= cut_ms).tolist():
        data = {"id": int(answers.id[a]), "question": int(questions.id[answers.question[a]]),
                "user": _person(answers.owner[a])}  # fmt: skip
        made.append((int(answers.created_ms[a]), "answer.created", data))
    best = {
        int(answers.id[a]): int(questions.id[q])
        for q, a in enumerate(questions.accepted.tolist())
        if a >= 0
    }
    votes = site.read("votes", ["id", "post_id", "type", "created_ms"])
    columns = (votes[name].to_pylist() for name in votes.column_names)
    known = set(answers.id.tolist())
    for number, post, kind, day_ms in zip(*columns, strict=True):
        moment = day_ms // DAY_MS * DAY_MS + DAY_MS - 1  # a dump dates votes by day
        if day_ms // DAY_MS < cut_ms // DAY_MS:
            continue
        if kind == ACCEPTED and post in best:
            data = {"question": best[post], "answer": post}
            made.append((moment, "answer.accepted", data))
        elif kind in (UP, DOWN) and post in known:
            data = {"id": str(number), "answer": post, "value": 1 if kind == UP else -1}
            made.append((moment, "answer.voted", data))
    end_ms = max(each[0] for each in made)
    for answer, moment in undated(site).items():
        if moment >= cut_ms:
            data = {"question": best[answer], "answer": answer}
            made.append((min(moment, end_ms), "answer.accepted", data))
    return sorted(made, key=lambda each: each[0])


def _person(user: int) -> int | None:
    return int(user) if user >= 0 else None


def right_people(site: Site) -> dict[int, int | None]:
    """Return who answered each question: the accepted answer counts, else the first of another."""
    found: dict[int, int | None] = {}
    questions, answers = site.questions, site.answers
    for q, owner in zip(answers.question.tolist(), answers.owner.tolist(), strict=True):
        if owner < 0 or owner != questions.asker[q]:
            found.setdefault(int(questions.id[q]), _person(owner))
    for q in np.flatnonzero(questions.accepted >= 0).tolist():
        if answers.owner[questions.accepted[q]] >= 0:
            found[int(questions.id[q])] = int(answers.owner[questions.accepted[q]])
    return found


def offline_places(site: Site, model: Path, settings: Settings, cut_ms: int) -> dict[int, int]:
    """Rank the year's answered questions by the whole dump, each by what was known before it.

    Returns the place of the one who answered, 0 for somebody who is not among those kept.
    """
    advisor, right = Advisor.load(model), right_people(site)
    records = Records.of(site, advisor.history.records.text_model)
    rules, found = Dispatcher(settings.policy.policy()), dict[int, int]()
    for position in np.flatnonzero(site.questions.created_ms >= cut_ms).tolist():
        number = int(site.questions.id[position])
        if number not in right:
            continue
        found[number] = 0
        query = Query.again(records, position)
        allowed = rules.eligible(query)[:-1] & (query.history.last_answer_ms > 0)
        codes = by_id(query, np.flatnonzero(allowed))
        people = query.history.users[codes]
        there = np.flatnonzero((people == right[number]) & (people != query.question.asker))
        if len(there):
            scores = advisor.router.score_codes(query, codes)
            scores[people == query.question.asker] = -np.inf
            ahead = scores > scores[there[0]]
            ahead |= (scores == scores[there[0]]) & (people < people[there[0]])
            place = 1 + int(ahead.sum())
            found[number] = place if place <= settings.policy.candidates else 0
    return found


def replay(given: argparse.Namespace) -> dict[str, Any]:
    """Train on what was there a year before the end, then send the year."""
    archive = (data_dir() or Path()) / "stackexchange" / f"{given.site}.7z"
    with tempfile.TemporaryDirectory() as name:
        place = given.folder or Path(name)
        if not (place / "whole").is_dir():
            ingest(archive, place / "whole")
        site = Site(place / "whole")
        end_ms = int(max(site.questions.created_ms[-1], site.answers.created_ms[-1]))
        cut_ms = end_ms - YEAR_MS + DAY_MS
        model = place / "model"
        if not model.is_dir():
            _extract(archive, place / "dump")
            early = {str(answer) for answer, at in undated(site).items() if at < cut_ms}
            cut_dump(place / "dump", cut_ms, place / "early", early)
            ingest(place / "early", place / "past")
            Advisor.fit(Site(place / "past"), text=given.text).save(model)
        settings = Settings()
        for section, values in {
            "store": {"folder": f"{name}/work", "snapshot_minutes": 1e6},
            "policy": {"mode": "approve"}, "hooks": {"generic_secrets": (KEY,)},
            "limits": {"per_second": 1e6, "burst": 10**6},
        }.items():  # fmt: skip
            settings = settings.changed(section, values, "benchmark")
        offline = offline_places(site, model, settings, cut_ms)
        live = _live(settings, model, events(site, cut_ms), right_people(site))
    places, bins = live["places"], live["quality"]["calibration"]
    people = sum(one["people"] for one in bins)
    error = sum(one["people"] * abs(one["stated"] - one["observed"]) for one in bins) / people
    largest = max((abs(b["stated"] - b["observed"]) for b in bins if b["people"] >= 100), default=0)
    return {
        "site": given.site, "sent": live["sent"], "questions": live["quality"]["questions"],
        "answered": live["quality"]["answered"],
        "live_mrr": live["quality"]["mrr"],
        "offline_mrr": sum(1 / at for at in offline.values() if at) / len(offline),
        "differ": sorted(q for q in places.keys() | offline.keys()
                         if places.get(q) != offline.get(q)),
        "baseline_mrr": live["quality"]["baseline_mrr"], "choices": live["choices"],
        "asks": live["asks"], "most_day": live["most_day"], "most_week": live["most_week"],
        "per_day": settings.policy.per_day, "per_week": settings.policy.per_week,
        "calibration_error": error, "largest_gap": largest,
    }  # fmt: skip


def _extract(archive: Path, to: Path) -> None:
    import py7zr

    with py7zr.SevenZipFile(archive) as opened:
        opened.extractall(to)


def _live(
    settings: Settings, model: Path, sent: list[tuple[int, str, dict[str, Any]]],
    right: dict[int, int | None],
) -> dict[str, Any]:  # fmt: skip
    """Send everything in order; the clock of the service is that of the site."""
    with warnings.catch_warnings():  # it would like another library than the one we use
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient
    now, choices = [sent[0][0]], dict[str, int]()
    service = Service(settings, model, clock=lambda: now[0])
    client = TestClient(create_app(service, background=False))
    headers = {"authorization": f"Bearer {service.first_token}"}

    def call(method: str, path: str, body: Any = None) -> Any:
        answer = client.request(method, path, json=body, headers=headers)
        assert answer.status_code in (200, 409, 422), answer.text
        return answer

    def moderate(question: int) -> None:
        """Accept a list with the one who answered in the end; else ask that person instead.

        Either is refused if the rules do not let them be asked now.
        """
        wanted = right.get(question)
        for found in call("GET", f"/v1/suggestions?question={question}").json()["items"]:
            if wanted is None or found["sent_ms"] is not None:
                continue
            listed = [person["user"] for person in found["people"]]
            verdict = {"verdict": "accepted"} if wanted in listed else {
                "verdict": "reassigned", "person": wanted}  # fmt: skip
            answer = call("POST", f"/v1/suggestions/{found['id']}/feedback", verdict)
            made = verdict["verdict"] if answer.status_code == 200 else "may not be asked"
            choices[made] = choices.get(made, 0) + 1

    day = now[0] // DAY_MS
    for number, (at_ms, kind, data) in enumerate(sent):
        now[0] = max(now[0], at_ms)
        if now[0] // DAY_MS != day:
            day = now[0] // DAY_MS
            service.run_maintenance()
        body = json.dumps({"type": kind, "data": {**data, "at": at_ms / 1000}}).encode()
        signed = sign([KEY], f"msg_{number}", now[0] // 1000, body)
        answer = client.post("/v1/hooks/generic", content=body, headers=signed)
        assert answer.status_code == 202, answer.text
        assert answer.json()["events"] == 1, (kind, data["id"])
        service.apply_all()
        if kind == "question.created":
            moderate(data["id"])
    quality = call("GET", "/v1/metrics/quality?days=365").json()
    with service.database.read() as connection:
        t = tables.suggestions.c
        first = select(t.question, t.place).where(t.round == 0, t.resolved_ms.is_not(None))
        places = {row.question: row.place or 0 for row in connection.execute(first)}
        asks = [
            (row["person"], row["at_ms"])
            for row in tables.find(connection, select(tables.asks).order_by(tables.asks.c.at_ms))
        ]
    service.stop()
    return {"quality": quality, "places": places, "choices": choices, "sent": len(sent),
            "asks": len(asks), "most_day": _most(asks, DAY_MS),
            "most_week": _most(asks, 7 * DAY_MS)}  # fmt: skip


def _most(asks: list[tuple[int, int]], within_ms: int) -> int:
    """Return how often one person was asked at most within some time."""
    by_person: dict[int, list[int]] = {}
    for person, at_ms in asks:
        by_person.setdefault(person, []).append(at_ms)
    return max(
        (sum(1 for t in times if at - within_ms < t <= at) for times in by_person.values()
         for at in times),
        default=0,
    )  # fmt: skip


def tell_replay(found: dict[str, Any]) -> str:
    """The section of the table."""
    chosen = ", ".join(f"{count} {name}" for name, count in sorted(found["choices"].items()))
    rows = [
        ("events sent as signed webhooks", f"{found['sent']:,}"),
        ("questions; of them answered", f"{found['questions']:,}; {found['answered']:,}"),
        ("MRR live", f"{found['live_mrr']:.6f}"),
        ("MRR offline, by the whole dump and the same weights", f"{found['offline_mrr']:.6f}"),
        ("answered questions at another place live than offline", str(len(found["differ"]))),
        ("MRR of most answers in the last 30 days", f"{found['baseline_mrr']:.6f}"),
        ("decisions of the moderator", chosen),
        ("asks; most of one person in a day, in a week",
         f"{found['asks']:,}; {found['most_day']} of {found['per_day']}, "
         f"{found['most_week']} of {found['per_week']}"),
        ("calibration error; largest gap of a bin with 100 people",
         f"{found['calibration_error']:.4f}; {found['largest_gap']:.4f}"),
    ]  # fmt: skip
    return markdown(("", found["site"]), rows)
