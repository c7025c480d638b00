"""The page of JSON outputs, read off the schemas in ``docs/reference/schemas``.

    python docs/tools/json_reference.py > json.md

``mkdocs build`` calls :func:`render`; tests/cli/test_schemas.py holds the commands to the schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parent.parent / "reference" / "schemas"
INTRODUCTION = """\
# JSON output

With `--json`, every command prints one object, in ASCII, with NaN and infinity as `null`. This
page is made from the [JSON Schema](https://json-schema.org) of each command, and the tests check
the output of the commands against it. A later version may add fields; the fields listed here keep
their name and meaning until the next major version.

A label is a whole number if all labels of the graph are, else text; a tuple is an array.
"""


def render() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## `{schema['title']}`\n")
        parts.append(f"[{path.name}](schemas/{path.name})\n")
        for form in schema.get("oneOf", [schema]):
            if form is not schema:
                parts.append(f"{form['description']}\n")
            parts.append("| field | type | meaning |\n|---|---|---|")
            parts.append("\n".join(rows(form)) + "\n")
    return "\n".join(parts)


def rows(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """A row for each field, those inside a field after it."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        place = f"{prefix}{name}"
        told = field.get("description", "") + (" Not always given." if name not in required else "")
        yield f"| `{place}` | {kind(field)} | {told} |"
        inner = field.get("items", field)
        yield from rows(inner, f"{place}[]." if "items" in field else f"{place}.")
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield from rows(more, f"{prefix}….")


def kind(field: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "const" in field:
        return f'"{field["const"]}"'
    if "enum" in field:
        return " or ".join(f'"{value}"' for value in field["enum"])
    names = field.get("type", "anything")
    return names if isinstance(names, str) else " or ".join(names)


if __name__ == "__main__":
    print(render())
