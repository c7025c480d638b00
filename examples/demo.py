"""The demo: what atpgraph does, on data it makes up, in about a minute.

    python examples/demo.py [demo-report.html]

First hierarchies with mistakes in them: find the mistakes, embed what is left. Then a community of
questions and answers, from its data dump to who should answer three new questions, and why. Each
part is one function that says in the terminal what it does and adds a section to an HTML page.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from scipy.stats import spearmanr

from atpgraph import ATP, DiGraph, break_cycles, levels, noisy_hierarchy
from atpgraph.cycles import METHODS, CycleBreaker
from atpgraph.plot import plot_hierarchy, save
from atpgraph.report import Bar, Dots, Section, bar_chart, dot_chart, page, write_page
from atpgraph.report.charts import figure, grid
from atpgraph.report.pages.embedding import vector_map
from atpgraph.util.jit import on_compilation
from atpgraph_qa import (
    Advisor,
    Expertise,
    Newcomer,
    Policy,
    Site,
    evaluate_site,
    ingest,
    simulate_community,
    write_dump,
)
from atpgraph_qa.baselines.registry import METHODS as ROUTES
from atpgraph_qa.difficulty.evaluation import accuracy_rows
from atpgraph_qa.evaluation.evaluation import run
from atpgraph_qa.evaluation.protocols import Split, best_answerer, make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.reports.difficulty import chart_and_table
from atpgraph_qa.reports.routing import protocol_html
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records

SEED = 7
REASONS = 3  # for each person
DIFFICULTY = ("atp-position", "atp", "level", "qdee", "trueskill", "number-of-answers")
ROUTERS = ("atp-fold-in", "bm25", "tag-experts", "accepted-answers", "recent-activity", "random")

# Who eats whom, from the eaten to the eater; the last three are wrong.
FOOD_WEB = """
grass-rabbit grass-grasshopper grass-deer leaves-deer leaves-caterpillar seeds-mouse seeds-songbird
grasshopper-frog grasshopper-songbird caterpillar-songbird caterpillar-beetle beetle-frog
beetle-mouse frog-snake frog-heron mouse-snake mouse-owl mouse-fox songbird-hawk rabbit-fox
rabbit-hawk rabbit-wolf snake-hawk owl-hawk heron-fox deer-wolf fox-wolf
wolf-leaves hawk-grasshopper snake-seeds
"""


@dataclass(frozen=True)
class Sizes:
    """How large everything is; `test` and `train` are questions for routing."""

    nodes: int = 2_000
    users: int = 500
    questions: int = 10_000
    test: int = 300
    train: int = 400


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

    def say(self, text: str) -> None:
        """Print a paragraph and put it on the page."""
        console.print(text, end="\n\n", markup=False)
        self.draw(f"<p>{escape(text)}</p>")

    def draw(self, *html: str) -> None:
        """Put figures on the page, beside each other where there is room."""
        last = self.sections[-1]
        body = html[0] if len(html) == 1 else grid(html)
        self.sections[-1] = Section(last.title, last.body + body)


def show(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; the page has charts instead."""
    printed = Table(*columns, box=box.SIMPLE_HEAD)
    for column in printed.columns[1:]:
        column.justify = "right"
    for row in rows:
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
        printed.add_row(*cells)
    console.print(printed)


def indented(text: str, by: int, style: str = "") -> None:
    """Print a paragraph that stands in."""
    console.print(Padding(Text(text, style), (0, 0, 0, by)))


