"""The demo: atpgraph on your standard library and on a simulated community.

    python examples/demo.py [demo-report.html]

The first part uses the imports of your Python's standard library: cycles, paths, vectors and links.
The second part simulates a community and suggests who should answer its questions. Each step is a
function that prints its results and adds a section to an HTML page.
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
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from atpgraph import ATP, DiGraph, LinkPredictor, Reachability, as_graph, break_cycles, levels
from atpgraph.datasets import python_imports
from atpgraph.graph.scc import cyclic_core
from atpgraph.plot import plot_hierarchy, plot_map, save
from atpgraph.report import Bar, Section, bar_chart, figure, grid, page, table, write_page
from atpgraph.util.jit import on_compilation
from atpgraph_qa import Advisor, Newcomer, Policy, Site, ingest, simulate_community, write_dump
from atpgraph_qa.baselines import METHODS as ROUTES
from atpgraph_qa.evaluation.evaluation import run
from atpgraph_qa.evaluation.protocols import Split, best_answerer, make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.reports import protocol_html
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records

SEED = 7
START, GOAL, WRITER = "json", "enum", "zipfile"  # modules that the demo asks about
REASONS = 3  # for each person
ROUTERS = ("bm25", "tag-experts", "accepted-answers", "recent-activity", "random")


@dataclass(frozen=True)
class Sizes:
    """How large the community is; `test` and `train` are questions for routing."""

    users: int = 150
    questions: int = 1_500
    test: int = 120
    train: int = 150


console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=100)


@dataclass
class Story:
    """Print the demo and collect the sections of its page."""

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
    for row in rows:
        for column, cell in zip(printed.columns, row, strict=True):
            column.justify = "left" if isinstance(cell, str) else "right"
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
        printed.add_row(*cells)
    console.print(printed)


def indented(text: str, by: int, style: str = "") -> None:
    """Print an indented paragraph."""
    console.print(Padding(Text(text, style), (0, 0, 0, by)))


def picture(drawn: Any, alt: str, folder: Path) -> str:
    """Return a Matplotlib figure as an image for the page."""
    data = base64.b64encode(save(drawn, folder / "figure.svg").read_bytes()).decode()
    return f'<img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def break_the_cycles(story: Story, graph: DiGraph, folder: Path) -> DiGraph:
    """Remove the imports that close cycles, and draw a part of what is left."""
    core = cyclic_core(graph)
    broken = break_cycles(graph)
    story.begin("Which imports close cycles?")
    story.say(
        f"Your standard library: {graph.n_nodes} modules, {graph.n_edges:,} imports, "
        f"{len(core.edges):,} of them on cycles. Removing {len(broken.removed)} imports leaves no "
        f"cycle and puts the modules on {levels(broken.dag).max()} levels. Here are some of the "
        f"{len(broken.removed)}, each with a cycle that it closes:"
    )
    reasons = [(f"{u} → {v}", " → ".join([*cycle, u])) for (u, v), _, cycle in broken.reasons(6)]
    show(("import", "cycle"), reasons)
    reach = Reachability(broken.dag)
    names = [START, *reach.descendants(START).tolist()]
    inside = set(names)
    part = [(u, v) for u, v in graph.edges() if u in inside and v in inside]
    drawing = picture(plot_hierarchy(as_graph(part)), "levels", folder)
    story.draw(
        figure(f"What {START} imports; red imports are removed", drawing),
        table(
            [f'<th class="text" scope="col">{name}</th>' for name in ("import", "cycle")],
            [[f'<td class="text">{escape(cell)}</td>' for cell in row] for row in reasons],
        ),
    )
    return broken.dag


def ask_for_paths(story: Story, graph: DiGraph, dag: DiGraph) -> None:
    """Ask the exact index, with and without the cycles."""
    exact, everything = Reachability(dag), Reachability(graph)
    near, far = exact.n_descendants(START), everything.n_descendants(START)
    first = exact.path(START, GOAL)
    story.begin("What does a module need?")
    story.say(
        f"{START} needs {near} modules. If the imports that close cycles are followed as well, it "
        f"reaches {far} of {graph.n_nodes}: these {len(graph.targets) - len(dag.targets)} imports "
        f"tie the library together. The path from {START} to {GOAL} is {' → '.join(first)}. All of "
        "this is exact, and an index answers a million such questions in a second."
    )


def embed(story: Story, graph: DiGraph, folder: Path) -> None:
    """Embed the graph, and ask the vectors the same question."""
    with on_compilation(lambda: None) as compiling:
        model = ATP(n_components=32, random_state=SEED).fit(graph)
    seconds = max(sum(model.timings_.values()) - compiling.seconds, 0.1)
    kept = model.fidelity_
    there, back = model.score_pairs([START, GOAL], [GOAL, START])
    nearest = ", ".join(model.top_sources(GOAL, 4)[0])
    story.begin("Two vectors for every node")
    story.say(
        f"Every module gets a source and a target vector of 32 numbers, in "
        f"{seconds:.1f} s. Their product is positive if there is a path: "
        f"{there:.1f} from {START} to {GOAL}, {back:.1f} back. The nearest modules that need "
        f"{GOAL}: {nearest}. Of {model.n_reachable_pairs_:,} paths, the vectors find "
        f"{kept.closure:.1%}; they mistake {kept.look_alike_targets:.1%} of the pairs that look "
        f"like paths for one. A path scores above a look-alike in {kept.auc:.1%} of all "
        f"comparisons; by levels alone in {kept.level_auc:.1%}."
    )
    story.draw(picture(plot_map(model), "source and target vectors, colored by level", folder))


def recommend(story: Story, graph: DiGraph) -> None:
    """Suggest imports, with the evidence for the first."""
    predictor = LinkPredictor(random_state=SEED).fit(graph)
    targets, rates = predictor.recommend(WRITER, 4)
    measured = predictor.validation_["link"]["auc"]
    story.begin("Which import is missing?")
    story.say(
        f"What would {WRITER} import next? The predictor hides some imports and learns how to find "
        f"them; a hidden import ranks above another pair in {measured:.1%} of all comparisons."
    )
    rows = [(name, f"{rate:.1%}") for name, rate in zip(targets, rates, strict=True)]
    show(("module", "hit rate"), rows)
    why = str(predictor.explain(WRITER, targets[0]))
    for line in why.splitlines():
        indented(line, 2)
    console.print()
    story.draw(table(["module", "hit rate"], rows), f"<pre>{escape(why)}</pre>")


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
    story.begin("Second part: a simulated community")
    story.say(
        f"{sizes.users:,} people who know different things ask {sizes.questions:,} questions of "
        f"different difficulty and give {report.rows['answers']:,} answers. Their skills are "
        "simulated, so everything below can be checked. The community is written as a Stack "
        f"Exchange dump and read like a real one, in {seconds:.1f} s. The first question of each "
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


def route_three(story: Story, planted: Planted, records: Records, advisor: Advisor) -> None:
    """Ask the advisor about the last questions of three topics."""
    best = best_answerer(records)
    chosen: dict[int, int] = {}
    for q in np.flatnonzero(best >= 0)[::-1].tolist():
        if best[q] != records.ids(records.questions.asker[q]) and len(chosen) < 3:
            chosen.setdefault(planted.topic(int(records.questions.id[q])), q)
    story.begin("Who should answer?")
    story.say(
        "An advisor learns from all but the last questions. Here are three of these, and the "
        "people it suggests. Know-how is the simulated truth: the share of the community that "
        "knows less about the topic."
    )
    cards = []
    for q in sorted(chosen.values()):
        question = Query.again(records, q).question
        indented(question.title, 2, "bold")
        card = [f"<h3>{escape(question.title)}</h3><div class='quiet'>{question.body}</div>"]
        for person in advisor.ask(question, k=3).people:
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
    people = advisor.welcome([newcomer]).ask(question, rule, k=4).people
    place = [person.user for person in people].index(newcomer.user)
    story.say(
        f"User {newcomer.user} has just registered and has answered nothing yet. With a quarter of "
        f"the places reserved for newcomers, they are number {place + 1} of four for the last "
        f"question: "
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
        f"{result.candidates.mean():.0f} people who had answered before are ranked. The right one "
        "is the person who gave the accepted answer. MRR is the mean of 1 / rank."
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
        graph = python_imports()
        dag = break_the_cycles(story, graph, folder)
        ask_for_paths(story, graph, dag)
        embed(story, graph, folder)
        recommend(story, graph)
        planted = make_the_site(story, folder, sizes)
        route_and_evaluate(story, planted, sizes)
    seconds = time.perf_counter() - started
    compiled = f", {compiling.seconds:.1f} s of them compiling" if compiling.seconds > 0.1 else ""
    title = "atpgraph: cycles, paths, vectors, links, and people who can answer"
    subtitle = f"Made by examples/demo.py in {seconds:.0f} s{compiled}."
    path = write_page(output, page(title, subtitle, story.sections, "make demo")).resolve()
    console.print(f"[dim]{seconds:.1f} s in all{compiled}.[/]")
    console.print(f"The same with pictures: [bold]{path}[/]", soft_wrap=True)
    console.print("With data of your own: atp embed GRAPH -o model.npz, atp qa ingest DUMP -o SITE")
    return path


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
