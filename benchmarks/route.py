"""Routing one question over 100,000 people: how long it takes, and whether the ranking is right.

    python benchmarks/route.py [--people 100000] [--questions 200] [--folder DIR] [--output FILE]
    python benchmarks/route.py --rules --before PYTHON_WITH_ATPGRAPH_0.2.0 …

The site is a simulated community (``simulate_community``, 40 topics, heavy-tailed activity) large
enough that so many people have answered at least once. Its events, titles, bodies and tags are
written as the tables of a site, without the detour over a gigabyte of XML; from there everything
is what ``atp qa train`` and ``atp qa route`` do: read the site, train, save, open, suggest people
with reasons. Questions are titles, bodies and tags of the community's own topics, half of them by
people who asked before. Brute force (``qa/tests/twins.py``) looks at every answer with
plain NumPy sums, ranks everybody with a sort, and shares nothing between questions.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, Report, arguments, in_subprocess, markdown, peak_mb
from _stages import by_stage
from _words import invent_words, write_texts

from atpgraph.util.arrays import Float32Array
from atpgraph_qa import Advisor, Policy, Question, Site, simulate_community
from atpgraph_qa.data.store import load_arrow, new_version, table_schema
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.simulation.community import Community
from atpgraph_qa.text.choice import text_model
from atpgraph_qa.text.model import OnnxText
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query

if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))
from qa.tests.twins import brute_force

Lap = Callable[[str, Callable[[], Any]], Any]
TOPICS, TOPIC_WORDS, COMMON_WORDS, TAGS_PER_TOPIC = 40, 400, 1000, 5
# As many questions per user as give 62 % of the users an answer.
USERS_PER_PERSON, QUESTIONS_PER_PERSON = 1.62, 4.7
PART, TOP = 20_000, 10


class Texts:
    """Vocabularies of the topics; makes questions of any of them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        words = invent_words(rng, TOPICS * TOPIC_WORDS + COMMON_WORDS)
        self.own = [words[t * TOPIC_WORDS : (t + 1) * TOPIC_WORDS] for t in range(TOPICS)]
        self.common = words[TOPICS * TOPIC_WORDS :]

    def make(
        self, topics: np.ndarray, rng: np.random.Generator
    ) -> tuple[list[str], list[str], list[list[str]]]:
        """Titles, bodies and tags."""
        lengths = rng.integers(5, 11, len(topics)), rng.integers(25, 70, len(topics))
        titles, bodies = (
            write_texts(rng, topics, length, self.own, self.common) for length in lengths
        )
        more = rng.random((len(topics), TAGS_PER_TOPIC)) < 0.3
        more[:, 0] = True
        tags = [
            [self.own[topic][k] for k in np.flatnonzero(row).tolist()]
            for topic, row in zip(topics.tolist(), more, strict=True)
        ]
        return titles, bodies, tags


def write_site(community: Community, texts: Texts, folder: Path) -> Site:
    """The events of a community as the tables of a site."""
    arrow, _ = load_arrow()
    rng = np.random.default_rng(0)
    n, m = community.n_questions, len(community.answerer)
    moments = np.concatenate([community.asked_ms, community.answered_ms])
    ids = np.empty(n + m, dtype=np.int64)
    ids[np.argsort(moments, kind="stable")] = np.arange(1, n + m + 1)
    question_id, answer_id = ids[:n], ids[n:]
    best = community.accepted
    accepted = arrow.array(answer_id[np.maximum(best, 0)], mask=best < 0)

    def nothing(length: int, kind: str) -> object:
        return arrow.nulls(length, arrow.string() if kind == "text" else arrow.int64())

    with new_version(folder) as writer:
        for start in range(0, n, PART):
            part = slice(start, min(start + PART, n))
            titles, bodies, tags = texts.make(community.topic[part], rng)
            size = len(titles)
            columns = [
                question_id[part],
                community.asked_ms[part],
                community.asker[part] + 2,
                accepted[part],
                np.zeros(size, dtype=np.int64),
                nothing(size, "number"),
                titles,
                bodies,
                tags,
            ]
            writer.write("questions", arrow.table(columns, schema=table_schema("questions")))
        columns = [
            answer_id,
            community.answered_ms,
            question_id[community.answer_question],
            community.answerer + 2,
            community.answer_score,
            nothing(m, "text"),
        ]
        writer.write("answers", arrow.table(columns, schema=table_schema("answers")))
        ups = np.repeat(np.arange(m), np.maximum(community.answer_score, 0))
        taken = best[best >= 0]
        post = np.concatenate([answer_id[taken], answer_id[ups]])
        kind = np.concatenate([np.full(len(taken), 1), np.full(len(ups), 2)])
        days = np.concatenate([community.answered_ms[taken], community.answered_ms[ups]])
        columns = [
            np.arange(1, len(post) + 1),
            post,
            kind.astype(np.int64),
            days // 86_400_000 * 86_400_000,
            nothing(len(post), "number"),
            nothing(len(post), "number"),
        ]
        writer.write("votes", arrow.table(columns, schema=table_schema("votes")))
        writer.information = {"files": {}, "missing": {}}
    return Site(folder)