def picture(graph: DiGraph, folder: Path) -> str:
    """Draw a hierarchy as an image for the page."""
    path = save(plot_hierarchy(graph, random_state=SEED), folder / "hierarchy.svg")
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="the food web" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def find_the_mistakes(story: Story, folder: Path, nodes: int) -> DiGraph:
    """Break the cycles of a small graph to look at, then of a large one by every method."""
    web = DiGraph.from_edges(edge.split("-") for edge in FOOD_WEB.split())
    broken = break_cycles(web, random_state=SEED)
    wrong = ", ".join(f"{u} → {v}" for u, v in zip(*web.edge_labels(broken.removed), strict=True))
    story.begin("Mistakes in a hierarchy")
    story.say(
        f"A food web: {web.n_edges} arrows from the eaten to the eater, and three of them are "
        "wrong. Wrong arrows close cycles, and in a cycle nothing is above anything else. Breaking "
        f"the cycles removes {wrong}; the rest stands on {levels(broken.dag).max()} levels."
    )
    edges, planted = 6 * nodes, nodes // 2
    graph, truth = noisy_hierarchy(nodes, edges, planted, random_state=SEED)
    rows = []
    for name in METHODS:
        result = CycleBreaker(graph, SEED).run(name)
        match = result.agreement(truth)
        rows.append((name, len(result.removed), match.precision, match.recall, match.f1))
    rows.sort(key=lambda row: -row[-1])
    bars = [Bar(name, f1, colour=int(name == "h-voting")) for name, *_, f1 in rows]
    chart = bar_chart(bars, title="F1 by method", unit="F1", top=1.0)
    f1 = {name: value for name, *_, value in rows}
    story.say(
        f"The same on a large scale: a random hierarchy of {nodes:,} nodes and {edges:,} edges, in "
        f"which {planted:,} more point down. A depth-first search removes whatever closes a cycle "
        f"first (F1 {f1['dfs']:.2f}). The vote of the ATP paper, h-voting, gets "
        f"{f1['h-voting']:.2f}; the best here is {rows[0][0]} with {rows[0][-1]:.2f}."
    )
    story.draw(
        figure("Who eats whom; red arrows are removed", picture(web, folder)),
        figure(f"How well the methods find {planted:,} planted mistakes", chart),
    )
    show(("method", "removed", "precision", "recall", "F1"), rows)
    return graph


def embed_and_predict(story: Story, graph: DiGraph) -> None:
    """Embed the graph, and tell its paths from pairs that look like them."""
    model = ATP(n_components=32, random_state=SEED).fit(graph)
    kept = model.fidelity_
    story.begin("A vector for where you come from, a vector for where you can go")
    story.say(
        f"Once its cycles are broken, the large graph stands on {model.levels_.max()} levels, and "
        f"{model.n_reachable_pairs_:,} pairs of nodes are joined by a path. Every node gets a "
        f"source and a target vector of 32 numbers, in {sum(model.timings_.values()):.1f} s."
    )
    story.draw(vector_map(model))
    story.say(
        f"Where a path leads, the product of the two vectors is above zero: that says yes to "
        f"{kept.closure:.1%} of the paths, and to {kept.look_alike_targets:.1%} of pairs that look "
        f"like paths and are none. A path scores above such a pair in {kept.auc:.1%} of all "
        f"comparisons; the difference of levels alone gets {kept.level_auc:.1%}."
    )


@dataclass(frozen=True)
class Planted:
    """The site of a simulated community, and what was planted in it."""

    site: Site
    truth: dict[str, np.ndarray]

    def topic(self, question: int) -> int:
        """Topic of a question, by id."""
        return int(self.truth["topic"][self.truth["question_id"] == question][0])

    def know_how(self, user: int, question: int) -> float:
        """Share of the community that knows less than a user about the topic of a question."""
        skill = self.truth["expertise"][:, self.topic(question)]
        mine = skill[self.truth["user_id"] == user]
        return float((skill < mine[0]).mean()) if len(mine) else 0.0


