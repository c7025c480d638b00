"""Read and write ``.npz`` files: plain arrays and JSON, no pickle.

A file is checked before any of it is used: its members against the expected fields, their
headers against the bytes that are there, then every array against the sizes and ranges it must
have. Members are not compressed, so reading a file takes little more memory than the file.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import numpy.lib.format as npy

from atpgraph._version import __version__
from atpgraph.errors import InputError
from atpgraph.util.arrays import AnyArray, ByteArray
from atpgraph.util.files import atomic_path

T = TypeVar("T")
DESCRIPTION = "description"
_HEADER_BYTES = 10_000
_DAMAGE = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, OSError, EOFError,
    NotImplementedError, RuntimeError, SyntaxError, TokenError, zipfile.BadZipFile,
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """Requirements for one array of an archive.

    A dimension is a number, a letter that stands for the same number in every field ("n+1" is one
    more), or None for any number.
    """

    kind: str  # of the elements, as NumPy abbreviates it: "f", "i", "u" or "b"
    shape: tuple[int | str | None, ...]
    low: float | None = None  # every element lies in [low, high)
    high: float | str | None = None
    ascending: bool = False  # no element is smaller than the one before
    unique: bool = False  # no element occurs twice
    optional: bool = False  # the array may be missing


def pointers(rows: str, entries: str) -> Field:
    """Return the field of a CSR index pointer; :func:`check_pointers` checks its ends."""
    return Field("i", (f"{rows}+1",), low=0, high=f"{entries}+1", ascending=True)


def text(*, optional: bool = False) -> Field:
    """Return the field of UTF-8 text, as bytes."""
    return Field("u", (None,), optional=optional)


def write_archive(
    path: str | os.PathLike[str], description: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> None:
    """Write arrays and a JSON description; the same content gives the same bytes.

    The description has the keys ``format`` and ``version``, by which :func:`read_archive`
    recognizes the file.
    """
    described = {**description, "written_by": f"atpgraph {__version__}"}
    # Parameters may be numbers of NumPy.
    told = json.dumps(described, sort_keys=True, allow_nan=False, default=np.generic.item)
    content: dict[str, Any] = {**arrays, DESCRIPTION: as_bytes(told)}
    # savez pickles objects; its option against that is an array to be stored in older NumPy.
    if any(array.dtype.hasobject for array in content.values()):
        raise TypeError("an archive holds no Python objects")
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **content)


def read_archive(
    path: str | os.PathLike[str],
    format: str,
    version: int | tuple[int, ...],
    hint: str,
    fields: Mapping[str, Field],
    restore: Callable[[dict[str, Any], dict[str, AnyArray]], T],
) -> T:
    """Return the object that `restore` makes of the description and the arrays of an archive.

    Any other file, or one on which `restore` fails with a ``ValueError`` or similar, raises an
    InputError. `version` is the version that can be read, or all of them. `hint` names the kind of
    file and how to make one, such as "an atpgraph model; make one with 'atp embed'".
    """
    file = Path(path)
    kind, _, remedy = hint.partition("; ")
    known = (version,) if isinstance(version, int) else version
    try:
        if os.fspath(path) == "-":
            raise InputError(f"Standard input cannot be {kind}; name a file.")
        if file.is_dir():
            raise InputError(f"{file} is a directory; name a file.")
        if not file.is_file():  # a device such as /dev/zero has no end to look for
            what = "is not a regular file" if file.exists() else "does not exist"
            raise InputError(f"{file} {what}; {remedy}.")
        with file.open("rb") as opened, zipfile.ZipFile(opened) as archive:
            members = _members(archive, file.stat().st_size)
            description: Any = None
            if DESCRIPTION in members:
                description = parse_json(as_text(_array(archive, members.pop(DESCRIPTION))))
            if not isinstance(description, dict) or description.get("format") != format:
                raise InputError(f"{file} is not {hint}.")
            if description.get("version") not in known:
                raise InputError(
                    f"{file} has version {description.get('version')!r}, and this atpgraph "
                    f"({__version__}) reads version {' and '.join(map(str, known))}; {remedy}."
                )
            arrays = _arrays(archive, members, fields)
        return restore(description, arrays)
    except InputError:
        raise
    except (*_DAMAGE, MemoryError) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{file} is damaged or not {kind} ({why}).") from error


def archive_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format that an archive declares, "" if none; None for other files."""
    file = Path(path)
    if not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            if opened.read(4) != b"PK\x03\x04":
                return None
            with zipfile.ZipFile(opened) as archive:
                members = _members(archive, file.stat().st_size)
                return str(parse_json(as_text(_array(archive, members[DESCRIPTION])))["format"])
    except _DAMAGE:
        return ""


