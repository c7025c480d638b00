"""The demo: what atpgraph does, on data it makes up, in about a minute.

    python examples/demo.py [--output demo-report.html]

First a hierarchy that noise has spoilt: break its cycles, rank it, embed it. Then the whole story
of a question-and-answer community: simulate, ingest, graph, cycles, embedding, difficulty, three
questions routed with reasons, an evaluation. Each part is one function that prints what it does
and what is seen, and adds it to one HTML page; ``main`` runs them in order.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Self

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from scipy.stats import spearmanr

from atpgraph import ATP, DiGraph, levels, noisy_hierarchy
from atpgraph._jit import on_compilation
from atpgraph.cqa import (
    Expertise,
    Site,
    competition_graph,
    evaluate_site,
    ingest,
    simulate_community,
    write_dump,
)
from atpgraph.cqa.difficulty_report import chart_and_table
from atpgraph.cqa.evaluation import accuracy_rows
from atpgraph.cqa.routing import (
    METHODS as ROUTES,
)
from atpgraph.cqa.routing import Newcomer, Policy, Records, Router, make_protocol, suggest, welcome
from atpgraph.cqa.routing.evaluation import run
from atpgraph.cqa.routing.history import History
from atpgraph.cqa.routing.load import COLUMNS, load_cost
from atpgraph.cqa.routing.protocols import Protocol, best_answerer
from atpgraph.cqa.routing.report import protocol_html
from atpgraph.cqa.routing.router import RouterWithoutAtp
from atpgraph.cqa.routing.training import TrainingPlan
from atpgraph.cycles import METHODS, CycleBreak, CycleBreaker
from atpgraph.graph.scc import strongly_connected_components
from atpgraph.linkpred.metrics import auc
from atpgraph.linkpred.splits import make_split
from atpgraph.report import Section, page, table, write_page

SEED = 7
DIFFICULTY = ("atp-position", "atp", "level", "qdee", "trueskill", "number-of-answers")
SHOWN = ("policy", "MRR", "cost in MRR", "people asked", "most asked", "busiest ten", "newcomers")
WHY = '<th scope="col" class="text">why</th>'
ROWS = ("atp-fold-in", "bm25", "tag-experts", "accepted-answers",
        "answers", "recent-activity", "level", "random")  # fmt: skip

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=100)


@dataclass
class Story:
    """What was told so far: the sections of the page."""

    sections: list[Section] = field(default_factory=list)

    def begin(self, title: str) -> None:
        """Open a section."""
        self.sections.append(Section(title, ""))
        console.print(f"[bold]{len(self.sections)}. {title}[/]", end="\n\n")

    def add(self, html: str) -> None:
        """Put HTML into the section."""
        last = self.sections[-1]
        self.sections[-1] = Section(last.title, last.body + html)

    def say(self, text: str) -> None:
        """A paragraph, printed and kept."""
        console.print(text, end="\n\n", markup=False)
        self.add(f"<p>{escape(text)}</p>")

    def show(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], keep: bool = True
    ) -> None:
        """A table, printed and kept."""
        shown = Table(box=box.SIMPLE_HEAD)
        for number, column in enumerate(columns):
            shown.add_column(column, justify="right" if number else "left")
        cells = [[_cell(value) for value in row] for row in rows]
        for row in cells:
            shown.add_row(*row)
        console.print(shown)
        if keep:
            self.add(table(list(map(escape, columns)), [list(map(escape, row)) for row in cells]))


def show(text: str, indent: int, style: str = "") -> None:
    """A paragraph for the terminal only, indented."""
    console.print(Padding(Text(text, style), (0, 0, 0, indent)))


def _cell(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)


def break_the_cycles(story: Story, nodes: int) -> CycleBreak:
    """Break the cycles of a noisy hierarchy by every method, and compare with the truth."""
    edges, wrong = 6 * nodes, nodes // 2
    graph, planted = noisy_hierarchy(nodes, edges, wrong, random_state=SEED)
    story.begin("Breaking cycles")
    story.say(
        f"A random hierarchy of {nodes:,} nodes and {edges:,} edges, all pointing up. Then "
        f"{wrong:,} edges are planted that point down and close cycles. Which are they? The "
        "methods see the graph only."
    )
    rows = []
    results: dict[str, CycleBreak] = {}
    f1: dict[str, float] = {}
    for name in METHODS:
        with on_compilation(lambda: None) as compiling:
            started = time.perf_counter()
            result = CycleBreaker(graph, SEED).run(name)
            seconds = time.perf_counter() - started - compiling.seconds
        found = result.agreement(planted)
        results[name], f1[name] = result, found.f1
        rows.append((name, len(result.removed), found.precision, found.recall, found.f1, seconds))
    story.show(("method", "removed", "precision", "recall", "F1", "seconds"), rows)
    best = max(f1, key=f1.__getitem__)
    story.say(
        f"Every method leaves a graph without cycles; they differ in what it costs. A depth-first "
        f"search removes whatever closes a cycle first (F1 {f1['dfs']:.2f}). The vote of the ATP "
        f"paper, h-voting, gets {f1['h-voting']:.2f}. The best here is {best}, with "
        f"{f1[best]:.2f}."
    )
    dag: DiGraph = results[best].dag
    level = levels(dag)
    story.say(
        f"What is left has {dag.n_edges:,} edges on {level.max()} levels, and the level rises "
        "along every edge. With cycles there are no such levels."
    )
    return results[best]


def embed_and_predict(story: Story, graph: DiGraph) -> None:
    """Hide some edges, embed the rest, tell the hidden ones from pairs the wrong way round."""
    split = make_split(graph, protocols=["paper"], random_state=SEED)
    test = split.tests["paper"]
    model = ATP(n_components=32, random_state=SEED).fit(split.train)
    labels = split.train.labels
    good, bad = (
        model.score_pairs(labels[pairs.sources], labels[pairs.targets])
        for pairs in (test.positives, test.negatives)
    )
    seconds = sum(model.timings_.values())
    story.begin("The embedding")
    story.say(
        f"{len(split.positives):,} edges are hidden. From the rest every node gets a source and a "
        f"target vector of 32 numbers, in {seconds:.1f} s: {model.n_reachable_pairs_:,} pairs of "
        f"nodes are joined by a path, and the closure forest holds them as "
        f"{model.n_extras_:,} entries."
    )
    node = labels[np.argsort(model.levels_, kind="stable")[len(labels) // 4]]
    names, scores = model.top_targets(node, 5)
    back = model.score_pairs(names, node)
    rows = [
        (str(name), float(there), float(other), int(model.levels_[model.graph_.codes(name)[0]]))
        for name, there, other in zip(names.tolist(), scores, back, strict=True)
    ]
    story.show((f"node {node} leads to", "score", "score of the way back", "level"), rows)
    story.say(
        f"A hidden edge scores above a pair of nodes that only the way back joins in "
        f"{100 * auc(good, bad):.1f} % of all comparisons (area under the ROC curve); guessing "
        "gets 50 %."
    )


class Trained(Router):
    """A router that learns once, whoever asks it to."""

    def fit(self, history: History) -> Self:
        """Learn, if that was not done before."""
        return self if hasattr(self, "model_") else super().fit(history)


@dataclass(frozen=True)
class Planted:
    """The site of a simulated community, and what was planted in it."""

    site: Site
    truth: dict[str, np.ndarray]

    def know_how(self, user: int, question: int) -> float:
        """Share of the community that knows less of a question's topic than a user."""
        topic = int(self.truth["topic"][self.truth["question_id"] == question][0])
        skill = self.truth["expertise"][:, topic]
        mine = skill[self.truth["user_id"] == user]
        return float((skill < mine[0]).mean()) if len(mine) else 0.0