def make_the_site(story: Story, folder: Path, sizes: Sizes) -> Planted:
    """Simulate a community, write it as a data dump, ingest the dump."""
    community = simulate_community(sizes.users, sizes.questions, random_state=SEED)
    write_dump(community, folder / "dump")
    started = time.perf_counter()
    report = ingest(folder / "dump", folder / "site")
    seconds = time.perf_counter() - started
    with np.load(folder / "dump" / "truth.npz") as truth:
        planted = Planted(Site(folder / "site"), dict(truth))
    site, topics = planted.site, planted.truth["topic"]
    story.begin("A community")
    story.say(
        f"{sizes.users:,} people who know different things ask {sizes.questions:,} questions of "
        f"different difficulty and give {report.rows['answers']:,} answers. What they know is "
        "planted, so that everything below can be checked. The community is written as a Stack "
        f"Exchange dump and read like any other, in {seconds:.1f} s. The first question of each "
        "topic:"
    )
    first = np.unique(topics, return_index=True)[1]
    rows = [
        (site.tags.of(at)[0], int(np.count_nonzero(topics == topics[at])), site.titles([at])[0])
        for at in first.tolist()
    ]
    for name, count, title in rows:
        indented(f"{name} ({count:,}): {title}", 2)
    console.print()
    bars = [Bar(name, float(count)) for name, count, _ in rows]
    titles = "".join(f"<li>{escape(title)} <i>[{escape(name)}]</i></li>" for name, _, title in rows)
    story.draw(
        f"<ul>{titles}</ul>",
        figure("Questions by topic", bar_chart(bars, title="Topics", unit="questions")),
    )
    return planted


