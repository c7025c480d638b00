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
generate cycles -o g.txt --nodes 60 --edges 200 --planted 8 --truth t.txt
generate cycles -o h.txt --nodes 20 --edges 40 --planted 2
generate dag -o d.txt --nodes 20 --edges 30
generate gnm -o e.txt --nodes 20 --edges 30
generate citation -o c.txt --nodes 50 --edges 80
break-cycles g.txt --truth t.txt --report r1
break-cycles g.txt --all
hierarchy g.txt
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
predict m.npz 1 2 3 4
predict m.npz --pairs unknown.txt
neighbors m.npz 1 2 --top 3
info m.npz
info l.npz
export m.npz --format csv -o v.csv
export m.npz --format npy -o v
plot g.txt -o p.svg
linkpred g.txt --methods levels --seeds 1
links fit g.txt -o k.npz --dim 4 --report r3
links predict k.npz 1 2 3 4
links predict k.npz --pairs unknown.txt
links recommend k.npz 1 --top 3 --explain
links recommend k.npz 1 --top 3 --sources
links top k.npz --top 5
datasets list
datasets path cit-HepTh
datasets fetch cit-HepTh
generate community -o dump --users 60 --questions 250 --bounties 0.2 --seed 4
cqa ingest dump -o site
cqa stats site
cqa train site -o c.npz --text bm25
cqa experts site
cqa difficulty site --methods qdee
cqa difficulty site --methods qdee --evaluate --bootstrap 20
cqa route c.npz --title gears --top 2
cqa evaluate site --methods recent-activity
cqa load site
serve c.npz --check
service token forum --scopes write,read --folder work
service backup b.zip --folder work
service restore b.zip --folder new
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
    return next(name for name in ("-".join(words[:2]), words[0]) if name in LEAVES)


def test_every_command_has_a_schema_and_a_run() -> None:
    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == LEAVES
    assert sorted({name_of(line) for line in COMMANDS}) == LEAVES


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
