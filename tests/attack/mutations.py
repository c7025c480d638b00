"""Seeded damage to bytes and to the arrays of archives."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

_TOKENS = [
    b"\0", b"\xff", b"\n", b"\r\n", b",", b"\t", b'"', b"-1", b"0", b"99999999999999999999", b"nan",
    b"inf", b"1e999", b"2147483648", b"<!--", b"-->", b"<row ", b"/>", b"<![CDATA[", b"&#x0;",
    b"&amp;", b"{", b"}", b"[", b"]", b"null", b"true", b"\x1b[31m", b"\xc2\x9b", b"\xed\xa0\x80",
    b"PK\x03\x04", b"\x93NUMPY", b"PAR1", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"../", b"=1+1",
]  # fmt: skip


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes: bytes flipped, cut out, doubled, replaced or cut off."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 5))):
        size = len(data)
        place = int(rng.integers(0, size + 1))
        length = int(rng.integers(1, 1 + min(64, max(1, size))))
        kind = int(rng.integers(0, 6))
        if kind == 0 and size:
            data[min(place, size - 1)] = int(rng.integers(0, 256))
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        elif kind == 3:
            data[place:place] = _TOKENS[int(rng.integers(0, len(_TOKENS)))]
        elif kind == 4:
            token = _TOKENS[int(rng.integers(0, len(_TOKENS)))]
            data[place : place + len(token)] = token
        elif rng.random() < 0.3:
            del data[place:]
    return bytes(data)


def damaged_archive(path: Path, rng: np.random.Generator) -> None:
    """Change one array of an .npz file so that the file stays a valid archive."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    kind = int(rng.integers(0, 8))
    flat = array.reshape(-1)
    if kind < 3 and array.size:
        place = int(rng.integers(0, array.size))
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        odd = [0, 1, -1, 2**31 - 1, -(2**31), 2**62, array.size, np.nan, np.inf]
        value = odd[int(rng.integers(0, len(odd)))]
        if limits is not None:
            value = 1 if not np.isfinite(value) else min(max(value, limits.min), limits.max)
        flat[place] = value
    elif kind == 3:
        arrays[name] = flat[:-1] if array.size else np.zeros(3, dtype=array.dtype)
    elif kind == 4:
        arrays[name] = np.concatenate([flat, flat[:1]])
    elif kind == 5:
        arrays[name] = array.astype(rng.choice(np.array(["f8", "i8", "u1", "c16", "U3", "?"])))
    elif kind == 6:
        del arrays[name]
    else:
        arrays["x" * int(rng.integers(1, 9))] = np.zeros(4)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def renamed_members(path: Path) -> None:
    """Store an archive's members compressed."""
    raw = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
