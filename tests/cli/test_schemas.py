"""What the commands print with --json, held to the schemas in docs/reference/schemas."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
from typer.testing import CliRunner

from atpgraph.cli._app import app

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas"
# One line each, in this order: later commands use the files of earlier ones.
COMMANDS = """
data generate cycles -o g.txt --nodes 60 --edges 200 --planted 8 --truth t.txt
data generate cycles -o h.txt --nodes 20 --edges 40 --planted 2
data generate dag -o d.txt --nodes 20 --edges 30
data generate gnm -o e.txt --nodes 20 --edges 30
data generate citation -o c.txt --nodes 50 --edges 80
cycles g.txt --truth t.txt --report r0
cycles g.txt --all
levels g.txt
reach g.txt 1 2 3 4 --path
reach g.txt 1 2
reach g.txt --descendants 1
reach g.txt --ancestors 1 --count
reach g.txt --pairs t.txt
reach g.txt -o i.npz
reach g.txt --estimate
embed g.txt -o m.npz --dim 4 --report r2
embed g.txt --estimate
embed d.txt -o l.npz --dim 2 --purpose paper
tune g.txt --dims 2,4 --penalties auto,0.1
tune g.txt --dims 2 --purpose paper --protocol random
model score m.npz 1 2 3 4
model score m.npz --pairs unknown.txt
model top m.npz 1 2 --top 3
info m.npz
info l.npz
info g.txt
info i.npz
model info m.npz
model add m.npz d.txt -o m2.npz
model export m.npz --format csv -o v.csv
model export m.npz --format npy -o v
plot g.txt -o p.svg
links compare g.txt --methods levels --seeds 1 --report r
links fit g.txt -o k.npz --dim 4 --report r3
info k.npz
links score k.npz 1 2 3 4
links score k.npz --pairs unknown.txt
links recommend k.npz 1 --top 3 --explain
links recommend k.npz 1 --top 3 --sources
links top k.npz --top 5
data imports -o imports.tsv
data imports -o packages.tsv --packages
data list
data path cit-HepTh
data fetch cit-HepTh
data generate community -o dump --users 60 --questions 250 --bounties 0.2 --seed 4
qa ingest dump -o site
qa stats site
qa train site -o c.npz --text bm25
info site
info c.npz
qa experts site
qa difficulty site --methods qdee
qa difficulty site --methods qdee --evaluate --bootstrap 20
qa route c.npz --title gears --top 2
qa evaluate site --methods recent-activity
qa load site
server check c.npz
server tokens forum --scopes write,read --folder work
server tokens --folder work
server tokens --revoke 1 --folder work
server repair --folder work
server backup b.zip --folder work
info b.zip
server restore b.zip --folder new
""".strip().splitlines()


def leaves(command: Any, path: str = "") -> Iterator[str]:
    members = getattr(command, "commands", None)
    if members is None:
        yield path
    for name, member in (members or {}).items():
        yield from leaves(member, f"{path}-{name}" if path else name)


LEAVES = sorted(leaves(typer.main.get_command(app)))


def name_of(line: str) -> str:
    words = line.split()
    return next(name for n in (3, 2, 1) if (name := "-".join(words[:n])) in LEAVES)


def test_every_command_has_a_schema_and_a_run() -> None:
    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == LEAVES
    assert {*map(name_of, COMMANDS), "server-run"} == set(LEAVES)  # which runs until it is killed


@pytest.mark.parametrize("name", LEAVES)
def test_schemas_are_schemas_that_refuse_something(name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"].removeprefix("atp ").removesuffix(" --json").replace(" ", "-") == name
    assert not jsonschema.Draft202012Validator(schema).is_valid({"surprise": 1})


def test_what_is_printed_keeps_to_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATP_DATA", str(tmp_path))
    (tmp_path / "cit-HepTh.txt.gz").write_bytes(gzip.compress(b"1 2\n"))
    (tmp_path / "unknown.txt").write_text("1 2\n1 nobody\n")
    for line in COMMANDS:
        result = CliRunner().invoke(app, [*line.split(), "--json", "-q"])
        assert result.exit_code == 0, f"{line}: {result.stderr}"
        schema = json.loads((SCHEMAS / f"{name_of(line)}.json").read_text("utf-8"))
        try:
            jsonschema.validate(json.loads(result.stdout), schema)
        except jsonschema.ValidationError as error:
            pytest.fail(f"atp {line}: {error.json_path}: {error.message[:300]}")