def make_the_site(story: Story, folder: Path, users: int, questions: int) -> Planted:
    """Simulate a community, write it as a data dump, ingest the dump."""
    started = time.perf_counter()
    write_dump(simulate_community(users, questions, random_state=SEED), folder / "dump")
    made = time.perf_counter() - started
    size = sum(file.stat().st_size for file in (folder / "dump").glob("*.xml")) / 1e6
    started = time.perf_counter()
    report = ingest(folder / "dump", folder / "site")
    seconds = time.perf_counter() - started
    story.begin("A community")
    story.say(
        f"{users:,} people of different expertise in eight topics ask {questions:,} questions of "
        "different difficulty; what they know is planted, so that answers can be checked. Written "
        f"as a Stack Exchange dump ({size:.0f} MB of XML, {made:.1f} s) and ingested like any "
        f"other ({seconds:.1f} s):"
    )
    story.show(("table", "rows"), report.rows.items())
    with np.load(folder / "dump" / "truth.npz") as planted:
        return Planted(Site(folder / "site"), dict(planted))


def difficulty_and_expertise(story: Story, planted: Planted) -> None:
    """The competition graph, its embedding, and what it says about questions and people."""
    site, truth = planted.site, planted.truth
    competition = competition_graph(site, ega="consecutive")
    graph = competition.graph
    parts = np.bincount(strongly_connected_components(graph))
    expertise = Expertise.fit(site, random_state=SEED)
    model = expertise.model
    story.begin("Difficulty of questions, expertise of people")
    story.say(
        f"Who asks knows less than the question needs, who is accepted knows more: the competition "
        f"graph has {graph.n_nodes:,} people and questions and {graph.n_edges:,} such edges. "
        f"{int(parts[parts > 1].sum()):,} nodes lie on cycles; {len(model.removed_):,} edges are "
        f"removed, {int(model.levels_.max())} levels are left, and the embedding of "
        f"{model.n_reachable_pairs_:,} reachable pairs takes {sum(model.timings_.values()):.1f} s."
    )
    report = evaluate_site(
        site, methods=DIFFICULTY, n_bootstrap=200, random_state=SEED, expertise=expertise
    )
    rows = [row[:4] for row in accuracy_rows(report.methods)]
    story.say(
        f"Which of two questions is harder? Accuracy over {report.methods['atp'].pairs:,} pairs "
        "with different bounties, and its 95 % interval:"
    )
    story.show(("method", "accuracy", "low", "high"), rows, keep=False)
    story.add(chart_and_table(report.methods))
    overall = np.einsum("ut,ut->u", truth["expertise"], truth["interest"])
    people = spearmanr(expertise.expertise(truth["user_id"]), overall, nan_policy="omit")
    hard = spearmanr(
        expertise.difficulty(truth["question_id"]), truth["difficulty"], nan_policy="omit"
    )
    story.say(
        f"Rank correlation with what was planted: {people.statistic:.2f} for the expertise of "
        f"people, {hard.statistic:.2f} for the difficulty of questions."
    )


