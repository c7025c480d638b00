"""``atp cqa experts``: who knows most."""

from __future__ import annotations

from typing import Annotated

import typer

from atpgraph.cli.console import Json, Quiet, Seed, session, table
from atpgraph_qa.cli.options import SiteOrModel


def experts(
    source: SiteOrModel,
    tag: Annotated[
        str | None, typer.Option("--tag", help="Expertise in this tag.", show_default="overall")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many users.")] = 20,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The users with the most expertise, overall or in a tag."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph_qa.advisor.model_folder import ModelFolder
        from atpgraph_qa.data.site import Site
        from atpgraph_qa.data.store import is_site
        from atpgraph_qa.expertise import Expertise

        model = None if is_site(source) else ModelFolder.open(source)
        expertise = model.expertise() if model else Expertise.fit(Site(source), random_state=seed)
        if tag is None:
            users, scores = expertise.experts(top)
        else:
            posts = model.posts() if model else Site(source)
            users, scores = expertise.tag_experts(posts, tag, top)
        found = [
            {"user": user, "expertise": score}
            for user, score in zip(users.tolist(), scores.tolist(), strict=True)
        ]
        shown = [(str(row["user"]), row["expertise"]) for row in found]
        payload = {"source": source, "tag": tag, "experts": found}
        out.result(payload, table(("user", "expertise"), shown))