def load_array(path: Path, mmap_mode: Literal["r", "c"] | None = None) -> AnyArray:
    """Return the array of an ``.npy`` file; any damage is an OSError or a ValueError."""
    try:
        found = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    except (OSError, ValueError):
        raise
    except (*_DAMAGE, MemoryError) as error:
        raise ValueError(f"{path} is not an array") from error
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{path} is an archive")
    return found


def parse_json(raw: str) -> Any:
    """Parse untrusted JSON: no NaN or infinity, no nesting that would exhaust the stack."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"its JSON holds {name}")

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else refuse(digits[:20])

    try:
        return json.loads(raw, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def read_json(path: str | os.PathLike[str], hint: str) -> Any:
    """Return the content of a JSON file; `hint` says which kind is expected and how to get one."""
    file = Path(path)
    kind, _, remedy = hint.partition("; ")
    try:
        return parse_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; {remedy}.") from None
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{file} is damaged or not {kind} ({error}).") from error


def check_pointers(pointer: AnyArray, entries: int) -> None:
    """Raise a ValueError unless a CSR index pointer runs from 0 to the number of entries."""
    if not len(pointer) or pointer[0] != 0 or pointer[-1] != entries:
        raise ValueError("its rows do not fit its entries")


def as_bytes(content: str) -> ByteArray:
    """Return text as an array of bytes."""
    return np.frombuffer(content.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def as_text(raw: AnyArray) -> str:
    """Return the text of an array of bytes."""
    return raw.tobytes().decode("utf-8", "surrogatepass")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by array name, none of them compressed, encrypted or too long."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in members or name == info.filename:
            raise ValueError(f"unexpected member {info.filename[:60]!r}")
        if info.flag_bits & 1 or info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"the member {name[:60]!r} is compressed or encrypted")
        members[name] = info
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its members are longer than the file")
    return members


def _arrays(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], fields: Mapping[str, Field]
) -> dict[str, AnyArray]:
    unknown = sorted(members.keys() - fields.keys())
    missing = sorted(
        name for name, field in fields.items() if not field.optional and name not in members
    )
    if unknown or missing:
        raise ValueError(f"unknown member {unknown[0][:60]!r}" if unknown else f"no {missing[0]!r}")
    sizes: dict[str, int] = {}
    arrays: dict[str, AnyArray] = {}
    for name, field in fields.items():
        if name in members:
            arrays[name] = _array(archive, members[name])
            _check_shape(name, arrays[name], field, sizes)
    for name, array in arrays.items():
        _check_content(name, array, fields[name], sizes)
    return arrays


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> AnyArray:
    """Read a member, after checking its header against its length."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.open(info) as member:
        read_header = readers[npy.read_magic(member)]
        shape, _, dtype = read_header(member, max_header_size=_HEADER_BYTES)
        if dtype.hasobject or dtype.kind not in "fiub" or min(shape, default=0) < 0:
            raise ValueError(f"{info.filename[:60]!r} holds {dtype}, not numbers")
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            raise ValueError(f"{info.filename[:60]!r} does not have the length in its header")
        member.seek(0)
        array = npy.read_array(member, allow_pickle=False, max_header_size=_HEADER_BYTES)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _symbolic(size: str) -> tuple[str, int]:
    """Split "n+1" into ("n", 1)."""
    letter, _, more = size.partition("+")
    return letter, int(more or 0)


def _check_shape(name: str, array: AnyArray, field: Field, sizes: dict[str, int]) -> None:
    if array.dtype.kind != field.kind or array.ndim != len(field.shape):
        raise ValueError(f"{name!r} is not {field.kind!r} of {len(field.shape)} dimensions")
    for length, expected in zip(array.shape, field.shape, strict=True):
        fits = expected is None or length == expected
        if isinstance(expected, str):
            letter, more = _symbolic(expected)
            fits = sizes.setdefault(letter, length - more) == length - more >= 0
        if not fits:
            raise ValueError(f"{name!r} has {length} entries where {expected} fit")


def _check_content(name: str, array: AnyArray, field: Field, sizes: Mapping[str, int]) -> None:
    if field.kind == "f" and not bool(np.isfinite(array).all()):
        raise ValueError(f"{name!r} holds numbers that are not finite")
    if not array.size:
        return
    if field.low is not None and array.min() < field.low:
        raise ValueError(f"{name!r} holds {array.min()}, below {field.low}")
    high = field.high
    if isinstance(high, str):
        letter, more = _symbolic(high)
        high = sizes[letter] + more
    if high is not None and array.max() >= high:
        raise ValueError(f"{name!r} holds {array.max()}, past the end")
    if field.ascending and bool(np.any(array[1:] < array[:-1])):
        raise ValueError(f"{name!r} is not ascending")
    if field.unique and len(np.unique(array)) < array.size:
        raise ValueError(f"{name!r} holds an entry twice")


def unique_names(names: Iterable[Any]) -> None:
    """Raise a ValueError if a label occurs twice."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the label {str(name)[:60]!r} occurs twice")
        seen.add(name)
