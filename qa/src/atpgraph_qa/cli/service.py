"""``atp server``: run and maintain the service for a community."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, table
from atpgraph.cli.options import arg, opt

if TYPE_CHECKING:
    from atpgraph_qa.service.settings import Settings

app = Commands(help="Serve suggestions: run, check, back up, restore, tokens.")

Model = Annotated[Path | None, arg("Model of 'atp qa train'; needed at the first start.")]
File = Annotated[Path, arg("The backup.")]


@dataclass(frozen=True)
class Place:
    """The typed options for the settings and the data of the service."""

    config: Annotated[Path | None, opt("TOML file with settings.", "--config", "-c")] = None
    database: Annotated[str | None, opt("postgresql://…", show_default="SQLite")] = None
    folder: Annotated[Path | None, opt("Work folder.", show_default="atp-serve")] = None

    def settings(self, **server: Any) -> Settings:
        """Return the settings from the file, the environment and the command line."""
        require()
        from atpgraph_qa.service.settings import Settings

        settings = Settings.read(self.config)
        store = {"database": self.database, "folder": self.folder and str(self.folder)}
        for section, values in (("server", server), ("store", store)):
            given = {name: value for name, value in values.items() if value is not None}
            settings = settings.changed(section, given, "options")
        return settings


@dataclass(frozen=True)
class Server(Place):
    """The same options, and the address at which the service listens."""

    host: Annotated[str | None, opt("Address to listen on.")] = None
    port: Annotated[int | None, opt("Port; 0 takes a free one.")] = None

    def settings(self, **server: Any) -> Settings:
        """Return the settings from the file, the environment and the command line."""
        return super().settings(host=self.host, port=self.port)


@app.command()
def run(
    out: Session,
    place: Server,
    model: Model = None,
    demo: Annotated[bool, opt("Serve a simulated community with live traffic.", "--demo")] = False,
) -> None:
    """Serve suggestions: API, webhooks and a page, on a history that follows the site.

    The first start prints an admin token, once. Settings come from the TOML file, then ATP_SERVE_…
    variables, then these options. The service starts in shadow mode: it asks nobody until the mode
    is switched, on the page or by policy.mode.
    """
    if demo:
        _demo(out, place.settings(), place.folder)
    else:
        _serve(out, place.settings(), model)


@app.command()
def check(out: Session, place: Server, model: Model = None) -> None:
    """Check the settings and the model."""
    shown = place.settings().shown()
    from atpgraph_qa.advisor.model_folder import ModelFolder
    from atpgraph_qa.service.settings import as_text

    if model is not None:
        ModelFolder.open(model)
    rows = [
        (section, name, as_text(value))
        for section, values in shown.items()
        for name, value in values.items()
    ]
    payload = {"checked": True, "model": model, "settings": shown}
    out.result(payload, table(("section", "setting", "value"), rows), "the settings are valid")


def require() -> None:
    """Raise an error that names the missing extra, if any."""
    from atpgraph.errors import MissingDependencyError

    try:
        import atpgraph_qa.service.run  # noqa: F401
    except ModuleNotFoundError as error:
        package = str(error.name)
        raise MissingDependencyError(package, "serve", "The service", "atpgraph-qa") from None


def _serve(out: Session, settings: Settings, model: Path | None) -> None:
    from atpgraph_qa.service.run import address_of, listen, serve
    from atpgraph_qa.service.service import Service

    bound = listen(settings.server.host, settings.server.port)
    service = Service(settings, model)
    days = service.engine.days_behind()
    if days > 30:
        out.note(
            f"the newest known post is {days:,.0f} days old, and people who have not answered for "
            "policy.inactive_days are not asked: train on a newer dump, or raise that setting"
        )
    _announce(out, address_of(bound), service.first_token)
    serve(service, bound)


def _demo(out: Session, settings: Settings, folder: Path | None) -> None:
    from itertools import islice
    from threading import Event, Thread

    from atpgraph_qa.service import demo, tokens
    from atpgraph_qa.service.run import address_of, listen, serve
    from atpgraph_qa.service.service import Service

    place = folder or Path("atp-demo")
    settings = settings.changed("store", {"folder": str(place / "work")}, "options")
    settings = settings.changed("policy", {"mode": "automatic", "people": 1}, "options")
    settings = settings.changed("log", {"requests": False, "level": "warning"}, "options")
    bound = listen(settings.server.host, settings.server.port)
    out.note("simulating a community and learning from it; the first time takes half a minute")
    community = demo.make_community()
    service = Service(settings, demo.train(place, community))
    demo.fill_past(service, community)
    service.engine.set_mode("approve", "demo")
    with service.database.write() as connection:
        token = tokens.create_token(connection, "demo", ["admin"], service.clock())[1]
    ended, questions = Event(), islice(demo.live(community), demo.PAST, None)
    traffic = Thread(target=demo.play, args=(service, questions, 10.0, ended), daemon=True)

    _announce(out, address_of(bound), token)
    traffic.start()
    try:
        serve(service, bound)
    finally:
        ended.set()


def _announce(out: Session, url: str, token: str) -> None:
    """Print the address, and the token that is not shown again."""
    import json

    if out.json:
        print(json.dumps({"url": url, "token": token or None}), flush=True)
        return
    print(f"serving at {url}", flush=True)
    if token:
        print(f"admin token, shown this once: {token}", flush=True)


@app.command()
def backup(out: Session, file: File, place: Place) -> None:
    """Back up all data of the service to one file, even while it runs.

    The file holds personal data and digests of secrets: protect it like the database.
    """
    settings = place.settings()
    from atpgraph_qa.service.maintenance import backup as write

    counts = write(settings, file)
    out.result({"file": file, "rows": counts}, table(("table", "rows"), counts.items()))


@app.command()
def restore(out: Session, file: File, place: Place) -> None:
    """Restore a backup to an empty database and work folder; SQLite or PostgreSQL."""
    settings = place.settings()
    from atpgraph_qa.service.maintenance import restore as read

    counts = read(settings, file)
    out.result({"file": file, "rows": counts}, table(("table", "rows"), counts.items()))


@app.command()
def tokens(
    out: Session,
    place: Place,
    name: Annotated[
        str | None, arg("What a new token is for; without it, tokens are listed.")
    ] = None,
    scopes: Annotated[str, opt("Some of read, route, write, admin, separated by commas.")] = "read",
    revoke: Annotated[int | None, opt("Revoke the token with this number.")] = None,
) -> None:
    """List tokens, create one (also if all others are lost; shown only once), or revoke one."""
    settings = place.settings()
    from contextlib import closing

    from atpgraph_qa.service import tokens as known
    from atpgraph_qa.service.database import Database as Store
    from atpgraph_qa.service.engine import now_ms

    wanted, who = known.check_scopes(part.strip() for part in scopes.split(",")), "command line"
    payload: dict[str, Any]
    with closing(Store.of(settings)) as store:
        store.migrate()
        with store.write() as connection:
            said: Any = f"token {revoke} is revoked"
            if revoke is not None:
                known.revoke_token(connection, revoke, now_ms(), who)
                payload = {"revoked": revoke}
            elif name is None:
                payload = {"tokens": known.list_tokens(connection)}
                rows = [(t["id"], t["name"], t["scopes"]) for t in payload["tokens"]]
                said = table(("number", "name", "scopes"), rows)
            else:
                number, said = known.create_token(connection, name, wanted, now_ms(), who)
                payload = {"id": number, "name": name, "scopes": wanted, "token": said}
    out.result(payload, said)


@app.command()
def repair(out: Session, place: Place) -> None:
    """Disable events that a sender with a wrong clock dated in the future.

    Stop the service first. Start it again with the model: it rebuilds the history from the model
    and the other events.
    """
    settings = place.settings()
    from atpgraph_qa.service.engine import now_ms
    from atpgraph_qa.service.maintenance import repair as run

    counts = run(settings, now_ms())
    out.result(counts, table(("disabled", "count"), counts.items()))
