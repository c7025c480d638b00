"""``atp cqa train``: a site becomes a model that the other commands use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session, table
from atpgraph_qa.cli.options import EgaMode, SitePath, Tau, Text

if TYPE_CHECKING:
    from atpgraph_qa.advisor.advisor import Advisor


def train(
    site: SitePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the model to make.")],
    ega: Annotated[
        EgaMode, typer.Option("--ega", help="Expertise-gain edges.")
    ] = EgaMode.consecutive,
    tau: Tau = 30.0,
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors.")] = 64,
    kernel: Annotated[str, typer.Option(help="log, harmonic, linear or constant.")] = "log",
    method: Annotated[
        str, typer.Option("--method", "-m", help="How to break cycles.")
    ] = "h-voting",
    text: Text = "auto",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model of a site: expertise, difficulty, and who should answer a question.

    It is one folder that does not need the site any more. The options are those of the embedding
    that expertise and difficulty come from; routing has its own, chosen on several sites. A model
    that is there is replaced at the end.
    """
    with session(json=json, quiet=quiet) as out:
        from atpgraph.util.memory import peak_megabytes
        from atpgraph_qa.advisor.advisor import Advisor
        from atpgraph_qa.advisor.model_folder import check_writable_model
        from atpgraph_qa.data.site import Site

        check_writable_model(output)
        started = time.perf_counter()
        advisor = Advisor.train(
            Site(site), text=text, ega=ega.value, tau_days=tau, n_components=dim, kernel=kernel,
            method=method, random_state=seed,
        )  # fmt: skip
        advisor.save(output)
        payload = {
            "site": site,
            "model": output,
            "text": model.name if (model := advisor.history.records.text_model) else "bm25",
            **_sizes(advisor),
            "seconds": round(time.perf_counter() - started, 3),
            "peak_memory_mb": round(peak_megabytes(), 1),
        }
        rows = [(name.replace("_", " "), value) for name, value in payload.items()]
        hint = f'next: atp cqa route {output} --title "…"'
        out.result(payload, table(("what", "value"), rows), hint)


def _sizes(advisor: Advisor) -> dict[str, int]:
    model, is_question = advisor.expertise.model, advisor.expertise.competition.is_question
    return {
        "questions": int(is_question.sum()),
        "users": int((~is_question).sum()),
        "edges": model.graph_.n_edges,
        "removed": len(model.removed_),
        "levels": int(model.levels_.max(initial=0)),
        "learnt_from": advisor.router.questions_,
    }