def route_three(story: Story, planted: Planted, records: Records, router: Router) -> None:
    """The last questions of three topics, each with what was known when it was asked."""
    best, topics = best_answerer(records), planted.truth["topic"]
    place = {int(number): at for at, number in enumerate(planted.truth["question_id"].tolist())}
    chosen: dict[int, int] = {}
    for q in np.flatnonzero(best >= 0)[::-1].tolist():
        topic = int(topics[place[int(records.questions.id[q])]])
        if best[q] != records.questions.asker[q] and len(chosen) < 3:
            chosen.setdefault(topic, q)
    story.begin("Who should answer?")
    story.say(
        "A router learns from what was known before the last few hundred questions. Here are "
        "three of these, the last of their topics; it has not seen them or anything later. "
        "Know-how is the planted truth: the share of the community that knows less of the topic."
    )
    for q in sorted(chosen.values()):
        question = records.question(q)
        found = suggest(router, question, top=3)
        took = int(best[q])
        show(question.title, 2, "bold")
        show(f"tags: {', '.join(question.tags)}", 2)
        rows = []
        for person in found.people:
            know = planted.know_how(person.user, question.id)
            mark = ", and it was their answer that was accepted" if person.user == took else ""
            show(
                f"user {person.user}, confidence {person.confidence:.0%}, "
                f"know-how {know:.0%}{mark}",
                4,
            )
            for reason in person.reasons[:3]:
                show(f"- {reason.text}", 6)
            reasons = "".join(f"<li>{escape(reason.text)}</li>" for reason in person.reasons)
            rows.append(
                [
                    f"user {person.user}" + (" (accepted)" if person.user == took else ""),
                    f"{person.confidence:.0%}",
                    f"{know:.0%}",
                    f'<td class="text"><ul>{reasons}</ul></td>',
                ]
            )
        console.print()
        story.add(f"<h3>{escape(question.title)} [{escape(', '.join(question.tags))}]</h3>")
        story.add(table(["who", "confidence", "know-how", WHY], rows))
    newcomer = Newcomer(int(records.users.max()) + 1, tags=question.tags[:1])
    made, known = welcome(router, question.history, [newcomer])
    rule = Policy(newcomer_share=0.25, newcomer_answers=0)
    found = suggest(made, records.question(q, known), top=4, policy=rule)
    for number, person in enumerate(found.people, start=1):
        if person.user == newcomer.user:
            story.say(
                f"User {person.user} registered a moment ago and never answered anything. With a "
                f"quarter of the places for newcomers they are number {number} of four for the "
                f"last question: {person.reasons[0].text}."
            )


