"""``atp serve``: the service in front of a community."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli.console import Json, Quiet, Session, session, table

if TYPE_CHECKING:
    from atpgraph_qa.service.settings import Settings

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with settings.", show_default=False)
]
Database = Annotated[
    str | None,
    typer.Option("--database", help="postgresql://…; by default SQLite.", show_default=False),
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="Work folder; by default atp-serve.", show_default=False),
]


def serve(
    model: Annotated[
        Path | None,
        typer.Argument(help="Model of 'atp cqa train'; needed once.", show_default=False),
    ] = None,
    config: Config = None,
    database: Database = None,
    folder: Folder = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on.", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Port; 0 takes a free one.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check settings and model, then stop.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a simulated community with live traffic.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Serve suggestions: API, webhooks and a page, on a history that follows the site.

    The first start prints an admin token, once. Settings come from the TOML file, then ATP_SERVE_…
    variables, then these options. The service starts in shadow mode: it asks nobody until
    policy.shadow is false.
    """
    with session(json=json, quiet=quiet) as out:
        settings = read_settings(config, database, folder, host=host, port=port)
        if check:
            _check(out, settings, model)
        elif demo:
            _demo(out, settings, folder)
        else:
            _serve(out, settings, model)


def read_settings(
    config: Path | None, database: str | None, folder: Path | None, **server: Any
) -> Settings:
    """Settings of the file and the environment, with what the command line says."""
    require()
    from atpgraph_qa.service.settings import Settings

    settings = Settings.read(config)
    store = {"database": database, "folder": None if folder is None else str(folder)}
    for section, values in (("server", server), ("store", store)):
        given = {name: value for name, value in values.items() if value is not None}
        settings = settings.changed(section, given, "options")
    return settings


def require() -> None:
    """Say which extra is missing, if it is."""
    from importlib.util import find_spec

    from atpgraph.errors import MissingDependencyError

    for name in ("fastapi", "uvicorn", "sqlalchemy", "httpx", "jinja2"):
        if find_spec(name) is None:
            raise MissingDependencyError(name, "serve", "The service", "atpgraph-qa")


def _check(out: Session, settings: Settings, model: Path | None) -> None:
    from atpgraph_qa.advisor.model_folder import ModelFolder

    if model is not None:
        ModelFolder.open(model)
    shown = settings.shown()
    rows = [
        (section, name, _text(value))
        for section, values in shown.items()
        for name, value in values.items()
    ]
    payload = {"checked": True, "model": model, "settings": shown}
    out.result(payload, table(("section", "setting", "value"), rows), "the settings are fine")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _serve(out: Session, settings: Settings, model: Path | None) -> None:
    from atpgraph_qa.service.run import address_of, listen, serve
    from atpgraph_qa.service.service import Service

    bound = listen(settings.server.host, settings.server.port)
    service = Service(settings, model)
    serve(service, bound, lambda: _announce(out, address_of(bound), service.first_token))


def _demo(out: Session, settings: Settings, folder: Path | None) -> None:
    from atpgraph_qa.service import demo
    from atpgraph_qa.service.run import address_of, listen, serve
    from atpgraph_qa.service.service import Service
    from atpgraph_qa.service.store import tokens

    place = folder or Path("atp-demo")
    settings = settings.changed("store", {"folder": str(place / "work")}, "options")
    # A question every few seconds is more than people would bear; these ones do not mind.
    patient = {"per_day": 40, "per_week": 100, "rest_hours": 0.0}
    settings = settings.changed("policy", patient, "options")
    settings = settings.changed("log", {"requests": False, "level": "warning"}, "options")
    bound = listen(settings.server.host, settings.server.port)
    out.note("simulating a community and learning from it; the first time takes half a minute")
    model, play = demo.prepare(place)
    service = Service(settings, model)
    demo.fill_past(service, play)
    with service.database.write() as connection:
        made = {
            scope: tokens.create_token(connection, f"demo {scope}", [scope], service.clock())[1]
            for scope in ("write", "admin")
        }
    url = address_of(bound)
    traffic = demo.Traffic(url, made["write"], play, pace_s=4.0)

    def started() -> None:
        _announce(out, url, made["admin"])
        traffic.start()

    try:
        serve(service, bound, started)
    finally:
        traffic.ended.set()


def _announce(out: Session, url: str, token: str) -> None:
    """Where it is, and the token that is not shown again."""
    import json

    if out.json:
        print(json.dumps({"url": url, "token": token or None}), flush=True)
        return
    print(f"serving at {url}", flush=True)
    if token:
        print(f"admin token, shown this once: {token}", flush=True)
