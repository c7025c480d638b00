"""The commands of ``atp service``: what an operator needs besides ``atp serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Json, Quiet, session, table
from atpgraph_qa.cli.serve import Config, Database, Folder, read_settings

app = Commands(no_args_is_help=True, help="Look after the service: backup, restore, tokens.")
File = Annotated[Path, typer.Argument(help="The backup.", show_default=False)]


@app.command()
def backup(
    file: File,
    config: Config = None,
    database: Database = None,
    folder: Folder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write everything the service knows into one file, also while it runs.

    The file holds personal data and secrets' digests: keep it as you keep the database.
    """
    with session(json=json, quiet=quiet) as out:
        settings = read_settings(config, database, folder)
        from atpgraph_qa.service.backup import backup as write

        counts = write(settings, file)
        out.result({"file": file, "rows": counts}, table(("table", "rows"), counts.items()))


@app.command()
def restore(
    file: File,
    config: Config = None,
    database: Database = None,
    folder: Folder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fill an empty database and work folder from a backup; also from SQLite to PostgreSQL."""
    with session(json=json, quiet=quiet) as out:
        settings = read_settings(config, database, folder)
        from atpgraph_qa.service.backup import restore as read

        counts = read(settings, file)
        out.result({"file": file, "rows": counts}, table(("table", "rows"), counts.items()))


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="What it is for.", show_default=False)],
    scopes: Annotated[
        str, typer.Option("--scopes", help="Some of read, route, write, admin; commas between.")
    ] = "read",
    config: Config = None,
    database: Database = None,
    folder: Folder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a token, also if all others are lost. It is shown this once."""
    with session(json=json, quiet=quiet) as out:
        settings = read_settings(config, database, folder)
        from atpgraph_qa.service.engine import now_ms
        from atpgraph_qa.service.service import database_url
        from atpgraph_qa.service.store.database import Database as Store
        from atpgraph_qa.service.store.tokens import check_scopes, create_token

        wanted = check_scopes(part.strip() for part in scopes.split(","))
        Path(settings.store.folder).mkdir(parents=True, exist_ok=True)
        store = Store(database_url(settings))
        try:
            store.migrate()
            with store.write() as connection:
                number, made = create_token(connection, name, wanted, now_ms())
        finally:
            store.close()
        out.result({"id": number, "name": name, "scopes": list(wanted), "token": made}, made)


@app.command()
def repair(
    config: Config = None,
    database: Database = None,
    folder: Folder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take events dated in the future out of use, after a sender's clock was wrong.

    Stop the service first. Start it again with the model: it rebuilds the history from the model
    and the other events.
    """
    with session(json=json, quiet=quiet) as out:
        settings = read_settings(config, database, folder)
        from atpgraph_qa.service.engine import now_ms
        from atpgraph_qa.service.repair import repair as run

        counts = run(settings, now_ms())
        out.result(counts, table(("taken out of use", "count"), counts.items()))