def evaluate_the_router(
    story: Story, records: Records, protocol: Protocol, router: Router, share: float
) -> None:
    """Rank everybody for the last questions of the site; then share the work."""
    others = [ROUTES[name]("all", SEED) for name in ROWS]
    others.append(RouterWithoutAtp("all", SEED, plan=router.plan))
    result = run(protocol, [router, *others])
    story.begin("How good is it?")
    story.say(
        f"The last {len(protocol.test):,} questions with an accepted answer; all "
        f"{result.candidates.mean():.0f} people who answered before are candidates, and the right "
        "one is whose answer was accepted. Everything is learnt before the first of them."
    )
    rows = []
    for name in sorted(result.ranks, key=lambda name: -result.ranks[name].reciprocal.mean()):
        metrics = result.ranks[name].metrics()
        rows.append((name, *(float(metrics[m].mean()) for m in ("mrr", "p@1", "p@3", "hits@10"))))
    story.show(("method", "MRR", "P@1", "P@3", "Hits@10"), rows, keep=False)
    story.add(protocol_html(result))
    policies = {"spread 1": Policy(spread=1.0), "at most 2 a week": Policy(per_week=2)}
    policies["20 % newcomers"] = Policy(newcomer_share=0.2)
    cost = load_cost(records, policies, test_share=share, refit_days=0, router=router)
    story.say("Asking five people each time, and what it costs to spare the busiest:")
    few = [COLUMNS.index(name) for name in SHOWN]
    story.show(SHOWN, [[row[place] for place in few] for row in cost.rows()], keep=False)
    story.add(cost.html())


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run the parts; the path of the page."""
    parser = argparse.ArgumentParser(description="What atpgraph does, in about a minute.")
    parser.add_argument("--output", type=Path, default=Path("demo-report.html"))
    parser.add_argument("--nodes", type=int, default=2_000, help="of the noisy hierarchy")
    parser.add_argument("--users", type=int, default=500, help="of the community")
    parser.add_argument("--questions", type=int, default=10_000, help="of the community")
    parser.add_argument("--test", type=int, default=300, help="questions to evaluate routing on")
    parser.add_argument("--train", type=int, default=400, help="questions the router learns from")
    options = parser.parse_args(arguments)
    started = time.perf_counter()

    def announce() -> None:
        console.print(
            "[dim]First run: compiling the kernels, once per installation, about 20 s.[/]\n"
        )

    story = Story()
    plan = TrainingPlan(questions=options.train, refit_days=365.0)
    with on_compilation(announce) as compiling, tempfile.TemporaryDirectory() as folder:
        result = break_the_cycles(story, options.nodes)
        embed_and_predict(story, result.graph)
        planted = make_the_site(story, Path(folder), options.users, options.questions)
        difficulty_and_expertise(story, planted)
        records = Records.of(planted.site)
        # Two thirds of the questions have an accepted answer of somebody else.
        share = min(0.5, 1.5 * options.test / options.questions)
        protocol = make_protocol(records, "time-all", test_share=share, refit_days=0)
        router = Trained("all", SEED, plan=plan).fit(protocol.training)
        route_three(story, planted, records, router)
        evaluate_the_router(story, records, protocol, router, share)
    seconds = time.perf_counter() - started
    compiled = f", {compiling.seconds:.1f} s of them compiling" if compiling.seconds > 0.1 else ""
    title = "atpgraph: from a spoilt hierarchy to who should answer"
    subtitle = f"Made by examples/demo.py in {seconds:.0f} s{compiled}; all data is simulated."
    path = write_page(options.output, page(title, subtitle, story.sections, "make demo")).resolve()
    console.print(f"[dim]{seconds:.1f} s in all{compiled}.[/]")
    console.print(f"The same as one page: [bold]{path}[/]", soft_wrap=True)
    console.print(
        "With data of your own: atp embed GRAPH -o model.npz, atp cqa ingest DUMP -o SITE"
    )
    return path


if __name__ == "__main__":
    main()