def make_questions(texts: Texts, history: History, count: int, seed: int) -> list[Question]:
    """New questions, a minute apart; every second one by somebody who asked before."""
    rng = np.random.default_rng(seed)
    titles, bodies, tags = texts.make(rng.integers(0, TOPICS, count), rng)
    askers = history.users[history.questions.asker[history.questions.asker >= 0]]
    start = datetime.fromtimestamp(history.last_ms / 1000, tz=UTC)
    return [
        Question(
            titles[place],
            bodies[place],
            tuple(tags[place]),
            int(rng.choice(askers)) if place % 2 else -1,
            start + timedelta(minutes=place),
        )
        for place in range(count)
    ]


def measure(
    advisor: Advisor, questions: list[Question], policy: Policy
) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Milliseconds of every suggestion, on the clock and of the processor, and whom it named."""
    wall, processor, named = [], [], []
    for question in questions:
        started, used = time.perf_counter(), time.process_time()
        found = advisor.ask(question, policy, k=TOP)
        wall.append(1000 * (time.perf_counter() - started))
        processor.append(1000 * (time.process_time() - used))
        named.append([person.user for person in found.people])
    return np.array(wall), np.array(processor), named


class Drawn(OnnxText):
    """The dense model, but that the past gets random vectors: half a million titles take half an
    hour, and how long a ranking takes does not depend on what they say. New questions get theirs.
    """

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Random vectors of length 1, the same for the same texts."""
        rng = np.random.default_rng([len(text) for text in texts])
        drawn = rng.normal(size=(len(texts), self.size)).astype(np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def make_site(folder: Path, texts: Texts, people: int, lap: Lap) -> None:
    """A community large enough, and its site, in a folder."""
    community = lap(
        "simulate the community",
        lambda: simulate_community(
            round(people * USERS_PER_PERSON),
            round(people * QUESTIONS_PER_PERSON),
            n_topics=TOPICS,
            random_state=0,
        ),
    )
    lap("write the site", lambda: write_site(community, texts, folder))


def train(job: dict[str, Any]) -> dict[str, Any]:
    """Train and save a model, in a process of its own: how long it took, and its peak memory."""
    model: Any = text_model(job["text"])
    if isinstance(model, OnnxText):
        model = Drawn(*model.files, model.name)
    laps: list[tuple[str, float, float]] = []
    lap = stopwatch(laps)
    plan = TrainingPlan(questions=job["train"])
    advisor = lap(
        "read the site, train the router",
        lambda: Advisor.fit(Site(job["site"]), text=model or job["text"], plan=plan),
    )
    peak = peak_mb()
    # Routing does not need the embedding that expertise comes from: a short one will do here.
    advisor = replace(advisor, embedding={"n_components": 2, "max_iter": 1})
    lap("save the model", lambda: advisor.save(job["model"]))
    return {"laps": laps, "peak": peak}


def measure_before(
    options: argparse.Namespace, model: Path, *questions: list[Question]
) -> dict[str, Any]:
    """Return what ``_route_before.py`` prints for the same questions."""
    told = [
        {"title": q.title, "body": q.body, "tags": list(q.tags), "asker": q.asker}
        for part in questions
        for q in part
    ]
    script = Path(__file__).with_name("_route_before.py")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(told, file)
        file.flush()
        rules = "rules" if options.rules else "all"
        count = str(len(questions[0]))
        typed = [str(options.before), str(script), str(model), file.name, rules, count]
        done = subprocess.run(typed, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stopwatch(laps: list[tuple[str, float, float]]) -> Lap:
    """Runs what it is given; notes its name, seconds on the clock and of the processor."""

    def lap(name: str, work: Callable[[], Any]) -> Any:
        started, used = time.perf_counter(), time.process_time()
        result = work()
        laps.append((name, time.perf_counter() - started, time.process_time() - used))
        return result

    return lap


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--brute", type=int, default=50, help="questions checked by brute force")
    parser.add_argument("--train", type=int, default=40, help="questions the router learns from")
    parser.add_argument("--text", default="dense", help="bm25, static or dense")
    parser.add_argument(
        "--rules",
        action="store_true",
        help="ask only whom the service asks by default: three answers, one in the last 180 days",
    )
    parser.add_argument("--before", type=Path, help="a Python with atpgraph 0.2.0, to compare with")
    parser.add_argument(
        "--folder", type=Path, help="keep site and model here, and use the model that is here"
    )
    options = parser.parse_args()
    if options.job:
        print(json.dumps(train(json.loads(options.job))))
        return
    report = Report(
        f"Routing one question over {options.people:,} people",
        f"python benchmarks/route.py --people {options.people} --questions {options.questions}"
        f" --brute {options.brute} --text {options.text}"
        + (" --rules" if options.rules else "")
        + (" --folder DIR" if options.folder else ""),
        options.output,
    )
    laps: list[tuple[str, float, float]] = []
    lap = stopwatch(laps)
    texts = Texts(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if options.folder is None else options.folder
        site, model = folder / "site", folder / f"model-{options.text}"
        folder.mkdir(parents=True, exist_ok=True)
        if not site.exists():
            make_site(site, texts, options.people, lap)
        training = ""
        if not model.exists():
            job = {"site": str(site), "model": str(model), "train": options.train}
            done = in_subprocess(__file__, {**job, "text": options.text})
            laps += map(tuple, done["laps"])
            training = f" Peak memory of reading and training: {done['peak']:,.0f} MB."
        advisor = lap("open the model", lambda: Advisor.load(model))
        lap("warm up", advisor.warm_up)
        report_routes(options, report, texts, advisor, model, laps, training)


def report_routes(
    options: argparse.Namespace,
    report: Report,
    texts: Texts,
    advisor: Advisor,
    model: Path,
    laps: list[tuple[str, float, float]],
    training: str,
) -> None:
    """Time the routes and write the tables."""
    history = advisor.history
    questions = make_questions(texts, history, options.questions, seed=1)
    people = int(np.count_nonzero(history.n_given))
    assert people >= options.people, f"only {people} people have answered"
    policy = Policy()
    if options.rules:  # 0.2.0 has no least number of answers: the same rule for both
        policy = Policy(inactive_days=180.0, least_answers=0 if options.before else 3)
    wall, processor, named = measure(advisor, questions, policy)
    memory = peak_mb()  # brute force takes its own
    profile, fresh = cProfile.Profile(time.process_time), make_questions(texts, history, 60, seed=2)
    profile.runcall(measure, advisor, fresh, policy)
    stages = by_stage(profile, len(fresh))
    before = measure_before(options, model, questions, fresh) if options.before else None
    checked = 0 if options.rules else options.brute  # brute force ranks everybody
    for question, mine in zip(questions[:checked], named, strict=False):
        query = Query.now(history, question)
        assert mine == brute_force(advisor.router, query, len(mine)), "the rankings differ"
    report.add(
        f"A simulated community: {people:,} people who answered, {history.n_answers:,} "
        f"answers to {history.n_questions:,} questions with title, body and tags, {TOPICS} "
        f"topics. The router learnt from the last {options.train} questions. Each time is of one "
        "whole suggestion: ten people with confidence and reasons, out of everybody. Text: "
        f"{options.text}; with dense text the vectors of the past are random, those of the "
        "questions are made by the model."
    )
    rows = [
        (f"{len(wall)} questions, median", float(np.median(wall)), float(np.median(processor))),
        *(
            (name, float(np.percentile(wall, at)), float(np.percentile(processor, at)))
            for name, at in (
                ("5th percentile", 5),
                ("95th percentile", 95),
                ("99th", 99),
                ("slowest", 100),
            )
        ),
    ]
    report.add(markdown(("", "milliseconds", "of the processor"), rows))
    if before is None:
        report.add(markdown(("stage, under cProfile", "ms of the processor"), stages.items()))
    else:
        old = before["stages"]
        rows = [(stage, old.get(stage, ""), ms) for stage, ms in stages.items()]
        report.add(markdown(("ms of the processor, under cProfile", "0.2.0", "now"), rows))
        same = sum(list(one) == two for one, two in zip(before["people"], named, strict=True))
        ratio = float(np.median(before["ms"]) / np.median(processor))
        report.add(
            "0.2.0, same model and questions, in the same run: median "
            f"{np.median(before['ms']):.1f} ms of the processor, {ratio:.2f} times as much. The "
            f"same {TOP} people in the same order for {same} of {len(named)} questions."
        )
    report.add(
        f"The {TOP} people, and their order, are those of brute force for all of {checked} "
        "questions (asserted)."
    )
    report.add(markdown(("before that", "seconds", "of the processor"), laps))
    report.add(f"Peak memory {memory:,.0f} MB, the check by brute force aside.{training}")
    report.save()


if __name__ == "__main__":
    main()
