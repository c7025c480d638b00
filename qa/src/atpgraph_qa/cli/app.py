"""``atp qa``: read a dump, train a model of the site, ask it; :mod:`.evaluate` has the rest."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import atpgraph_qa
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, facts_table, table
from atpgraph.cli.options import Dim, Kernel, Method, Seed, Top, arg, names, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable
from atpgraph.util.memory import peak_megabytes
from atpgraph_qa.cli.evaluate import Ega, Limits, SitePath, Tau, Text, difficulty, evaluate, load

app = Commands(help="Q&A sites: read a dump, train, suggest who should answer, evaluate.")

SiteOrModel = Annotated[Path, arg("A site, or a model of 'atp qa train'.", metavar="SITE|MODEL")]
_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]


@app.command()
def ingest(
    out: Session,
    dump: Annotated[Path, arg("Folder of XML files, or the site's .7z file.")],
    output: Path = output("Folder to create for the site."),
    allow_bad_rows: bool = opt(
        "Accept files that were cut off or have more than 1% unreadable rows."
    ),
) -> None:
    """Read a data dump into a site that the other commands use.

    Names, biographies and locations of users are not stored. An existing site is replaced only
    once the new one is complete.
    """
    report = atpgraph_qa.ingest(dump, output, allow_bad_rows=allow_bad_rows)
    for name, disabled in report.missing.items():
        out.note(f"the dump has no {name}: {disabled}")
    notes = []
    for name, file in report.files.items():
        for sample in file.samples:
            out.note(f"{name}: {sample}")
        counts = {"unreadable rows": file.unreadable, "duplicate Ids": file.duplicates}
        notes += [(name, what, n) for what, n in (counts | file.notes).items() if n]
    shown: list[Any] = [table(("table", "rows"), report.rows.items())]
    shown += [table(("file", "what", "count"), notes)] if notes else []
    payload = {"site": output, **report.to_dict(), "seconds": out.seconds}
    out.result(payload, *shown, f"{output}: {out.seconds:.1f} s; next: atp qa stats {output}")


@app.command()
def stats(out: Session, site: SitePath, ega: Ega = "none", tau: Tau = 30.0) -> None:
    """Count the posts, users and edges of a site and its competition graph."""
    opened = atpgraph_qa.Site(site)
    competition = atpgraph_qa.competition_graph(opened, ega=ega, tau_days=tau)
    counted = atpgraph_qa.site_statistics(opened, competition)
    settings = {"site": site, "ega": ega, "tau_days": tau}
    payload = {**settings, **counted, "edge_types": competition.counts}
    facts = {what: n for what, n in counted.items() if not what.endswith("_ms")}
    facts |= {f"edges {kind.replace('_', ' → ')}": n for kind, n in competition.counts.items()}
    out.result(payload, facts_table(site, facts))


@app.command()
def train(
    out: Session,
    site: SitePath,
    output: Path = output("Folder to create for the model."),
    ega: Ega = "consecutive",
    tau: Tau = 30.0,
    dim: Dim = 64,
    kernel: Kernel = "log",
    method: Method = "h-voting",
    text: Text = "auto",
    seed: Seed = 0,
) -> None:
    """Train a model of a site: expertise, difficulty, and who should answer a question.

    The model is one folder, which no longer needs the site. All options but --text are for
    the embedding, which gives expertise and difficulty; they do not affect routing. An existing
    model is replaced only once the new one is complete.
    """
    from atpgraph_qa.advisor.model_folder import check_writable_model

    check_writable_model(output)
    advisor = atpgraph_qa.Advisor.fit(
        atpgraph_qa.Site(site),
        text=text,
        ega=ega,
        tau_days=tau,
        n_components=dim,
        kernel=kernel,
        method=method,
        random_state=seed,
    )
    advisor.save(output)
    model, is_question = advisor.expertise.model, advisor.expertise.competition.is_question
    text_model = advisor.history.records.text_model
    payload = {
        "site": site,
        "model": output,
        "text": text_model.name if text_model else "bm25",
        "questions": int(is_question.sum()),
        "users": int((~is_question).sum()),
        "edges": model.graph_.n_edges,
        "removed": len(model.removed_),
        "levels": int(model.levels_.max(initial=0)),
        "learned_from": advisor.router.questions_,
        "seconds": out.seconds,
        "peak_memory_mb": round(peak_megabytes(), 1),
    }
    hint = f'next: atp qa route {output} --title "…"'
    out.result(payload, facts_table(output, payload), hint)


@app.command()
def route(
    out: Session,
    source: SiteOrModel,
    limits: Limits,
    title: str = opt("Title of the question.", default=""),
    body: str = opt("Body of the question, plain text or HTML.", default=""),
    tags: str = opt("Tags separated by commas.", default=""),
    asker: int = opt("User id of the asker.", default=-1, show_default="unknown"),
    at: datetime.datetime | None = opt(
        "When it is asked (UTC).", formats=_TIMES, show_default="right after the last post"
    ),
    top: Top = 5,
    least: float = opt(
        "Abstain if nobody is this likely to answer.", "--least-confidence", default=0.01
    ),
    opt_out: str = opt("Ids of users who must not be asked, separated by commas.", default=""),
    spread: float = opt(
        "Log-odds lost each time a person's asks in a week double; see 'atp qa load'.", default=0.0
    ),
    welcome: Path | None = opt(
        'JSON list of newcomers: {"user": 9, "tags": ["a"], "text": "…"} by what they '
        'declare, or {"user": 9, "answered": [17], "accepted": [17]} by their first answers.'
    ),
    log: Path | None = opt("File that records who was asked, for limits and --spread."),
    seed: Seed = 0,
) -> None:
    """Suggest who should answer a new question, with reasons."""
    from atpgraph_qa.advisor.newcomers import read_newcomers
    from atpgraph_qa.data.store import is_site

    question = atpgraph_qa.Question(title, body, tuple(names(tags)), asker, at)
    if not (title.strip() or body.strip() or question.tags):
        raise InputError("A question needs --title, --body or --tags.")
    rules = limits.policy(opt_out, spread)
    if log is not None:
        check_writable(log)
    asked = atpgraph_qa.AskLog() if log is None else atpgraph_qa.AskLog.read(log)
    people = [] if welcome is None else read_newcomers(welcome)
    if is_site(source):
        out.note(f"training first; 'atp qa train {source} -o MODEL' does it once for all")
        advisor = atpgraph_qa.Advisor.fit(atpgraph_qa.Site(source), random_state=seed)
    else:
        advisor = atpgraph_qa.Advisor.load(source)
    advisor = advisor.welcome(people)
    for user in advisor.unplaced():
        out.note(f"newcomer {user} cannot be ranked: the site uses none of their tags or words")
    suggestions = advisor.ask(question, rules, log=asked, k=top, least_confidence=least)
    if log is not None:
        asked.write(log)
    for sentence in (*suggestions.notes, suggestions.abstains):
        if sentence:
            out.note(sentence)
    lines = []
    for place, person in enumerate(suggestions.people, start=1):
        lines.append(f"{place}. user {person.user}  confidence {person.confidence:.1%}")
        lines += [f"   - {reason.text}" for reason in person.reasons]
    out.result(suggestions.to_dict(), *lines)


@app.command()
def experts(
    out: Session,
    source: SiteOrModel,
    tag: str | None = opt("Expertise in this tag.", show_default="overall"),
    top: Top = 20,
    seed: Seed = 0,
) -> None:
    """List the users with the most expertise, overall or in a tag."""
    from atpgraph_qa.advisor.model_folder import ModelFolder
    from atpgraph_qa.data.store import is_site

    model = None if is_site(source) else ModelFolder.open(source)
    if model is None:
        expertise = atpgraph_qa.Expertise.fit(atpgraph_qa.Site(source), random_state=seed)
    else:
        expertise = model.expertise()
    if tag is None:
        users, scores = expertise.experts(top)
    else:
        posts = model.posts() if model else atpgraph_qa.Site(source)
        users, scores = expertise.tag_experts(posts, tag, top)
    rows = list(zip(users.tolist(), scores.tolist(), strict=True))
    listed = [{"user": user, "expertise": score} for user, score in rows]
    payload = {"source": source, "tag": tag, "experts": listed}
    out.result(payload, table(("user", "expertise"), [(str(u), score) for u, score in rows]))


for command in (difficulty, evaluate, load):
    app.command()(command)
