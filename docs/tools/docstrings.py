"""Small repairs of docstrings for the API reference.

- The roles of Sphinx become links: ``:func:`name``` leads to the object called that where the
  docstring stands, or is plain code where the reference does not list that object.
- Parameters described together (``kernel, c``) are listed one by one. Griffe would show the type
  and the default of the first for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`(~?)([^`]+)`")
_TYPE_LINE = re.compile(r"(?m)^ *[\w, *]+ : .+$")
_TOGETHER = re.compile(r"(?m)^(\w+(?:, \w+)+)( : .*)?\n((?:    .*\n?)+)")


def _one_by_one(match: re.Match[str]) -> str:
    names, kind, text = match[1].split(", "), match[2] or "", match[3].rstrip("\n")
    return "".join(f"{name}{kind}\n{text}\n" for name in names)


def _objects(parent: Any) -> Iterator[Any]:
    """Everything in a package but what it only imports."""
    yield parent
    for member in parent.members.values():
        if not member.is_alias:
            yield from _objects(member)


class Docstrings(griffe.Extension):
    """Rewrites every docstring once, when the package is loaded and names can be resolved."""

    def on_package(self, *, pkg: Any, loader: Any, **kwargs: Any) -> None:
        for item in _objects(pkg):
            if item.docstring is not None:
                # The type of a parameter is shown as it is written, not as Markdown.
                text = _TYPE_LINE.sub(lambda line: _ROLE.sub(_shown, line[0]), item.docstring.value)
                text = _ROLE.sub(lambda role, item=item: _link(role, item, pkg), text)
                item.docstring.value = _TOGETHER.sub(_one_by_one, text)


def _shown(role: re.Match[str]) -> str:
    return role[2].rpartition(".")[2] if role[1] else role[2]


def _link(role: re.Match[str], item: Any, package: Any) -> str:
    name, shown = role[2], _shown(role)
    root = f"{package.name}."
    try:
        path = name if name.startswith(root) else item.resolve(name)
        path = package[path.removeprefix(root)].canonical_path
    except (griffe.NameResolutionError, griffe.AliasResolutionError, KeyError):
        return f"`{shown}`"
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'
