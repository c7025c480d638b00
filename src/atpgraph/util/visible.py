"""Make untrusted text safe to print to a terminal or to open in a spreadsheet."""

from __future__ import annotations

import re
from typing import Any

# Controls, the C1 range that 8-bit terminals obey, and what reverses the direction of writing.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str, keep: str = "") -> str:
    r"""Return `text` with every control character as an escape, except those in `keep`.

    Examples
    --------
    >>> print(visible("a\x1b[31mred\nb"))
    a\x1b[31mred\nb
    >>> print(visible("one\ntwo\x9b", keep="\n"))
    one
    two\x9b
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else ascii(match[0])[1:-1], text)


def no_formula(label: Any) -> Any:
    """Return a label that no spreadsheet runs, with a ' in front if needed; numbers are safe.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula(-1)
    ("'=1+1", -1)
    """
    if isinstance(label, (int, float)) or not str(label).startswith(_FORMULA):
        return label
    return f"'{label}"