def difficulty_and_expertise(story: Story, planted: Planted) -> None:
    """Compare what the embedding says about questions and people with what was planted."""
    site, truth = planted.site, planted.truth
    expertise = Expertise.fit(site, random_state=SEED)
    model = expertise.model
    story.begin("How hard is a question, how expert is a person?")
    story.say(
        "Whoever asks knows less than the question needs, and whoever is accepted knows more. That "
        f"makes a graph of {model.graph_.n_nodes:,} people and questions and "
        f"{model.graph_.n_edges:,} edges; {len(model.removed_):,} of them contradict the others "
        "and are removed. Where a node ends up in the embedding is its difficulty, or expertise:"
    )
    overall = np.einsum("ut,ut->u", truth["expertise"], truth["interest"])
    people = expertise.expertise(truth["user_id"])
    questions = expertise.difficulty(truth["question_id"])
    pairs = {
        "Expertise of people": (overall, people),
        "Difficulty of questions": (truth["difficulty"], questions),
    }
    charts = []
    for name, (hidden, seen) in pairs.items():
        known = np.flatnonzero(~np.isnan(seen))
        known = known[:: max(1, len(known) // 1500)]
        dots = Dots(hidden[known].tolist(), seen[known].tolist(), [1] * len(known))
        charts.append(
            figure(name, dot_chart(dots, title=name, x_label="planted", y_label="by the embedding"))
        )
    report = evaluate_site(
        site, methods=DIFFICULTY, n_bootstrap=200, random_state=SEED, expertise=expertise
    )
    story.draw(*charts)
    found = [
        spearmanr(seen, hidden, nan_policy="omit").statistic for hidden, seen in pairs.values()
    ]
    story.say(
        f"Rank correlation with what was planted: {found[0]:.2f} for people, {found[1]:.2f} for "
        f"questions. Which of two questions is harder? Over {report.methods['atp'].pairs:,} pairs "
        "with different bounties:"
    )
    show(("method", "accuracy", "low", "high"), [row[:4] for row in accuracy_rows(report.methods)])
    story.draw(chart_and_table(report.methods))


def route_three(story: Story, planted: Planted, records: Records, advisor: Advisor) -> None:
    """Ask the advisor about the last questions of three topics."""
    best = best_answerer(records)
    chosen: dict[int, int] = {}
    for q in np.flatnonzero(best >= 0)[::-1].tolist():
        if best[q] != records.ids(records.questions.asker[q]) and len(chosen) < 3:
            chosen.setdefault(planted.topic(int(records.questions.id[q])), q)
    story.begin("Who should answer?")
    story.say(
        "An advisor learns from all but the last few hundred questions. Here are three of those, "
        "and whom it would ask. Know-how is the planted truth: the share of the community that "
        "knows less about the topic."
    )
    cards = []
    for q in sorted(chosen.values()):
        question = Query.again(records, q).question
        indented(question.title, 2, "bold")
        card = [f"<h3>{escape(question.title)}</h3><div class='quiet'>{question.body}</div>"]
        for person in advisor.ask(question, top=3).people:
            know = planted.know_how(person.user, question.id)
            mark = ", whose answer was accepted" if person.user == int(best[q]) else ""
            who = f"User {person.user}{mark}"
            sure = f"confidence {100 * person.confidence:.0f} %, know-how {100 * know:.0f} %"
            indented(f"{who}: {sure}", 4)
            reasons = [reason.text for reason in person.reasons[:REASONS]]
            for reason in reasons:
                indented(f"- {reason}", 6)
            listed = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
            card.append(f"<p><b>{who}</b><br>{sure}</p><ul>{listed}</ul>")
        console.print()
        cards.append(f"<div>{''.join(card)}</div>")
    story.draw(*cards)
    newcomer = Newcomer(int(planted.truth["user_id"].max()) + 1, tags=question.tags[:1])
    rule = Policy(newcomer_share=0.25, newcomer_answers=0)
    people = advisor.welcome([newcomer]).ask(question, rule, top=4).people
    place = [person.user for person in people].index(newcomer.user)
    story.say(
        f"User {newcomer.user} registered a moment ago and never answered anything. With a quarter "
        f"of the places for newcomers they are number {place + 1} of four for the last question: "
        f"{people[place].reasons[0].text}."
    )


def route_and_evaluate(story: Story, planted: Planted, sizes: Sizes) -> None:
    """Rank everybody for the last questions, by several methods; show three of the questions."""
    records = Records.of(planted.site)
    # Two thirds of the questions have an accepted answer of somebody else.
    share = min(0.5, 1.5 * sizes.test / sizes.questions)
    protocol = make_protocol(records, "time-all", Split(share, refit_days=0))
    router = Router("all", SEED, plan=TrainingPlan(questions=sizes.train))
    with console.status("learning whom to ask"):
        result = run(protocol, [router, *(ROUTES[name]("all", SEED) for name in ROUTERS)])
    route_three(story, planted, records, Advisor(protocol.training, router))
    story.begin("How good is that?")
    story.say(
        f"For each of the last {len(result.candidates):,} questions with an accepted answer, all "
        f"{result.candidates.mean():.0f} people who answered before are ranked; the right one is "
        "whose answer was accepted. MRR is the mean of 1 / rank."
    )
    rows = []
    for name in sorted(result.ranks, key=lambda name: -result.ranks[name].reciprocal.mean()):
        metrics = result.ranks[name].metrics()
        rows.append((name, *(float(metrics[m].mean()) for m in ("mrr", "p@1", "p@3", "hits@10"))))
    show(("method", "MRR", "P@1", "P@3", "Hits@10"), rows)
    story.draw(protocol_html(result))


def main(output: Path = Path("demo-report.html"), sizes: Sizes | None = None) -> Path:
    """Run the parts and return the path of the page."""
    sizes = sizes or Sizes()
    started = time.perf_counter()

    def announce() -> None:
        console.print(
            "[dim]First run: compiling the kernels, once per installation, about 20 s.[/]\n"
        )

    story = Story()
    with on_compilation(announce) as compiling, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        embed_and_predict(story, find_the_mistakes(story, folder, sizes.nodes))
        planted = make_the_site(story, folder, sizes)
        difficulty_and_expertise(story, planted)
        route_and_evaluate(story, planted, sizes)
    seconds = time.perf_counter() - started
    compiled = f", {compiling.seconds:.1f} s of them compiling" if compiling.seconds > 0.1 else ""
    title = "atpgraph: from a food web to who should answer"
    subtitle = f"Made by examples/demo.py in {seconds:.0f} s{compiled}; all data is made up."
    path = write_page(output, page(title, subtitle, story.sections, "make demo")).resolve()
    console.print(f"[dim]{seconds:.1f} s in all{compiled}.[/]")
    console.print(f"The same with pictures: [bold]{path}[/]", soft_wrap=True)
    console.print("With data of your own: atp embed GRAPH -o model.npz, atp qa ingest DUMP -o SITE")
    return path


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
