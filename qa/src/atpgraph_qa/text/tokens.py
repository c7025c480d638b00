"""Tokenisers, from the file that every model comes with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atpgraph.errors import InputError, MissingDependencyError

PURPOSE = "Text by meaning"


def load_tokenizer(file: Path, most: int | None) -> Any:
    """The tokeniser of a ``tokenizer.json`` that cuts texts after `most` tokens and pads none."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingDependencyError("tokenizers", "dense", PURPOSE, "atpgraph-qa") from None
    try:
        tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{file} is not a tokenizer.json ({error}).") from error
    tokenizer.no_padding()
    if most is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(most)
    return tokenizer
